#!/usr/bin/env python3
"""From now on mail for these addresses arrives in the new mailbox."""
import tenant

wanted = tenant.params()
mailbox = tenant.load(wanted["Id"]) or tenant.fail(f"there is no mailbox {wanted['Id']}")
mailbox["state"] = "live"
tenant.save(mailbox)
tenant.answer({"addresses": [mailbox["upn"], *(wanted["Aliases"] or [])]})
