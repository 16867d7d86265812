"""The real server, as a process of its own, on a port that the system chose and a data directory that goes away."""

from __future__ import annotations

import http.server
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, Callable

from baton import Client, Worker

SDK = pathlib.Path(__file__).resolve().parents[1]
for _name in ("BATON_SERVER", "BATON_TOKEN", "BATON_TENANT"):  # those of whoever runs the tests are not meant
    os.environ.pop(_name, None)
BINARY = os.environ.get("BATON_BINARY") or str(SDK.parents[1] / "build/release/baton")
PATIENCE = 30.0  # seconds for what takes far less than one: only what hangs takes longer, also on a busy machine

# One task on a queue that only workers serve; it is tried three times.
WORK = """
workflow_id: {name}
nodes:
  start: {{type: start, next: work}}
  work:
    type: task
    handler: {handler}
    queue: {queue}
    timeout_seconds: {timeout}
    retry: {{max_attempts: {attempts}, backoff: fixed, initial_delay_seconds: 0}}
    next: end
  end: {{type: end}}
"""

# One task that nobody serves.
WAITS = """
workflow_id: waits
nodes:
  start: {type: start, next: work}
  work: {type: task, handler: nobody, queue: nobody, next: end}
  end: {type: end}
"""


class Server:
    def __init__(self, *options: str) -> None:
        self._options = options
        self._data = tempfile.mkdtemp(prefix="baton-sdk-")
        self._listen = "127.0.0.1:0"
        self.url = ""
        self.start()

    def start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BATON_")}
        self._log = open(os.path.join(self._data, "server.log"), "ab")
        self._process = subprocess.Popen(
            [BINARY, "serve", "--listen", self._listen, "--data", self._data, "--log-level", "warn", *self._options],
            stdout=subprocess.PIPE, stderr=self._log, env=environment, bufsize=0)
        self.url = read_line(self._process).strip()
        if not self.url:
            raise RuntimeError("the server did not start: " + pathlib.Path(self._log.name).read_text())
        self._listen = self.url.split("//")[1]  # a restart comes back where it was

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()  # of one that did not end when it was asked to, nothing is left behind
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._log.close()

    def close(self) -> None:
        self.kill(signal.SIGTERM)
        shutil.rmtree(self._data)


class ServerCase(unittest.TestCase):
    options: tuple[str, ...] = ()  # of the server
    server: Server
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*cls.options)
        cls.client = Client(cls.server.url)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()

    def publish(self, handler: str, *, attempts: int = 1, timeout: int = 60) -> str:
        """A workflow and a queue of the test's own, both of the name that is returned."""
        name = self.id().rsplit(".", 1)[1]
        self.client.publish(WORK.format(name=name, queue=name, handler=handler, attempts=attempts, timeout=timeout))
        return name

    def events(self, job_id: str) -> list[str]:
        return [event.event_type for event in self.client.timeline(job_id)]


class HttpServer:
    """A server of the test's own, which answers as its handler does."""

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True  # close() does not wait for connections that are kept open
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        in_threads(1, lambda _: self._server.shutdown())  # which has no bound of its own
        self._server.server_close()


def bounded_worker(client: Client, queue: str, **options: Any) -> Worker:
    """A worker whose `with` block ends: as it is, it waits as long as there is no server to take its results."""
    options.setdefault("drain_seconds", PATIENCE)
    return Worker(client, queue, **options)


def read_line(process: subprocess.Popen[bytes]) -> str:
    """The next line of a process that writes whole lines. Without a buffer, as select() does not see what is in one."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], PATIENCE)[0]:
        process.kill()
        raise AssertionError(f"after {PATIENCE} seconds there is no line of {process.args!r}")
    return process.stdout.readline().decode()


def in_threads(count: int, work: Callable[[int], Any], seconds: float = 4 * PATIENCE) -> None:
    """Long enough for a benchmark too, and well below the limit of the whole."""
    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise AssertionError(f"after {seconds} seconds threads still run")


def eventually(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"after {seconds} seconds still not so: {what}")
        time.sleep(0.02)
