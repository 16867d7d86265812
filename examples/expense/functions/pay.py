#!/usr/bin/env python3
"""Writes a transfer. The job's id is its reference: with it a bank would not do the same transfer twice."""
import json
import os
import sys

params = json.load(sys.stdin)
with open("letter.txt", "w") as letter:
    print(f"PAID {params['amount']:.2f} EUR to {params['employee']}; approved by: {params['approved_by']}", file=letter)
print("reference", os.environ["BATON_JOB_ID"], file=sys.stderr)
json.dump({"paid": params["amount"], "approved_by": params["approved_by"]}, sys.stdout)
