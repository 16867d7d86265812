#!/usr/bin/env python3
"""Asks the service at WEATHER_URL for each city. Reports go to descriptor 3: how far it is, and what it has."""
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

cities = json.load(sys.stdin)["cities"]
reports = open(int(os.environ["BATON_PROGRESS_FD"]), "w", buffering=1)
have = []
if os.environ["BATON_CHECKPOINT"]:  # an attempt before this one got so far
    with open(os.environ["BATON_CHECKPOINT"]) as file:
        have = json.load(file)["cities"]
    print(f"going on after {have[-1]['city']}", file=sys.stderr)
for city in cities[len(have):]:
    try:
        with urllib.request.urlopen(os.environ["WEATHER_URL"] + "/" + urllib.parse.quote(city), timeout=5) as answer:
            have.append(json.load(answer))
    except urllib.error.URLError as error:
        sys.exit(f"{city}: {error}")
    print(json.dumps({"checkpoint": {"cities": have}}), file=reports)
    print(json.dumps({"progress": 100 * len(have) // len(cities), "message": city}), file=reports)
json.dump({"cities": have, "attempts": int(os.environ["BATON_RETRY_COUNT"]) + 1}, sys.stdout)
