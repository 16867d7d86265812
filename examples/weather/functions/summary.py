#!/usr/bin/env python3
"""One line for each city, the warmest first."""
import json
import sys

params = json.load(sys.stdin)
with open("weather.txt", "w") as file:
    for each in sorted(params["cities"], key=lambda each: -each["celsius"]):
        print(f"{each['city']:<8}{each['celsius']:>3} °C", file=file)
json.dump({"warmest": params["warmest"], "coldest": params["coldest"], "cities": len(params["cities"])}, sys.stdout)
