"""Images as simple as they can be: binary PPM. Not executable, and so not a function of the worker."""
import re


def read(path):
    """Width, height and the pixels, three bytes each."""
    with open(path, "rb") as file:
        data = file.read()
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", data)
    if not header:
        raise SystemExit(f"{path} is not a PPM image with 8 bits a channel")
    width, height, pixels = int(header[1]), int(header[2]), data[header.end():]
    if len(pixels) != 3 * width * height:
        raise SystemExit(f"{path} is cut off: {len(pixels)} of {3 * width * height} bytes")
    return width, height, pixels


def write(path, width, height, pixels):
    """Returns the size of the file."""
    data = b"P6\n%d %d\n255\n" % (width, height) + bytes(pixels)
    with open(path, "wb") as file:
        file.write(data)
    return len(data)
