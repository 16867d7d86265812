#!/usr/bin/env python3
"""What waiters cost a server on which nothing happens: CPU of the server while they wait.

    bench/waiters.py [--waiters N] [--seconds N]

A third of them waits for the end of a job, a third for events of a timeline, a third for the end of a service call, each on a
connection of its own with wait_ms=60000; whoever is answered asks again. Then as many streams. CPU is utime + stime of the server's
process over that time, in per cent of one core. BATON_BINARY names the program, default build/release/baton.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import selectors
import socket
import sys
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk/python"))
from baton import Client
from tests.server import Server

WAITS = """
workflow_id: waits
nodes:
  start: {type: start, next: work}
  work: {type: task, handler: nobody, queue: nobody, next: end}
  end: {type: end}
"""


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server: Server, targets: list[str], seconds: float) -> float:
    host, port = server.url.split("//")[1].rsplit(":", 1)
    selector = selectors.DefaultSelector()
    requests: dict[socket.socket, bytes] = {}
    for target in targets:
        connection = socket.create_connection((host, int(port)))
        requests[connection] = f"GET /api/v1{target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        connection.sendall(requests[connection])
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)

    def serve(until: float) -> int:
        answers = 0
        while (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                connection = key.fileobj
                data = connection.recv(1 << 16)
                assert data, "the server closed a connection"
                if data.startswith(b"HTTP/1.1 200") and b"Content-Length" in data:
                    answers += 1
                    connection.sendall(requests[connection])
        return answers

    serve(time.monotonic() + 5)  # what it costs to begin is over
    pid = server._process.pid
    before, began = cpu_seconds(pid), time.monotonic()
    answers = serve(began + seconds)
    used = (cpu_seconds(pid) - before) / (time.monotonic() - began)
    print(f"  {answers} answers in that time")
    for connection in requests:
        connection.close()
    time.sleep(1)
    return used * 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--waiters", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server()
    try:
        client = Client(server.url)
        client.publish(WAITS)
        third = max(1, options.waiters // 3)
        jobs = [client.submit("waits").job_id for _ in range(min(third, 200))]
        tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
        calls = [client.submit_call("later", "http://example.com/", due_at=tomorrow).service_call_id
                 for _ in range(min(third, 200))]
        after = client.request("GET", f"/jobs/{jobs[0]}/timeline?limit=1000")["next_after"] + (1 << 40)
        targets = []
        for i in range(third):
            targets.append(f"/jobs/{jobs[i % len(jobs)]}?wait_ms=60000")
            targets.append(f"/jobs/{jobs[i % len(jobs)]}/timeline?wait_ms=60000&after={after}")
            targets.append(f"/tenants/-/service-calls/{calls[i % len(calls)]}?wait_ms=60000")
        nothing = measure(server, [], options.seconds)
        waits = measure(server, targets, options.seconds)
        streams = measure(server, ["/stream"] * len(targets), options.seconds)
        print(f"{len(targets)} waiters: {waits:.2f} % of a core; as many streams: {streams:.2f} %; nobody: {nothing:.2f} %")
    finally:
        server.close()


if __name__ == "__main__":
    main()
