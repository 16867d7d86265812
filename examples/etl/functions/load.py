#!/usr/bin/env python3
"""Orders into a SQLite database. A task may be done twice, so a row that is there already is replaced."""
import json
import sqlite3
import sys

orders = json.load(sys.stdin)["orders"]
with sqlite3.connect("warehouse.db") as database:
    database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT, country TEXT, cents INTEGER)")
    database.executemany("INSERT OR REPLACE INTO orders VALUES (:order, :customer, :country, :cents)", orders)
    countries = dict(database.execute("SELECT country, sum(cents) FROM orders GROUP BY country ORDER BY country"))
json.dump({"database": "warehouse.db", "loaded": len(orders), "cents_by_country": countries}, sys.stdout)
