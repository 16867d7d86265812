#!/usr/bin/env python3
"""Books one thing and notes it in the ledger, unless it is sold out. Done twice it is the same booking."""
import json
import os
import sys

params = json.load(sys.stdin)
what = params["what"]
if what in params["sold_out"]:
    sys.exit(f"no {what} left in {params['to']}")
booking = f"{what}-{params['to'].lower()}"
with open("ledger.txt", "a+") as ledger:
    ledger.seek(0)
    if f"booked {booking}\n" not in ledger:
        ledger.write(f"booked {booking}\n")
print("for job", os.environ["BATON_JOB_ID"], file=sys.stderr)
json.dump({"booking": booking}, sys.stdout)
