#!/usr/bin/env python3
"""What waiters cost a server on which nothing happens: CPU of the server while they wait.

    bench/waiters.py [--waiters N] [--seconds N]

A third of them waits for the end of a job, a third for events of a timeline, a third for the end of a service call, each on a
connection of its own with wait_ms=60000; whoever is answered asks again. When the time is over, all jobs and calls are cancelled: each
waiter must be answered then, which shows that it waited. Then as many streams, 500 for each tenant, because one tenant can have 1,000.
Any answer but 200 ends the run. CPU is utime + stime of the server's process over that time, in per cent of one core. BATON_BINARY
names the program, default build/release/baton.
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
import urllib.request
from datetime import datetime, timedelta, timezone

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk/python"))
from baton import Client
from tests.server import WAITS, Server

STREAMS_OF_A_TENANT = 500


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Waiters:
    """Connections to a server, one for each request, and what they were answered."""

    def __init__(self, server: Server, requests: list[tuple[str, str]]) -> None:
        """A request is a tenant and a target."""
        host, port = server.url.split("//")[1].rsplit(":", 1)
        self._selector = selectors.DefaultSelector()
        self._requests: dict[socket.socket, bytes] = {}
        self.answered: set[socket.socket] = set()
        self.answers = 0
        for tenant, target in requests:
            connection = socket.create_connection((host, int(port)))
            request = f"GET /api/v1{target} HTTP/1.1\r\nHost: {host}\r\nBaton-Tenant: {tenant}\r\n\r\n".encode()
            self._requests[connection] = request
            connection.sendall(request)
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, target)

    def serve(self, until: float, *, ask_again: bool = True, wanted: int | None = None) -> None:
        """Until that time, or until as many connections as are wanted were answered."""
        while (left := until - time.monotonic()) > 0 and (wanted is None or len(self.answered) < wanted):
            for key, _ in self._selector.select(left):
                connection = key.fileobj
                data = connection.recv(1 << 16)
                assert data, f"the server closed the connection of {key.data}"
                if not data.startswith(b"HTTP/1.1 "):
                    continue  # the rest of an answer, or an event of a stream
                assert data.startswith(b"HTTP/1.1 200"), f"{key.data} was answered {data[:300]!r}"
                self.answers += 1
                self.answered.add(connection)
                if ask_again and b"Content-Length" in data:
                    connection.sendall(self._requests[connection])

    def close(self) -> None:
        for connection in self._requests:
            connection.close()
        time.sleep(1)


def measure(server: Server, waiters: Waiters, seconds: float) -> float:
    """Per cent of a core."""
    waiters.serve(time.monotonic() + 5)  # what it costs to begin is over
    pid = server._process.pid
    before, began = cpu_seconds(pid), time.monotonic()
    waiters.serve(began + seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began) * 100


def streams_of(server: Server) -> int:
    """As the server counts them."""
    with urllib.request.urlopen(server.url + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith("baton_streams ")).split()[1])


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
        requests = []
        for i in range(third):
            requests.append(("default", f"/jobs/{jobs[i % len(jobs)]}?wait_ms=60000"))
            requests.append(("default", f"/jobs/{jobs[i % len(jobs)]}/timeline?wait_ms=60000&after={after}"))
            requests.append(("default", f"/tenants/default/service-calls/{calls[i % len(calls)]}?wait_ms=60000"))
        count = len(requests)
        nothing = measure(server, Waiters(server, []), options.seconds)

        waiters = Waiters(server, requests)
        waits = measure(server, waiters, options.seconds)
        early = waiters.answers
        waiters.answered.clear()
        for job in jobs:
            client.cancel(job)
        for call in calls:
            client.cancel_call(call)
        waiters.serve(time.monotonic() + 30, ask_again=False, wanted=count)
        assert len(waiters.answered) == count, f"{count - len(waiters.answered)} of {count} waiters were not answered"
        waiters.close()

        streams = Waiters(server, [(f"tenant{i // STREAMS_OF_A_TENANT}", "/stream") for i in range(count)])
        streaming = measure(server, streams, options.seconds)
        assert len(streams.answered) == streams_of(server) == count, f"{len(streams.answered)} of {count} streams are open"
        streams.close()
        print(f"{count} waiters: {waits:.2f} % of a core, {early} answers 200 in that time and {count} at the end; "
              f"{count} streams, each answered 200: {streaming:.2f} %; nobody: {nothing:.2f} %")
    finally:
        server.close()


if __name__ == "__main__":
    main()
