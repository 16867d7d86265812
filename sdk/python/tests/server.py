"""The real server, as a process of its own, on a port that the system chose and a data directory that goes away."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, Callable

from baton import Client

SDK = pathlib.Path(__file__).resolve().parents[1]
for _name in ("BATON_SERVER", "BATON_TOKEN", "BATON_TENANT"):  # those of whoever runs the tests are not meant
    os.environ.pop(_name, None)
BINARY = os.environ.get("BATON_BINARY") or str(SDK.parents[1] / "build/release/baton")

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


class Server:
    def __init__(self) -> None:
        self._data = tempfile.mkdtemp(prefix="baton-sdk-")
        self._listen = "127.0.0.1:0"
        self.url = ""
        self.start()

    def start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BATON_")}
        self._log = open(os.path.join(self._data, "server.log"), "ab")
        self._process = subprocess.Popen(
            [BINARY, "serve", "--listen", self._listen, "--data", self._data, "--log-level", "warn"],
            stdout=subprocess.PIPE, stderr=self._log, env=environment)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        if not self.url:
            raise RuntimeError("the server did not start: " + pathlib.Path(self._log.name).read_text())
        self._listen = self.url.split("//")[1]  # a restart comes back where it was

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def close(self) -> None:
        self.kill(signal.SIGTERM)
        shutil.rmtree(self._data)


class ServerCase(unittest.TestCase):
    server: Server
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
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


def in_threads(count: int, work: Callable[[int], Any]) -> None:
    threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def eventually(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"after {seconds} seconds still not so: {what}")
        time.sleep(0.02)
