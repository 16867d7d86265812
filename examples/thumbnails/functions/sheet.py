#!/usr/bin/env python3
"""Puts the thumbnails side by side, three in a row, and writes what is where."""
import json
import sys
import zlib

import ppm

COLUMNS, GAP = 3, 4
params = json.load(sys.stdin)
cell = params["size"] + GAP
lines = (len(params["thumbnails"]) + COLUMNS - 1) // COLUMNS
width, height = COLUMNS * cell + GAP, lines * cell + GAP
sheet = bytearray(b"\xff" * (3 * width * height))
summary = [f"{len(params['thumbnails'])} thumbnails, {params['bytes']} bytes, {params['failed']} failed"]
for number, path in enumerate(params["thumbnails"]):
    w, h, pixels = ppm.read(path)
    left, top = GAP + number % COLUMNS * cell, GAP + number // COLUMNS * cell
    for y in range(h):
        at = 3 * ((top + y) * width + left)
        sheet[at : at + 3 * w] = pixels[3 * y * w : 3 * (y + 1) * w]
    summary.append(f"  {path.removesuffix('.small.ppm'):<8} {w:>3} x {h:<3} at {left},{top}")
ppm.write("sheet.ppm", width, height, sheet)
with open("sheet.txt", "w") as file:
    print(*summary, sep="\n", file=file)
json.dump({"sheet": "sheet.ppm", "thumbnails": len(params["thumbnails"]), "failed": params["failed"],
           "width": width, "height": height, "crc32": f"{zlib.crc32(sheet):08x}"}, sys.stdout)
