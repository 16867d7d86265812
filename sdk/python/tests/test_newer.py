"""What only newer servers have. Each test names what it needs, and is left out only if the server's own description lacks that."""

from __future__ import annotations

import json
import re
import threading
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, TypeVar

from baton import ApiError, Context, TaskFailed, Worker

from .server import ServerCase, bounded_worker, eventually

T = TypeVar("T", bound=Callable[..., None])


def needs(*paths: str) -> Callable[[T], T]:
    def mark(test: T) -> T:
        test.needs = paths  # type: ignore[attr-defined]
        return test

    return mark


class NewerServerTest(ServerCase):
    paths: set[str]
    submit_fields: set[str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        description = cls.client.request("GET", "/openapi.json")
        cls.paths = {re.sub(r"{.*?}", "{}", path.replace("/api/v1", "", 1)) for path in description["paths"]}
        cls.submit_fields = set()
        for schema in description["components"]["schemas"].values():
            if {"workflow_id", "input_data"} <= set(schema.get("required", [])) | set(schema.get("properties", {})):
                cls.submit_fields |= set(schema.get("properties", {}))

    def setUp(self) -> None:
        for need in getattr(getattr(self, self._testMethodName), "needs"):
            if need not in (self.paths if need.startswith("/") else self.submit_fields):
                self.skipTest(f"this server has no {need}")

    def worker(self, queue: str, function: Any, **options: Any) -> Worker:
        worker = bounded_worker(self.client, queue, poll_seconds=5.0, **options)
        worker.task("work")(function)
        return worker

    @needs("priority", "tags")
    def test_a_higher_priority_goes_first(self) -> None:
        name = self.publish("work")
        order: list[int] = []
        jobs = [self.client.submit(name, {"n": n}, priority=n, tags=["sdk"]) for n in (0, -5, 10)]
        with self.worker(name, lambda ctx, n: order.append(n), concurrency=1):
            for job in jobs:
                self.assertTrue(self.client.wait(job.job_id, 20).completed)
        self.assertEqual(order, [10, 0, -5])
        shown = self.client.job(jobs[2].job_id)
        self.assertEqual((shown.priority, shown.tags), (10, ["sdk"]))
        with self.assertRaises(ApiError) as refused:
            self.client.submit(name, priority=101)
        self.assertEqual([one["field"] for one in refused.exception.errors], ["priority"])

    @needs("due_at")
    def test_a_job_is_not_begun_before_it_is_due(self) -> None:
        name = self.publish("work")
        with self.worker(name, lambda ctx: None):
            due = datetime.now(timezone.utc) + timedelta(seconds=1)
            job = self.client.submit(name, due_at=due, wait=20)
        self.assertTrue(job.completed, job)
        assert job.completed_at is not None
        self.assertGreaterEqual(job.completed_at, due - timedelta(milliseconds=2))

    @needs("/jobs/{}/pause", "/jobs/{}/resume")
    def test_a_paused_job_waits_to_be_resumed(self) -> None:
        name = self.publish("work")
        job = self.client.submit(name)
        self.client.pause(job.job_id, "lunch", by="me")
        with self.worker(name, lambda ctx: None):
            with self.assertRaises(TimeoutError):
                self.client.wait(job.job_id, 0.5)
            self.client.resume(job.job_id)
            self.assertTrue(self.client.wait(job.job_id, 20).completed)

    @needs("/jobs/{}/retry", "/jobs/{}/rerun")
    def test_a_failed_job_is_taken_up_again_or_run_anew(self) -> None:
        name = self.publish("work")
        broken = threading.Event()
        broken.set()

        def work(ctx: Context) -> str:
            if broken.is_set():
                raise TaskFailed("broken")
            return "mended"

        with self.worker(name, work):
            job = self.client.submit(name, wait=20)
            self.assertEqual(job.status, "FAILED")
            broken.clear()
            self.assertEqual(self.client.retry(job.job_id).job_id, job.job_id)
            eventually(lambda: self.client.job(job.job_id).completed, "the job is completed")
            new = self.client.rerun(job.job_id)
            self.assertNotEqual(new.job_id, job.job_id)
            self.assertEqual(self.client.wait(new.job_id, 20).result_data, {"work": "mended"})

    @needs("/jobs/{}/nodes/{}/approve", "/jobs/{}/nodes/{}/reject", "/approvals")
    def test_a_person_approves_or_rejects(self) -> None:
        self.client.publish("workflow_id: gate\nnodes:\n  start: {type: start, next: gate}\n"
                            "  gate: {type: approval, message: really?, next: end}\n  end: {type: end}\n")
        yes, no = (self.client.submit("gate").job_id for _ in range(2))
        eventually(lambda: {one.job_id for one in self.client.approvals()} >= {yes, no}, "both are listed")
        asked = next(one for one in self.client.approvals() if one.job_id == yes)
        self.assertEqual((asked.node_id, asked.message, asked.timeout_at), ("gate", "really?", None))
        self.assertIsNotNone(asked.since)
        self.client.approve(yes, "gate", by="me", comment="fine")
        self.client.reject(no, "gate", by="me", comment="no")
        self.assertTrue(self.client.wait(yes, 20).completed)
        self.assertEqual(self.client.wait(no, 20).status, "FAILED")

    @needs("/jobs/{}/why")
    def test_a_waiting_job_says_why(self) -> None:
        job = self.client.submit(self.publish("work"))
        why = self.client.why(job.job_id)
        self.assertTrue(why.summary)
        self.assertEqual([(one.node_id, one.queue) for one in why.waiting], [("work", self._testMethodName), ("end", None)])
        self.assertTrue(why.waiting[0].reason and why.waiting[0].message)

    @needs("/workers")
    def test_workers_are_listed_with_what_they_run(self) -> None:
        name = self.publish("work")
        go = threading.Event()
        with self.worker(name, lambda ctx: go.wait(20), name="py-7", heartbeat_seconds=0.1):
            job = self.client.submit(name)
            task = f"{job.job_id}_work_0"
            eventually(lambda: any(one.worker == "py-7" and task in one.running for one in self.client.workers()), "it runs")
            shown = next(one for one in self.client.workers() if one.worker == "py-7")
            self.assertEqual((shown.queues, shown.running_count, shown.running), ([name], 1, [task]))
            assert shown.first_seen_at is not None and shown.last_seen_at is not None
            self.assertLessEqual(shown.first_seen_at, shown.last_seen_at)
            go.set()
            self.client.wait(job.job_id, 20)
            counts = [(one.completed, one.failed) for one in self.client.workers() if one.worker == "py-7"]
            self.assertEqual(counts, [(1, 0)])

    @needs("/jobs/{}")
    def test_large_results_are_whole(self) -> None:
        name = self.publish("work")
        text = "x" * 100_000
        with self.worker(name, lambda ctx, text: text):
            job = self.client.wait(self.client.submit(name, {"text": text}).job_id, 20)
        for seen in (job, self.client.job(job.job_id)):
            self.assertEqual((seen.result_data, seen.input_data), ({"work": text}, {"text": text}))
            self.assertEqual(seen.nodes["work"].output, text)

    @needs("/dead-letters", "/dead-letters/{}/replay")
    def test_there_are_no_dead_letters_and_none_to_replay(self) -> None:
        self.assertEqual(list(self.client.dead_letters()), [])
        with self.assertRaises(ApiError) as refused:
            self.client.replay("nothing_work_0")
        self.assertEqual(refused.exception.status, 404)

    @needs("/callbacks/task-progress", "/callbacks/task-checkpoint")
    def test_a_checkpoint_reaches_the_next_attempt(self) -> None:
        name = self.publish("work", attempts=2)

        def work(ctx: Context) -> Any:
            ctx.progress(50, "half way")
            if ctx.attempt == 1:
                ctx.checkpoint({"row": 7})
                raise TaskFailed("once")
            return ctx.last_checkpoint

        with self.worker(name, work), self.assertNoLogs("baton", "WARNING"):
            job = self.client.submit(name, wait=20)
        self.assertEqual(job.result_data, {"work": {"row": 7}})

    @needs("/callbacks/task-log", "/jobs/{}/nodes/{}/logs")
    def test_what_a_task_logs_is_kept(self) -> None:
        name = self.publish("work")

        def work(ctx: Context) -> None:
            for n in range(20):
                ctx.log(f"line {n}")

        with self.worker(name, work):
            job = self.client.submit(name, wait=20)
        self.assertEqual([line["text"] for line in self.client.logs(job.job_id, "work")], [f"line {n}" for n in range(20)])

    @needs("/jobs/{}/nodes/{}/items")
    def test_the_items_of_a_fan_out_are_listed(self) -> None:
        task = {"handler": "work", "queue": "items", "params": {"n": "{{ item }}"}}
        self.client.publish("workflow_id: items\nnodes:\n  start: {type: start, next: each}\n"
                            f"  each: {{type: fan_out, source: '{{{{ inputs.all }}}}', task: {json.dumps(task)}, next: all}}\n"
                            "  all: {type: fan_in, aggregation: collect, next: end}\n  end: {type: end}\n")
        with self.worker("items", lambda ctx, n: n * n):
            job = self.client.submit("items", {"all": list(range(300))}, wait=20)
        self.assertTrue(job.completed, job)
        self.assertEqual(len(list(self.client.items(job.job_id, "each"))), 300)

    @needs("/runbooks", "/runbooks/{}/batches", "/batches/{}", "/batches/{}/advance", "/batches/{}/failures", "/batches/{}/members:retry")
    def test_a_batch_goes_through_its_phases_with_functions_of_ours(self) -> None:
        self.assertTrue(self.client.publish_runbook(RUNBOOK).created)
        self.assertFalse(self.client.publish_runbook(RUNBOOK).created)
        self.assertTrue(self.client.validate_runbook(RUNBOOK)["valid"])
        self.assertFalse(self.client.validate_runbook("name: x")["valid"])
        self.assertEqual([one.name for one in self.client.runbooks()], ["sdk"])
        self.assertEqual(self.client.runbook("sdk").yaml_content, RUNBOOK)

        worker = bounded_worker(self.client, "sdk-pool", poll_seconds=5.0)
        polls: dict[str, int] = {}
        mended = threading.Event()

        @worker.task("New-User")
        def new_user(ctx: Context, Upn: str) -> dict[str, str]:
            ctx.progress(50)  # dropped
            ctx.log("creating " + Upn)
            if Upn == "bad@x" and not mended.is_set():
                raise TaskFailed("the name is taken")
            return {"id": "id of " + Upn}

        @worker.task("Start-Move")
        def start_move(ctx: Context, Id: str) -> dict[str, Any]:
            polls[Id] = polls.get(Id, 0) + 1
            return {"complete": polls[Id] == 3, "data": {"moved": ctx.batch_id}}

        @worker.task("Disable-User")
        def disable_user(ctx: Context, Upn: str) -> None:
            polls["disabled " + Upn] = 1

        with worker:
            batch = self.client.create_batch("sdk", "Upn\nada@x\nbad@x\nbob@x\n", by="me")
            self.assertTrue(batch.is_manual)
            self.assertEqual(self.client.advance_batch(batch.id, by="me").note, "prepare")
            eventually(lambda: self.phases(batch.id)[0] == "prepare completed", "prepare has ended")
            (failed,) = self.client.failures(batch.id)
            self.assertEqual((failed.member_key, failed.step_name, failed.error_message), ("bad@x", "create", "the name is taken"))
            self.assertEqual([one.member_key for one in self.client.members(batch.id, status="failed")], ["bad@x"])
            mended.set()
            self.assertEqual(self.client.retry_members(batch.id, by="me")["count"], 1)
            self.assertEqual(self.client.remove_members(batch.id, ["bob@x"])["count"], 1)
            eventually(lambda: "disabled bob@x" in polls, "what is done for members that leave is done")
            eventually(lambda: not list(self.client.failures(batch.id)), "the retry has helped")
            self.client.advance_batch(batch.id, "move")
            eventually(lambda: self.client.batch(batch.id).ended, "the batch has ended")
        self.assertEqual(self.client.batch(batch.id).status, "completed")
        self.assertEqual((polls["id of ada@x"], polls["id of bad@x"]), (3, 3))
        ada = next(iter(self.client.members(batch.id, full=True)))
        self.assertEqual(ada.worker_data_json, {"TargetId": "id of ada@x"})
        self.assertEqual(len(self.client.matrix(batch.id)["members"]), 3)
        self.assertEqual([one.id for one in self.client.batches(runbook="sdk")], [batch.id])

    def phases(self, batch_id: int) -> list[str]:
        return [f"{phase.phase_name} {phase.status}" for phase in self.client.batch(batch_id).phases]

    @needs("/runbooks", "/batches/{}/pause", "/batches/{}/resume", "/batches/{}/cancel", "/events", "/callbacks/worker-result")
    def test_a_batch_is_steered_and_other_systems_may_talk(self) -> None:
        self.client.publish_runbook(RUNBOOK.replace("name: sdk", "name: steered").replace("sdk-pool", "nobody"))
        batch = self.client.create_batch("steered", "Upn\nada@x\n")
        self.assertIsNotNone(self.client.pause_batch(batch.id, "lunch", by="me").paused_at)
        self.assertIsNone(self.client.resume_batch(batch.id).paused_at)
        phase = self.client.batch(batch.id).phases[0]
        due = {"messageType": "phase-due", "runbookName": "steered", "runbookVersion": 1, "batchId": batch.id,
               "phaseExecutionId": phase.id, "phaseName": phase.phase_name, "offsetMinutes": phase.offset_minutes, "memberIds": []}
        self.assertTrue(self.client.send_events(due)["accepted"])
        self.assertEqual(len(self.client.send_events([due, due])["results"]), 2)
        (job,) = self.client.request("POST", "/workers/nobody/jobs:poll", {"wait_ms": 5000})["jobs"]
        result = {"jobId": job["jobId"], "status": "Failure", "error": {"message": "no"}, "correlationData": job["correlationData"]}
        self.assertTrue(self.client.report_worker_result(result)["accepted"])
        self.assertEqual(self.client.cancel_batch(batch.id, "enough", by="me").status, "cancelled")


RUNBOOK = """name: sdk
data_source: {type: csv, connection: SDK_CSV, primary_key: Upn, batch_time: immediate}
phases:
  - name: prepare
    offset: T-0
    steps:
      - {name: create, worker_id: sdk-pool, function: New-User, params: {Upn: "{{Upn}}"}, output_params: {TargetId: id}}
  - name: move
    offset: T+1d
    steps:
      - {name: move, worker_id: sdk-pool, function: Start-Move, params: {Id: "{{TargetId}}"}, poll: {interval: 1s, timeout: 1h}}
on_member_removed:
  - {name: disable, worker_id: sdk-pool, function: Disable-User, params: {Upn: "{{Upn}}"}}
"""
