#!/usr/bin/env python3
"""Gives a mailbox its licence. The licence service turns away every first request for an E5: the step is tried again."""
import os

import tenant

wanted = tenant.params()
if wanted["Licence"] == "E5" and os.environ["BATON_RETRY_COUNT"] == "0":
    tenant.fail("429: too many requests for E5, try again later")
mailbox = tenant.load(wanted["Id"]) or tenant.fail(f"there is no mailbox {wanted['Id']}")
mailbox["licence"] = wanted["Licence"]
tenant.save(mailbox)
tenant.note(f"licence {wanted['Licence']} for {mailbox['upn']}")
tenant.answer({"licence": wanted["Licence"]})
