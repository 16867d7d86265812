#!/usr/bin/env python3
"""Writes a letter of refusal."""
import json
import sys

params = json.load(sys.stdin)
with open("letter.txt", "w") as letter:
    who = f"by {params['by']}: " if params["by"] else ""  # nobody, when it timed out
    print(f"REFUSED for {params['employee']}, {who}{params['reason']}", file=letter)
json.dump({"paid": 0, "refused_by": params["by"], "reason": params["reason"]}, sys.stdout)
