#!/usr/bin/env python3
"""Rows of text become orders; those that cannot are listed with the reason."""
import decimal
import json
import sys


def order_of(row, seen):
    if row["order"] in seen:
        raise ValueError("the order is there twice")
    if not row["customer"]:
        raise ValueError("no customer")
    if len(row["country"]) != 2:
        raise ValueError(f"'{row['country']}' is no country code")
    try:
        cents = int(decimal.Decimal(row["amount"]) * 100)
    except decimal.InvalidOperation:
        raise ValueError(f"'{row['amount']}' is no amount") from None
    seen.add(row["order"])
    return {"order": int(row["order"]), "customer": row["customer"], "country": row["country"].upper(), "cents": cents}


orders, problems, seen = [], [], set()
rows = json.load(sys.stdin)["rows"]
for number, row in enumerate(rows, 1):
    try:
        orders.append(order_of(row, seen))
    except ValueError as error:
        problems.append({"row": number, "problem": str(error)})
        print(f"row {number}: {error}", file=sys.stderr)
json.dump({"orders": orders, "problems": problems, "good_percent": 100 * len(orders) // max(len(rows), 1)}, sys.stdout)
