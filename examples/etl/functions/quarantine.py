#!/usr/bin/env python3
"""A report of what is wrong with a file."""
import json
import sys

params = json.load(sys.stdin)
with open("quarantine.txt", "w") as report:
    print(f"{params['file']} is in quarantine: {params['why']}", file=report)
    for problem in params["problems"]:
        print(f"  row {problem['row']}: {problem['problem']}", file=report)
json.dump({"report": "quarantine.txt", "problems": len(params["problems"])}, sys.stdout)
