#!/usr/bin/env python3
"""Begins to move a mailbox and answers at once. Asked again, it says how far the move is; the third time it is done."""
import sys

import tenant

LIMIT_MB = 100_000

wanted = tenant.params()
size = int(wanted["SizeMB"])
mailbox = tenant.load(wanted["Id"]) or tenant.fail(f"there is no mailbox {wanted['Id']}")
if size > LIMIT_MB:
    tenant.fail(f"{mailbox['upn']} has {size} MB, the target takes {LIMIT_MB}")
mailbox["calls"] += 1
moved = min(100, (mailbox["calls"] - 1) * 50)
mailbox["state"] = "moved" if moved == 100 else "moving"
tenant.save(mailbox)
print(f"{mailbox['upn']}: {moved} % of {size} MB", file=sys.stderr)
if moved < 100:
    tenant.answer({"complete": False})
else:
    tenant.note(f"moved {size} MB of {mailbox['upn']}")
    tenant.answer({"complete": True, "data": {"items": size * 12, "megabytes": size}})
