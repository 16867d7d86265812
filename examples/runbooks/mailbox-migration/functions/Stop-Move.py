#!/usr/bin/env python3
"""A part of a rollback: ends a move, if there is one."""
import tenant

mailbox = tenant.load(tenant.id_of(tenant.params()["Upn"]))
if mailbox is not None:
    mailbox["state"] = "stopped"
    tenant.save(mailbox)
    tenant.note(f"stopped the move of {mailbox['upn']}")
