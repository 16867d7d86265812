#!/usr/bin/env python3
"""Tells the traveller."""
import json
import sys

params = json.load(sys.stdin)
with open("letter.txt", "w") as letter:
    print(f"Dear {params['traveller']}, {params['text']}.", file=letter)
json.dump({"booked": bool(params["bookings"]), "bookings": params["bookings"]}, sys.stdout)
