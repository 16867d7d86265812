#!/usr/bin/env python3
"""For whoever is no longer in the file: nobody can sign in, and nothing is deleted."""
import tenant

mailbox = tenant.load(tenant.id_of(tenant.params()["Upn"]))
if mailbox is not None:
    mailbox["state"] = "disabled"
    tenant.save(mailbox)
    tenant.note(f"disabled the mailbox {mailbox['upn']}")
