#!/usr/bin/env python3
"""Makes thumbnails of PPM pictures, as PNG. Needs a baton server and nothing else.

    python3 thumbnails_worker.py            serves the queue `images` until Ctrl-C or SIGTERM
    python3 thumbnails_worker.py --demo     paints a picture, has its thumbnails made, shows the result and ends

The server is that of BATON_SERVER, by default http://127.0.0.1:8080.
"""

from __future__ import annotations

import logging
import pathlib
import struct
import sys
import tempfile
import zlib

try:
    from baton import Client, Context, TaskFailed, Worker
except ImportError:  # not installed: take the file beside this folder
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    from baton import Client, Context, TaskFailed, Worker

# Two sizes at once, then a list of both. A task without params is given the input of the job: {"path": …}.
WORKFLOW = """
workflow_id: thumbnails
inputs:
  path: {type: string, required: true, description: a PPM picture that the worker can read}
nodes:
  start:  {type: start, next: [small, large]}
  small:  {type: task, handler: thumbnail_small, queue: images, timeout_seconds: 60, retry: {max_attempts: 3}, next: end}
  large:  {type: task, handler: thumbnail_large, queue: images, timeout_seconds: 60, retry: {max_attempts: 3}, next: end}
  end:    {type: end}
"""

client = Client()
worker = Worker(client, queue="images", concurrency=4)


@worker.task("thumbnail_small")
def small(ctx: Context, path: str) -> dict[str, object]:
    return thumbnail(ctx, path, 32)


@worker.task("thumbnail_large")
def large(ctx: Context, path: str) -> dict[str, object]:
    return thumbnail(ctx, path, 128)


def thumbnail(ctx: Context, path: str, size: int) -> dict[str, object]:
    width, height, pixels = read_ppm(pathlib.Path(path))
    scale = max(width, height) / size
    columns = [int(x * scale) * 3 for x in range(max(1, int(width / scale)))]
    rows = []
    for y in range(max(1, int(height / scale))):
        ctx.check()  # a cancelled job ends here
        row = pixels[int(y * scale) * width * 3 :][: width * 3]
        rows.append(b"\0" + b"".join(row[x : x + 3] for x in columns))
    target = pathlib.Path(path).with_suffix(f".{size}.png")
    write_png(target, len(columns), rows)  # the same bytes each time: safe to repeat
    return {"path": str(target), "width": len(columns), "height": len(rows)}


def read_ppm(path: pathlib.Path) -> tuple[int, int, bytes]:
    if not path.is_file():
        raise TaskFailed(f"there is no picture {path}")
    head, size, depth, pixels = path.read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    if head != b"P6" or depth != b"255" or len(pixels) != width * height * 3:
        raise TaskFailed(f"{path} is not a PPM picture of the plain kind")
    return width, height, pixels


def write_png(path: pathlib.Path, width: int, rows: list[bytes]) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def paint(path: pathlib.Path, width: int = 512, height: int = 384) -> None:
    pixels = b"".join(bytes((x * 255 // width, y * 255 // height, 128)) for y in range(height) for x in range(width))
    path.write_bytes(f"P6\n{width} {height}\n255\n".encode() + pixels)


def demo() -> int:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thumbnails-"))
    paint(folder / "picture.ppm")
    with worker:  # works in the background as long as this block lasts
        job = client.submit("thumbnails", {"path": str(folder / "picture.ppm")}, wait=30)
    print(f"job {job.job_id} is {job.status}")
    for node, output in sorted((job.result_data or {}).items()):
        print(f"{node}: {output['width']} x {output['height']}, {output['path']}")
    return 0 if job.completed else 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    client.publish(WORKFLOW)
    if "--demo" in sys.argv[1:]:
        sys.exit(demo())
    worker.run()
