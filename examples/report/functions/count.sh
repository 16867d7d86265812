#!/bin/sh
# Adds up the bookings of a month by region.
set -eu
month=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["month"])')
awk -F, -v month="$month" '
  $1 == month { n++; if (!($2 in sum)) order[++regions] = $2; sum[$2] += $3 }
  END {
    printf "{\"bookings\": %d, \"regions\": [", n
    for (i = 1; i <= regions; i++) printf "%s{\"region\": \"%s\", \"amount\": %d}", (i > 1 ? ", " : ""), order[i], sum[order[i]]
    print "]}"
  }' sales.csv
