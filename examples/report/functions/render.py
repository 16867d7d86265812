#!/usr/bin/env python3
"""The report as text, with a bar for each region."""
import json
import sys

params = json.load(sys.stdin)
lines = [params["title"], "=" * len(params["title"])]
for each in params["regions"]:
    bar = "#" * round(30 * each["amount"] / params["total"])
    lines.append(f"{each['region']:<8}{each['amount']:>6}  {bar}")
lines += [f"{'total':<8}{params['total']:>6}", f"of which came late: {params['late']} booking(s)"]
with open("report.txt", "w") as file:
    print(*lines, sep="\n", file=file)
json.dump({"report": "report.txt", "lines": len(lines), "total": params["total"], "late": params["late"]}, sys.stdout)
