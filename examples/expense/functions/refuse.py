#!/usr/bin/env python3
"""Writes a letter of refusal."""
import json
import sys

params = json.load(sys.stdin)
with open("letter.txt", "w") as letter:
    print(f"REFUSED for {params['employee']}, by {params['by']}: {params['reason']}", file=letter)
json.dump({"paid": 0, "refused_by": params["by"], "reason": params["reason"]}, sys.stdout)
