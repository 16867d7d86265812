#!/usr/bin/env python3
"""A part of rollbacks: the target is as if the mailbox had never been there. The source still has it."""
import tenant

mailbox = tenant.load(tenant.id_of(tenant.params()["Upn"]))
if mailbox is not None:
    tenant.remove(mailbox)
    tenant.note(f"removed the mailbox {mailbox['upn']} again")
