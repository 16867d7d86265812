#!/usr/bin/env python3
"""Makes the images that the others work on: a gradient each, cut off after so many bytes if it is asked for."""
import json
import os
import sys

import ppm

files = []
for image in json.load(sys.stdin)["images"]:
    width, height, colour = image["width"], image["height"], image["colour"]
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            light = 64 + 191 * (x + y) // (width + height)
            pixels += bytes(channel * light // 255 for channel in colour)
    path = image["name"] + ".ppm"
    ppm.write(path, width, height, pixels)
    if "cut_after" in image:
        os.truncate(path, image["cut_after"])
    files.append(path)
json.dump({"files": files}, sys.stdout)
