#!/usr/bin/env python3
"""What one tenant's costly expressions do to another tenant.

    bench/attack_turn.py [--elements N] [--items N] [--seconds N] [--expression E] [--restart]

The tenant `greedy` submits a job with a fan-out whose params evaluate the expression over a list of N elements for each item. From then on
the tenant `small` runs small jobs, one after the other in four threads, each with a queue of its own: submit, poll, report the result
50 ms later, look whether the job has completed; its tasks time out after 20 s. Printed: the time of its requests and of its jobs without the 50 ms, results that were refused, jobs that did not complete,
how far the fan-out came, how long its cancel took. With --restart the server is killed and started again before `small` begins.
BATON_BINARY names the program, default build/release/baton.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk/python"))
from tests.server import BINARY, Server

GREEDY = """
workflow_id: greedy
nodes:
  start: {{type: start, next: split}}
  split: {{type: fan_out, source: '{{{{ inputs.items }}}}', task: {{handler: none, queue: none, params: {{n: '{expression}'}}}}, next: end}}
  end: {{type: end}}
"""
SMALL = """
workflow_id: NAME
nodes:
  start: {type: start, next: work}
  work: {type: task, handler: work, queue: NAME, timeout_seconds: 20, params: {n: '{{ inputs.n + 1 }}'}, next: end}
  end: {type: end}
"""


class Tenant:
    """Requests of one tenant on one connection, with their times."""

    def __init__(self, url: str, token: str) -> None:
        self.host, self.token, self.times = url.split("//")[1], token, []
        self.connection = http.client.HTTPConnection(self.host, timeout=300)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        begun = time.monotonic()
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else None
        self.connection.request(method, path, text, {"Authorization": "Bearer " + self.token})
        response = self.connection.getresponse()
        data = response.read()
        self.times.append(time.monotonic() - begun)
        return response.status, json.loads(data) if data else {}


def percentile(values: list[float], share: float) -> str:
    ordered = sorted(values)
    return f"{ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000:.0f} ms" if ordered else "none"


def small_jobs(tenant: Tenant, name: str, until: float, jobs: list[float], counts: collections.Counter[str]) -> None:
    while time.monotonic() < until:
        begun = time.monotonic()
        status, job = tenant.ask("POST", "/api/v1/jobs", {"workflow_id": name, "input_data": {"n": 1}})
        assert status == 201, (status, job)
        _, polled = tenant.ask("POST", f"/api/v1/workers/{name}/jobs:poll", {"worker": name, "max": 1, "wait_ms": 20_000})
        [task] = polled["jobs"]
        assert task["job_id"] == job["job_id"], (task, job)
        time.sleep(0.05)
        status, _ = tenant.ask("POST", "/api/v1/callbacks/task-result", {
            "task_id": task["task_id"], "lease": task["lease"], "status": "completed", "output": 1})
        counts["accepted" if status == 200 else "refused"] += 1
        jobs.append(time.monotonic() - begun - 0.05)
        _, job = tenant.ask("GET", f"/api/v1/jobs/{job['job_id']}")
        counts["completed" if job["status"] == "COMPLETED" else "not completed"] += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--expression", default="{{ (inputs.u | unique | length) + item }}")
    parser.add_argument("--restart", action="store_true")
    options = parser.parse_args()
    server = Server()
    try:
        tokens = {}
        for name in ("greedy", "small"):
            made = subprocess.run([BINARY, "token", "create", "--role", "admin", "--tenant", name, "--data", server._data],
                                  capture_output=True, text=True, check=True)
            tokens[name] = made.stdout.split()[0]
        server.kill()
        server.start()
        greedy = Tenant(server.url, tokens["greedy"])
        print(*greedy.ask("POST", "/api/v1/workflows", GREEDY.format(expression=options.expression)))
        small = Tenant(server.url, tokens["small"])
        names = [f"small{i}" for i in range(4)]
        for name in names:
            print(*small.ask("POST", "/api/v1/workflows", SMALL.replace("NAME", name)))
        attack = {"u": list(range(options.elements)), "items": list(range(options.items))}
        job_id = ""

        def submit() -> None:
            nonlocal job_id
            _, job = greedy.ask("POST", "/api/v1/jobs", {"workflow_id": "greedy", "input_data": attack})
            job_id = job["job_id"]

        thread = threading.Thread(target=submit)
        thread.start()
        if options.restart:
            thread.join()
            server.kill()
            server.start()
        time.sleep(1)
        until, jobs, counts = time.monotonic() + options.seconds, [], collections.Counter()
        tenants = [Tenant(server.url, tokens["small"]) for _ in names]
        threads = [threading.Thread(target=small_jobs, args=(each, name, until, jobs, counts))
                   for each, name in zip(tenants, names)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        thread.join()
        times = [each for tenant in tenants for each in tenant.times]
        print(f"requests: {len(times)}, p50 {percentile(times, .5)}, p99 {percentile(times, .99)}, max {percentile(times, 1)}")
        print(f"jobs: {len(jobs)}, p50 {percentile(jobs, .5)}, p99 {percentile(jobs, .99)}, max {percentile(jobs, 1)}")
        print(f"results: {counts['accepted']} accepted, {counts['refused']} refused; "
              f"jobs: {counts['completed']} completed, {counts['not completed']} not")
        boss = Tenant(server.url, tokens["greedy"])
        _, node = boss.ask("GET", f"/api/v1/jobs/{job_id}/nodes/split")
        print(f"fan-out: {node['items']['created']} of {options.items} items made")
        boss.times.clear()
        status, _ = boss.ask("POST", f"/api/v1/jobs/{job_id}/cancel", {})
        print(f"cancel: {status} after {percentile(boss.times, 1)}")
        metrics = http.client.HTTPConnection(boss.host)
        metrics.request("GET", "/metrics", headers={"Authorization": "Bearer " + tokens["small"]})
        lines = metrics.getresponse().read().decode().splitlines()
        slow_turns = [line for line in lines if line.startswith("baton_engine_slow_turns_total")]
        assert slow_turns, "the server does not count slow turns under this name"
        print(*slow_turns, sep="\n")
    finally:
        server.close()


if __name__ == "__main__":
    main()
