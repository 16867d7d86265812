#!/bin/sh
# Counts the bookings that there are when the month is closed. A late one comes in a moment afterwards.
set -eu
month=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["month"])')
cp "$(dirname "$0")/../sales.csv" sales.csv
awk -F, -v month="$month" '$1 == month { n++ } END { printf "{\"bookings\": %d}\n", n }' sales.csv
echo "$month,west,110" >> sales.csv
