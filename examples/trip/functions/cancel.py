#!/usr/bin/env python3
"""Cancels a booking. What is cancelled already needs nothing."""
import json
import sys

booking = json.load(sys.stdin)["booking"]
with open("ledger.txt", "a+") as ledger:
    ledger.seek(0)
    if f"cancelled {booking}\n" not in ledger:
        ledger.write(f"cancelled {booking}\n")
json.dump({"cancelled": booking}, sys.stdout)
