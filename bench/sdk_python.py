#!/usr/bin/env python3
"""Tasks a second of a function that does nothing, through the Python SDK and the real server, on one machine.

    bench/sdk_python.py [--tasks N] [--concurrency N] [--prefetch N] [--runs N]

The jobs are in the queue before the worker begins; the clock stops when the last result is accepted. BATON_BINARY names the program,
default build/release/baton.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk/python"))
from baton import Client, Context, Worker
from tests.server import WORK, Server, in_threads


def measure(tasks: int, concurrency: int, prefetch: int) -> float:
    server = Server()
    try:
        client = Client(server.url)
        client.publish(WORK.format(name="noop", queue="noop", handler="noop", attempts=1, timeout=60))
        in_threads(8, lambda _: [client.submit("noop") for _ in range(tasks // 8)])
        worker = Worker(client, "noop", concurrency=concurrency, prefetch=prefetch)
        left, lock = tasks // 8 * 8, threading.Lock()

        @worker.task
        def noop(ctx: Context) -> None:
            nonlocal left
            with lock:
                left -= 1
                if left == 0:
                    worker.stop()

        begun = time.monotonic()
        worker.run()  # returns when everything is reported
        rate = tasks // 8 * 8 / (time.monotonic() - begun)
        completed = sum(1 for _ in client.jobs(status="COMPLETED"))
        assert completed == tasks // 8 * 8, completed
        return rate
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("tasks", 4000), ("concurrency", 8), ("prefetch", 0), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    rates = [measure(options.tasks, options.concurrency, options.prefetch) for _ in range(options.runs)]
    print(f"{statistics.median(rates):.0f} tasks/s (median of {', '.join(f'{rate:.0f}' for rate in rates)})")


if __name__ == "__main__":
    main()
