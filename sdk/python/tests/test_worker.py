from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any

from baton import ApiError, Cancelled, Client, Context, TaskFailed, Worker

from .server import PATIENCE, SDK, Server, ServerCase, bounded_worker, eventually, in_threads, read_line


class WorkerTest(ServerCase):
    def worker(self, queue: str, poll_seconds: float = 5.0, **options: Any) -> Worker:
        return bounded_worker(self.client, queue, poll_seconds=poll_seconds, **options)

    def test_a_function_does_a_task(self) -> None:
        name = self.publish("greet")
        worker = self.worker(name, name="py-1")

        @worker.task("greet")
        def greet(ctx: Context, name: str, greeting: str = "Hello") -> dict[str, Any]:
            mine = {"attempt": ctx.attempt, "task": ctx.task_id, "job": ctx.job_id, "node": ctx.node_id}
            return {"text": f"{greeting}, {name}", **mine}

        with worker:
            job = self.client.submit(name, {"name": "Ada"}, wait=20)
        self.assertEqual(job.status, "COMPLETED", job.error)
        expected = {"text": "Hello, Ada", "attempt": 1, "task": f"{job.job_id}_work_0", "job": job.job_id, "node": "work"}
        self.assertEqual(job.result_data, {"work": expected})
        self.assertEqual(self.client.job(job.job_id).nodes["work"].worker_id, "py-1")

    def test_params_come_as_arguments_or_as_a_whole(self) -> None:
        name = "params"
        handlers = ["named", "whole", "rest"]
        lines = "".join(f"  {h}: {{type: task, handler: {h}, queue: {name}, next: end}}\n" for h in handlers)
        start = f"workflow_id: {name}\nnodes:\n  start: {{type: start, next: [{', '.join(handlers)}]}}\n"
        self.client.publish(start + lines + "  end: {type: end}\n")
        worker = self.worker(name)

        @worker.task
        def named(ctx: Context, a: int, *, b: int = 5, c: int = 7) -> list[int]:
            return [a, b, c]

        @worker.task()
        def whole(ctx: Context, params: dict[str, Any]) -> dict[str, Any]:
            return params

        @worker.task("rest")
        def differently_named(ctx: Context, **rest: Any) -> list[str]:
            return sorted(rest)

        with worker:
            job = self.client.submit(name, {"a": 1, "b": 2}, wait=20)
        self.assertEqual(job.result_data, {"named": [1, 2, 7], "whole": {"a": 1, "b": 2}, "rest": ["a", "b"]})

    def test_params_that_do_not_fit_fail_the_task_and_say_why(self) -> None:
        name = self.publish("one")
        worker = self.worker(name)

        @worker.task
        def one(ctx: Context, a: int) -> int:
            return a

        with worker:
            missing = self.client.submit(name, {}, wait=20)
            unknown = self.client.submit(name, {"a": 1, "typo": 2}, wait=20)
        self.assertIn("missing a required argument: 'a'", missing.error or "")
        self.assertIn("unexpected keyword argument 'typo'", unknown.error or "")

    def test_a_function_that_cannot_be_a_task_is_refused(self) -> None:
        worker = self.worker("q")

        async def later(ctx: Context) -> None: ...
        functions: list[Any] = [lambda: None, lambda **rest: None, later]
        for function in functions:
            with self.assertRaises(TypeError):
                worker.task("x")(function)
        worker.task("x")(lambda ctx: None)
        with self.assertRaises(ValueError):
            worker.task("x")(lambda ctx: None)
        with self.assertRaises(ValueError):
            self.worker("q", concurrency=0)

    def test_an_exception_fails_the_task_with_its_type_and_message(self) -> None:
        name = self.publish("divide")
        worker = self.worker(name)

        @worker.task
        def divide(ctx: Context, by: int) -> float:
            if by < 0:
                raise TaskFailed("negative numbers are not my thing")
            return 1 / by

        with worker, self.assertLogs("baton", "ERROR") as logs:
            failed = self.client.submit(name, {"by": 0}, wait=20)
            refused = self.client.submit(name, {"by": -1}, wait=20)
        self.assertEqual(failed.status, "FAILED")
        self.assertIn("ZeroDivisionError: division by zero", failed.error or "")
        self.assertIn("negative numbers are not my thing", refused.error or "")
        self.assertNotIn("TaskFailed", refused.error or "")
        self.assertEqual(len(logs.records), 1)  # the traceback of the one that was not on purpose
        self.assertIn("Traceback", logs.output[0])

    def test_a_failed_attempt_is_tried_again(self) -> None:
        name = self.publish("flaky", attempts=3)
        worker = self.worker(name)

        @worker.task
        def flaky(ctx: Context) -> int:
            if ctx.attempt < 3:
                raise TaskFailed(f"attempt {ctx.attempt}")
            return ctx.attempt

        with worker:
            job = self.client.submit(name, wait=20)
        self.assertEqual(job.result_data, {"work": 3})
        self.assertEqual(self.events(job.job_id).count("node_retry"), 2)

    def test_a_task_nobody_knows_fails_and_names_the_known(self) -> None:
        name = self.publish("unknown")
        worker = self.worker(name)
        worker.task("known")(lambda ctx: None)
        with worker:
            job = self.client.submit(name, wait=20)
        self.assertIn("has no task 'unknown' (it has: known)", job.error or "")

    def test_output_that_cannot_be_sent_fails_its_task_only(self) -> None:
        name = self.publish("give")
        worker = self.worker(name, heartbeat_seconds=0.5)
        nested: list[Any] = []
        for _ in range(100):
            nested = [nested]
        outputs = {"object": object(), "nan": float("nan"), "deep": nested, "big": "x" * 5_000_000, "surrogate": "\ud800",
                   "good": "fine"}

        @worker.task
        def give(ctx: Context, what: str) -> Any:
            return outputs[what]

        # All are in the queue before the worker begins, so that their results share a request.
        jobs = {what: self.client.submit(name, {"what": what}).job_id for what in outputs}
        with self.assertLogs("baton", "ERROR"), worker:
            ended = {what: self.client.wait(job_id, 20) for what, job_id in jobs.items()}
        expected = {**dict.fromkeys(outputs, "FAILED"), "good": "COMPLETED"}
        self.assertEqual({what: job.status for what, job in ended.items()}, expected)
        self.assertIn("cannot be written as JSON", ended["object"].error or "")
        self.assertIn("cannot be written as JSON", ended["nan"].error or "")
        for what in ("deep", "big", "surrogate"):
            self.assertIn("the server did not take the output", ended[what].error or "", what)

    def test_large_results_go_in_several_requests(self) -> None:
        name = self.publish("large")
        sizes: list[int] = []

        class Recording(Client):
            def _once(self, method: str, path: str, body: Any = None, *more: Any, **options: Any) -> Any:
                if path.endswith("task-results"):
                    sizes.append(len(body))
                return super()._once(method, path, body, *more, **options)

        all_there = threading.Barrier(20)
        worker = bounded_worker(Recording(self.server.url), name, concurrency=20)
        worker.task("large")(lambda ctx: "x" * 300_000 * (all_there.wait(20) >= 0))
        jobs = [self.client.submit(name).job_id for _ in range(20)]
        with worker:
            self.assertEqual({self.client.wait(job_id, 20).status for job_id in jobs}, {"COMPLETED"})
        self.assertGreater(sum(sizes), 6_000_000)
        self.assertLess(max(sizes), 1_100_000)

    def test_five_hundred_tasks_run_eight_at_a_time_and_once_each(self) -> None:
        name = self.publish("count")
        calls: collections.Counter[int] = collections.Counter()
        running, most, lock = 0, 0, threading.Lock()
        worker = self.worker(name)

        @worker.task
        def count(ctx: Context, n: int) -> int:
            nonlocal running, most
            with lock:
                calls[n] += 1
                running += 1
                most = max(most, running)
            time.sleep(0.002)
            with lock:
                running -= 1
            return n * n

        jobs: dict[int, str] = {}

        def submit(first: int) -> None:
            for n in range(first, 500, 8):
                jobs[n] = self.client.submit(name, {"n": n}).job_id

        with worker:
            in_threads(8, submit)
            for n, job_id in jobs.items():
                self.assertEqual(self.client.wait(job_id, 20).result_data, {"work": n * n})
        self.assertEqual(len(jobs), 500)
        self.assertEqual(set(calls.values()), {1})
        self.assertEqual(len(calls), 500)
        self.assertGreater(most, 1)
        self.assertLessEqual(most, 8)

    def test_a_reserve_is_held_beyond_the_threads(self) -> None:
        name = self.publish("slow")
        jobs = [self.client.submit(name).job_id for _ in range(6)]
        go = threading.Event()
        worker = self.worker(name, concurrency=1, prefetch=2)
        worker.task("slow")(lambda ctx: go.wait(20))
        with worker:

            def running() -> int:
                return [self.client.job(job_id).nodes["work"].status for job_id in jobs].count("RUNNING")

            eventually(lambda: running() == 3, "one task runs and two are held")
            time.sleep(0.1)
            self.assertEqual(running(), 3)
            go.set()
            for job_id in jobs:
                self.assertTrue(self.client.wait(job_id, 20).completed)

    def test_cancelling_reaches_the_running_task(self) -> None:
        name = self.publish("endless")
        worker = self.worker(name, heartbeat_seconds=0.1)
        begun, stopped = threading.Event(), threading.Event()
        reason: list[type] = []

        @worker.task
        def endless(ctx: Context) -> None:
            begun.set()
            try:
                while not ctx.cancelled.is_set():
                    ctx.sleep(20)
            except Cancelled as error:
                reason.append(type(error))
                raise
            finally:
                stopped.set()

        with self.assertNoLogs("baton", "WARNING"), worker:
            job = self.client.submit(name)
            self.assertTrue(begun.wait(20))
            self.client.cancel(job.job_id)
            self.assertTrue(stopped.wait(20))
        self.assertEqual(reason, [Cancelled])
        self.assertEqual(self.client.job(job.job_id).status, "CANCELLED")

    def test_a_cancelled_task_that_returns_all_the_same_reports_nothing(self) -> None:
        name = self.publish("stubborn")
        worker = self.worker(name, heartbeat_seconds=0.1)
        begun = threading.Event()

        @worker.task
        def stubborn(ctx: Context) -> str:
            begun.set()
            ctx.cancelled.wait(20)
            return "done"

        with self.assertNoLogs("baton", "WARNING"), worker:  # a result would be refused, with a warning
            job = self.client.submit(name)
            self.assertTrue(begun.wait(20))
            self.client.cancel(job.job_id)

    def test_the_result_of_an_old_lease_is_refused_and_dropped(self) -> None:
        name = self.publish("zombie", attempts=2, timeout=1)
        worker = self.worker(name, heartbeat_seconds=60)  # it hears of nothing

        @worker.task
        def zombie(ctx: Context) -> int:
            if ctx.attempt == 1:
                time.sleep(1.5)
            return ctx.attempt

        with self.assertLogs("baton", "WARNING") as logs, worker:
            job = self.client.submit(name, wait=20)
        self.assertEqual(job.result_data, {"work": 2})
        self.assertEqual(len(logs.records), 1)
        self.assertIn(f"the result of {job.job_id}_work_0 is dropped: stale_result", logs.output[0])
        with self.assertRaises(ApiError) as refused:
            body = {"task_id": f"{job.job_id}_work_0", "lease": "0.1", "status": "completed", "output": 1}
            self.client.request("POST", "/callbacks/task-result", body)
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "stale_result"))

    def test_stopping_finishes_what_has_begun_and_takes_nothing_new(self) -> None:
        name = self.publish("slow")
        worker = self.worker(name, concurrency=2, poll_seconds=30.0)
        begun = threading.Semaphore(0)

        @worker.task
        def slow(ctx: Context) -> str:
            begun.release()
            time.sleep(0.4)
            return "done"

        jobs = [self.client.submit(name).job_id for _ in range(4)]
        with worker:
            for _ in range(2):
                self.assertTrue(begun.acquire(timeout=PATIENCE))
        ended = {job_id: self.client.job(job_id).status for job_id in jobs}  # in any order, if made in one millisecond
        self.assertEqual(sorted(ended.values()), ["COMPLETED", "COMPLETED", "RUNNING", "RUNNING"])
        waiting = [job_id for job_id, status in ended.items() if status == "RUNNING"]
        self.assertEqual([self.client.job(job_id).nodes["work"].status for job_id in waiting], ["DISPATCHED", "DISPATCHED"])
        with worker:  # and it can be started again
            for job_id in jobs:
                self.assertTrue(self.client.wait(job_id, 20).completed)

    def test_an_idle_worker_stops_at_once(self) -> None:
        worker = self.worker("nothing_here", poll_seconds=30.0)
        begun = time.monotonic()
        with worker:
            time.sleep(0.2)
        self.assertLess(time.monotonic() - begun, 5)

    def test_the_drain_has_an_end_if_one_was_set(self) -> None:
        name = self.publish("hangs")
        worker = self.worker(name, drain_seconds=0.2)
        begun, go, told = threading.Event(), threading.Event(), threading.Event()

        @worker.task
        def hangs(ctx: Context) -> None:
            begun.set()
            if ctx.cancelled.wait(20):
                told.set()
            go.wait(20)

        self.client.submit(name)
        started = time.monotonic()
        with self.assertLogs("baton", "WARNING") as logs, worker:
            self.assertTrue(begun.wait(20))
        self.assertLess(time.monotonic() - started, 10)
        self.assertTrue(told.wait(20))
        self.assertIn("leaves 1 tasks behind", logs.output[0])
        go.set()

    def test_what_cannot_get_better_ends_the_worker(self) -> None:
        worker = Worker(Client(self.server.url, token="wrong"), "q")
        impatience = threading.Timer(PATIENCE, worker.stop)  # run() has no bound: then it returns, and nothing is raised
        impatience.start()
        self.addCleanup(impatience.cancel)
        with self.assertLogs("baton", "ERROR"), self.assertRaises(ApiError) as refused:
            worker.run(signals=False)
        self.assertEqual(refused.exception.status, 401)


