#!/usr/bin/env python3
"""Makes one image smaller. Each pixel is the mean of those that it stands for."""
import json
import sys

import ppm

params = json.load(sys.stdin)
width, height, pixels = ppm.read(params["file"])
longer = max(width, height)
size = min(params["size"], longer)
small_width, small_height = max(width * size // longer, 1), max(height * size // longer, 1)
small = bytearray()
for y in range(small_height):
    rows = range(y * height // small_height, (y + 1) * height // small_height)
    for x in range(small_width):
        columns = range(x * width // small_width, (x + 1) * width // small_width)
        for channel in range(3):
            small.append(sum(pixels[3 * (r * width + c) + channel] for r in rows for c in columns) // (len(rows) * len(columns)))
path = params["file"].removesuffix(".ppm") + ".small.ppm"
written = ppm.write(path, small_width, small_height, small)
print(f"{params['number']}: {width}x{height} -> {small_width}x{small_height}", file=sys.stderr)
json.dump({"file": path, "width": small_width, "height": small_height, "bytes": written}, sys.stdout)