class SignalTest(ServerCase):
    SCRIPT = """
import signal, sys, threading, time
from baton import Client, Worker
worker = Worker(Client(sys.argv[1]), sys.argv[2], concurrency=2)
@worker.task
def slow(ctx, seconds):
    print("begun", flush=True)
    time.sleep(seconds)
    return "done"
@worker.task
def stop_yourself(ctx):
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
print("ready", flush=True)
worker.run()
print("ended", flush=True)
"""

    def process(self, queue: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen([sys.executable, "-c", self.SCRIPT, self.server.url, queue], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        self.assertEqual(read_line(process), "ready\n")
        return process

    def test_sigterm_drains_and_ends_the_process(self) -> None:
        name = self.publish("slow")
        process = self.process(name)
        job = self.client.submit(name, {"seconds": 0.5})
        self.assertEqual(read_line(process), "begun\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(read_line(process), "ended\n")
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(self.client.job(job.job_id).completed)

    def test_a_signal_that_does_not_wake_the_main_thread_is_heard(self) -> None:
        name = self.publish("stop_yourself")
        process = self.process(name)
        job = self.client.submit(name)
        self.assertEqual(read_line(process), "ended\n")
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(self.client.job(job.job_id).completed)

    def test_a_second_signal_does_not_wait(self) -> None:
        name = self.publish("slow")
        process = self.process(name)
        self.client.submit(name, {"seconds": 600})
        self.assertEqual(read_line(process), "begun\n")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 0)


class CrashTest(ServerCase):
    def test_every_job_completes_once_though_the_server_is_killed(self) -> None:
        name = self.publish("step")
        jobs: list[str] = []
        in_threads(4, lambda _: jobs.extend(self.client.submit(name).job_id for _ in range(50)))
        worker = bounded_worker(self.client, name, concurrency=8, heartbeat_seconds=0.2)
        calls: collections.Counter[str] = collections.Counter()
        at_the_gate, gate, lock = threading.Semaphore(0), threading.Event(), threading.Lock()

        @worker.task
        def step(ctx: Context) -> str:
            with lock:
                calls[ctx.job_id] += 1
                begun = calls.total()
            if begun > 60:
                at_the_gate.release()
                self.assertTrue(gate.wait(20))
            return ctx.task_id

        with self.assertLogs("baton", "WARNING"), worker:
            # With all threads busy there is no poll on its way: its tasks would be lost with it, until their leases run out.
            for _ in range(8):
                self.assertTrue(at_the_gate.acquire(timeout=20))
            self.server.kill()
            gate.set()
            time.sleep(0.5)
            self.server.start()
            ended = [self.client.wait(job_id, 20) for job_id in jobs]
        self.assertEqual((len(calls), set(calls.values())), (200, {1}))
        for job in ended:
            self.assertEqual(job.result_data, {"work": f"{job.job_id}_work_0"})
            events = self.events(job.job_id)
            self.assertEqual([events.count(e) for e in ("node_started", "node_completed", "job_completed")], [1, 1, 1])

    def test_a_result_waits_for_the_server_to_come_back(self) -> None:
        name = self.publish("patient")
        worker = bounded_worker(self.client, name)
        begun, go = threading.Event(), threading.Event()

        @worker.task
        def patient(ctx: Context) -> str:
            begun.set()
            go.wait(20)
            return "kept"

        with self.assertLogs("baton", "WARNING"), worker:
            job = self.client.submit(name)
            self.assertTrue(begun.wait(20))
            self.server.kill()
            go.set()
            time.sleep(0.5)
            self.server.start()
            self.assertEqual(self.client.wait(job.job_id, 20).result_data, {"work": "kept"})
        self.assertEqual(self.events(job.job_id).count("node_started"), 1)


class ExampleTest(unittest.TestCase):
    def test_the_thumbnails_example_runs_as_it_is(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        environment = {**os.environ, "BATON_SERVER": server.url, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        script = str(SDK / "examples/thumbnails_worker.py")
        done = subprocess.run([sys.executable, script, "--demo"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("is COMPLETED", done.stdout)
        self.assertIn("large: 128 x 96, ", done.stdout)
        self.assertIn("small: 32 x 24, ", done.stdout)
        for line in done.stdout.splitlines()[1:]:
            with open(line.split(", ")[1], "rb") as picture:
                self.assertEqual(picture.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
