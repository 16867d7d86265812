"""What the client asks for, seen by a server that writes it down. For what the real server need not have, and for bad moments."""

from __future__ import annotations

import http.server
import json
import threading
import time
import unittest
from datetime import datetime, timezone
from typing import Any

from baton import ApiError, Client, Context, NewCall, Task, Unreachable, Worker

from .server import PATIENCE, HttpServer, bounded_worker, eventually

Answer = Any  # a body, or (status, body), or None: hang up; or a function that returns one of these


class FakeServer(HttpServer):
    """Answers by method and path; a list of answers is used up one by one, the last one stays."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.closes = False  # after each answer, without having said so
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = PATIENCE  # of reading

            def respond(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                sent = self.rfile.read(length).decode()
                is_json = self.headers.get("Content-Type") == "application/json"
                body = (json.loads(sent) if is_json else sent) if length else None
                key = f"{self.command} {self.path.replace('/api/v1', '', 1)}"
                answer = answers.get(key, (404, {"code": "not_found", "detail": key}))
                if isinstance(answer, list):
                    answer = answer.pop(0) if len(answer) > 1 else answer[0]
                if callable(answer):
                    answer = answer()
                if "jobs:poll" in key and answer == {"jobs": []}:
                    time.sleep(0.05)
                fake.asked.append((key, body))
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer if isinstance(answer, tuple) else (200, answer)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                try:
                    self.end_headers()
                    self.wfile.write(data)
                    self.close_connection = fake.closes
                except OSError:
                    self.close_connection = True  # a worker that stops hangs up

            do_GET = do_POST = respond

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(Handler)

    def bodies(self, key: str) -> list[Any]:
        return [body for asked, body in self.asked if asked == key]


class FakeServerCase(unittest.TestCase):
    def fake(self, answers: dict[str, Answer], **options: Any) -> tuple[FakeServer, Client]:
        fake = FakeServer(answers)
        self.addCleanup(fake.close)
        return fake, Client(fake.url, **options)


JOB = {"job_id": "j", "status": "PAUSED", "priority": 5, "tags": ["a"], "due_at": "2030-01-01T00:00:00.000Z"}


class ClientContractTest(FakeServerCase):
    def test_a_job_may_have_priority_tags_and_a_time(self) -> None:
        fake, client = self.fake({"POST /jobs": (201, JOB)})
        due = datetime(2030, 1, 1, tzinfo=timezone.utc)
        job = client.submit("w", {"x": 1}, priority=5, tags=("a",), due_at=due, idempotency_key="k")
        client.submit("w", delay_seconds=1.5)
        expected = {"workflow_id": "w", "input_data": {"x": 1}, "priority": 5, "tags": ["a"],
                    "due_at": "2030-01-01T00:00:00.000Z", "idempotency_key": "k"}
        self.assertEqual(fake.asked[0][1], expected)
        self.assertEqual(set(fake.asked[1][1]), {"workflow_id", "delay_seconds", "idempotency_key"})
        self.assertEqual((job.priority, job.tags, job.due_at), (5, ["a"], due))

    def test_what_is_done_to_jobs(self) -> None:
        verbs = ("pause", "resume", "retry", "rerun")
        fake, client = self.fake({f"POST /jobs/j/{verb}": JOB for verb in verbs})
        self.assertEqual(client.pause("j", "lunch", by="me").status, "PAUSED")
        client.resume("j")
        client.retry("j")
        client.rerun("j", idempotency_key="k")
        bodies = [{"reason": "lunch", "by": "me"}, {}, {}, {"idempotency_key": "k"}]
        self.assertEqual(fake.asked, [(f"POST /jobs/j/{verb}", body) for verb, body in zip(verbs, bodies)])

    def test_what_people_decide(self) -> None:
        waiting = {"job_id": "j", "node_id": "n/1", "message": "go?", "params": {"message": "go?"},
                   "since": "2030-01-01T00:00:00.000Z", "timeout_at": None}
        fake, client = self.fake({
            "GET /approvals": {"approvals": [waiting], "next_cursor": "c"},
            "GET /approvals?cursor=c": {"approvals": [waiting], "next_cursor": None},
            "POST /jobs/j/nodes/n%2F1/approve": {}, "POST /jobs/j/nodes/n%2F1/reject": {}})
        found = list(client.approvals())
        self.assertEqual([(one.node_id, one.message, one.timeout_at) for one in found], [("n/1", "go?", None)] * 2)
        self.assertEqual(found[0].since, datetime(2030, 1, 1, tzinfo=timezone.utc))
        client.approve("j", "n/1", by="me", comment="fine")
        client.reject("j", "n/1", by="me")
        self.assertEqual([body for _, body in fake.asked[2:]], [{"by": "me", "comment": "fine"}, {"by": "me"}])
        self.assertEqual(found[0].params, {"message": "go?"})

    def test_what_is_shown_of_jobs_and_workers(self) -> None:
        waiting = {"node_id": "n", "status": "DISPATCHED", "reason": "no_worker", "message": "nobody polls", "queue": "q"}
        seen = {"worker": "w", "queues": ["p", "q"], "running_count": 1, "running": ["t"], "completed": 3, "failed": 1,
                "results_last_minute": 2, "polling": True, "first_seen_at": "2030-01-01T00:00:00.000Z",
                "last_seen_at": "2030-01-02T00:00:00.000Z", "more": 5}
        _, client = self.fake({
            "GET /jobs/j/why": {"job_id": "j", "status": "RUNNING", "summary": "it waits", "waiting": [waiting]},
            "GET /workers": {"workers": [seen]},
            "GET /dead-letters": {"dead_letters": [{"task_id": "t/0", "deliveries": 10}], "next_cursor": None},
            "POST /dead-letters/t%2F0/replay": {"replayed": True},
            "GET /jobs/j/nodes/n/items": {"items": [{"index": 0}], "next_after": 0},
            "GET /jobs/j/nodes/n/items?after=0": {"items": [], "next_after": 0},
            "GET /jobs/j/nodes/n/logs": {"lines": [{"text": "x"}]}})
        why = client.why("j")
        self.assertEqual((why.summary, why.waiting[0].reason, why.waiting[0].queue), ("it waits", "no_worker", "q"))
        (worker,) = client.workers()
        self.assertEqual((worker.queues, worker.running_count, worker.running, worker.polling), (["p", "q"], 1, ["t"], True))
        self.assertEqual((worker.completed, worker.failed, worker.results_last_minute, worker.raw["more"]), (3, 1, 2, 5))
        self.assertEqual(worker.first_seen_at, datetime(2030, 1, 1, tzinfo=timezone.utc))
        self.assertEqual(worker.last_seen_at, datetime(2030, 1, 2, tzinfo=timezone.utc))
        self.assertEqual([one.deliveries for one in client.dead_letters()], [10])
        self.assertEqual(client.replay("t/0"), {"replayed": True})
        self.assertEqual(list(client.items("j", "n")), [{"index": 0}])
        self.assertEqual(list(client.logs("j", "n")), [{"text": "x"}])

    def test_jobs_are_asked_for_with_all_their_data(self) -> None:
        large = {"job_id": "j", "status": "COMPLETED", "input_data": {}, "result_data": {"n": "x" * 70_000}}
        _, client = self.fake({f"GET /jobs/j?full=true{wait}": large for wait in ("", "&wait_ms=30000")})
        self.assertEqual(client.job("j").result_data, large["result_data"])
        self.assertEqual(client.wait("j").result_data, large["result_data"])

    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self) -> None:
        fake, client = self.fake({"POST /jobs": [None, (503, {"code": "overloaded"}), (201, JOB)]})
        client.submit("w")
        keys = {body["idempotency_key"] for _, body in fake.asked}
        self.assertEqual((len(fake.asked), len(keys)), (3, 1))

    def test_what_must_not_happen_twice_is_not_asked_twice(self) -> None:
        fake, client = self.fake({"POST /jobs/j/retry": [None, JOB]})
        with self.assertRaises(Unreachable) as lost:
            client.retry("j")
        self.assertTrue(lost.exception.sent)
        fake, client = self.fake({"POST /jobs/j/retry": [(503, {"code": "store_unavailable"}), JOB]})
        with self.assertRaises(ApiError):
            client.retry("j")
        self.assertEqual(len(fake.asked), 1)
        fake, client = self.fake({"POST /jobs/j/retry": [(503, {"code": "overloaded"}), JOB]})
        client.retry("j")  # here nothing has happened for certain
        self.assertEqual(len(fake.asked), 2)

    def test_a_connection_that_was_closed_meanwhile_is_not_used(self) -> None:
        fake, client = self.fake({"POST /jobs/j/retry": JOB})
        fake.closes = True
        for _ in range(3):
            client.retry("j")  # not safe to repeat: a broken connection would show
            time.sleep(0.05)
        self.assertEqual(len(fake.asked), 3)

    def test_an_answer_that_is_not_the_servers_is_an_error(self) -> None:
        _, client = self.fake({"GET /jobs/j?full=true": (502, b"<html>bad gateway"), "GET /jobs/k?full=true": b"<html>hello"},
                              retry_for=0)
        for job_id, status in (("j", 502), ("k", 200)):
            with self.assertRaises(ApiError) as refused:
                client.job(job_id)
            self.assertEqual((refused.exception.status, refused.exception.code), (status, "unexpected_answer"))


BATCH: dict[str, Any] = {"id": 7, "status": "active", "batch_start_time": "2030-01-05T20:00:00.000Z", "runbook_name": "mail",
                         "runbook_version": 2, "is_manual": False, "importing": False}


class RunbookContractTest(FakeServerCase):
    def test_runbooks_are_published_checked_and_shown(self) -> None:
        shown = {"id": 1, "name": "mail", "version": 2, "is_active": True, "created_at": "2030-01-01T00:00:00.000Z",
                 "last_error": "no such file", "last_error_at": "2030-01-02T00:00:00.000Z", "new": 1}
        fake, client = self.fake({
            "POST /runbooks": (201, {**shown, "created": True, "warnings": []}),
            "POST /runbooks?overdue_behavior=ignore&rerun_init=true": {**shown, "created": False, "warnings": [{"line": 3}]},
            "POST /runbooks/validate": {"valid": False, "errors": [{"line": 1}], "warnings": []},
            "GET /runbooks": {"runbooks": [shown], "next_cursor": "c"},
            "GET /runbooks?cursor=c": {"runbooks": [shown], "next_cursor": None},
            "GET /runbooks/m%2Fx?version=2": {**shown, "yaml_content": "name: mail"}})
        first = client.publish_runbook("name: mail\n")
        self.assertEqual((first.name, first.version, first.is_active, first.created), ("mail", 2, True, True))
        self.assertEqual(client.publish_runbook("x: 1", overdue_behavior="ignore", rerun_init=True).warnings, [{"line": 3}])
        self.assertFalse(client.validate_runbook("x: 1")["valid"])
        self.assertEqual([body for _, body in fake.asked], ["name: mail\n", "x: 1", "x: 1"])
        self.assertEqual([one.last_error for one in client.runbooks()], ["no such file"] * 2)
        one = client.runbook("m/x", 2)
        self.assertEqual((one.yaml_content, one.raw["new"]), ("name: mail", 1))
        self.assertEqual(one.last_error_at, datetime(2030, 1, 2, tzinfo=timezone.utc))

    def test_a_batch_is_made_from_a_table_and_never_twice(self) -> None:
        fake, client = self.fake({"POST /runbooks/mail/batches?by=ada": [(201, {**BATCH, "is_manual": True}), None]})
        self.assertTrue(client.create_batch("mail", "Upn\na@b\n", by="ada").is_manual)
        self.assertEqual(fake.asked[0][1], "Upn\na@b\n")
        with self.assertRaises(Unreachable):
            client.create_batch("mail", "Upn\na@b\n", by="ada")
        self.assertEqual(len(fake.asked), 2)

    def test_batches_are_listed_and_shown_with_their_phases(self) -> None:
        phase = {"id": 3, "phase_name": "prepare", "status": "completed", "offset_minutes": 7200, "counts": {"succeeded": 5},
                 "due_at": "2029-12-31T20:00:00.000Z"}
        _, client = self.fake({
            "GET /batches?runbook=mail&status=active&limit=1": {"batches": [BATCH], "next_cursor": "c"},
            "GET /batches/7": {**BATCH, "status": "completed", "members": {"active": 5, "failed": 1}, "phases": [phase]}})
        (listed,) = client.batches(runbook="mail", status="active", limit=1)
        self.assertEqual((listed.id, listed.runbook_name, listed.ended, listed.phases), (7, "mail", False, []))
        self.assertEqual(listed.batch_start_time, datetime(2030, 1, 5, 20, tzinfo=timezone.utc))
        batch = client.batch(7)
        self.assertTrue(batch.ended)
        self.assertEqual(batch.members, {"active": 5, "failed": 1})
        self.assertEqual([(one.phase_name, one.status, one.counts) for one in batch.phases],
                         [("prepare", "completed", {"succeeded": 5})])
        self.assertEqual(batch.phases[0].due_at, datetime(2029, 12, 31, 20, tzinfo=timezone.utc))

    def test_members_their_matrix_and_their_failures_are_shown(self) -> None:
        member = {"id": 9, "batch_id": 7, "member_key": "a@b", "status": "failed", "failed_at": "2030-01-05T21:00:00.000Z"}
        failed = {"id": 12, "member_key": "a@b", "phase_name": "cut-over", "step_name": "move", "status": "rolled_back",
                  "error_message": "too large", "retry_count": 2, "job_id": "step-12-retry-2"}
        matrix = {"batch_id": 7, "phases": [], "members": [{"id": 9, "cells": [None]}], "next_cursor": None}
        _, client = self.fake({
            "GET /batches/7/members?status=failed&full=true": {"members": [{**member, "data_json": {"Size": "5"}}], "next_cursor": "c"},
            "GET /batches/7/members?status=failed&full=true&cursor=c": {"members": [member], "next_cursor": None},
            "GET /batches/7/matrix?limit=10&cursor=c": matrix,
            "GET /batches/7/failures": {"failures": [failed], "next_cursor": None}})
        found = list(client.members(7, status="failed", full=True))
        self.assertEqual([(one.member_key, one.data_json) for one in found], [("a@b", {"Size": "5"}), ("a@b", None)])
        self.assertEqual(found[0].failed_at, datetime(2030, 1, 5, 21, tzinfo=timezone.utc))
        self.assertEqual(client.matrix(7, limit=10, cursor="c"), matrix)
        (step,) = client.failures(7)
        self.assertEqual((step.member_key, step.step_name, step.status, step.error_message, step.retry_count),
                         ("a@b", "move", "rolled_back", "too large", 2))

    def test_what_is_done_to_batches(self) -> None:
        fake, client = self.fake({f"POST /batches/7/{verb}": {**BATCH, "changed": True, "note": verb}
                                  for verb in ("advance", "pause", "resume", "cancel")})
        self.assertEqual(client.advance_batch(7, "verify", by="ada").note, "advance")
        client.advance_batch(7)
        client.pause_batch(7, "lunch", by="ada")
        client.resume_batch(7)
        client.cancel_batch(7, "no", by="ada")
        self.assertEqual([body for _, body in fake.asked],
                         [{"phase": "verify", "by": "ada"}, {}, {"reason": "lunch", "by": "ada"}, {}, {"reason": "no", "by": "ada"}])
        fake, client = self.fake({"POST /batches/7/advance": [None, BATCH]})
        with self.assertRaises(Unreachable):
            client.advance_batch(7)  # twice would begin two phases
        self.assertEqual(len(fake.asked), 1)

    def test_what_is_done_to_members(self) -> None:
        changed = {"count": 1, "left_out": 0, "member_ids": [9]}
        retry, remove = "POST /batches/7/members:retry", "POST /batches/7/members:remove"
        fake, client = self.fake({retry: changed, remove: changed})
        self.assertEqual(client.retry_members(7, ("a@b",), by="ada"), changed)
        client.retry_members(7)
        client.remove_members(7, ["a@b"])
        expected = [(retry, {"member_keys": ["a@b"], "by": "ada"}), (retry, {"all": True}), (remove, {"member_keys": ["a@b"]})]
        self.assertEqual(fake.asked, expected)
        self.assertEqual(client.retry_members(7, [])["count"], 0)  # nobody is not everybody
        with self.assertRaises(TypeError):
            client.remove_members(7, "a@b")
        self.assertEqual(fake.asked, expected)

    def test_what_other_systems_say(self) -> None:
        event = {"messageType": "phase-due", "runbookName": "mail", "runbookVersion": 1, "batchId": 7, "phaseExecutionId": 3}
        result = {"jobId": "step-12", "status": "Success", "result": {"id": 1}}
        fake, client = self.fake({"POST /events": {"accepted": True}, "POST /callbacks/worker-result": [None, {"accepted": True}]})
        self.assertEqual(client.send_events(event), {"accepted": True})
        client.send_events(one for one in [event, event])
        client.report_worker_result(result)  # a repeated one changes nothing, so it is sent until it is answered
        client.report_worker_result([result])
        self.assertEqual([body for _, body in fake.asked], [event, [event, event], result, result, [result]])


CALLS = "/tenants/-/service-calls"
CALL: dict[str, Any] = {
    "tenantId": "default", "serviceCallId": "c", "name": "remind", "status": "Scheduled", "dueAt": "2030-01-01T00:00:00.000Z",
    "submittedAt": "2029-01-01T00:00:00.000Z", "startedAt": None, "finishedAt": None, "tags": ["a"], "repeatOf": None,
    "requestSpec": {"method": "GET", "url": "http://x/"}, "responseMeta": None, "errorMeta": None, "new": 1}
FAILED = {**CALL, "status": "Failed", "errorMeta": {"kind": "Cancelled", "message": "by ada"}}


class CallContractTest(FakeServerCase):
    def test_a_call_is_submitted_with_all_that_was_said(self) -> None:
        fake, client = self.fake({f"POST {CALLS}": (202, CALL)})
        due = datetime(2030, 1, 1, tzinfo=timezone.utc)
        probe = {"method": "HEAD", "url": "http://x/1"}
        call = client.submit_call("remind", "http://x/", method="PUT", headers={"A": "b"}, body={"n": 1}, due_at=due, tags=("a",),
                                  timeout=1.5, redirects=2, probe=probe, idempotency_key="k")
        client.submit_call("remind", "http://x/")
        spec = {"method": "PUT", "url": "http://x/", "headers": {"A": "b"}, "body": {"n": 1}, "timeoutMs": 1500, "redirects": 2,
                "probe": probe}
        self.assertEqual(fake.asked[0][1], {"name": "remind", "dueAt": "2030-01-01T00:00:00.000Z", "tags": ["a"],
                                            "idempotencyKey": "k", "requestSpec": spec})
        self.assertEqual(set(fake.asked[1][1]), {"name", "requestSpec", "idempotencyKey"})
        self.assertEqual(fake.asked[1][1]["requestSpec"], {"method": "GET", "url": "http://x/"})
        self.assertEqual((call.service_call_id, call.tags, call.due_at, call.started_at), ("c", ["a"], due, None))
        self.assertEqual((call.ended, call.error, call.timeline, call.raw["new"]), (False, None, [], 1))

    def test_a_lost_answer_to_a_submission_is_asked_for_again_with_the_same_keys(self) -> None:
        answer = {"calls": [{**CALL, "created": True}, {"error": "used before"}]}
        fake, client = self.fake({f"POST {CALLS}": [None, (503, {"code": "overloaded"}), (202, CALL)],
                                  f"POST {CALLS}:batch": [None, (202, answer)]})
        client.submit_call("remind", "http://x/")
        self.assertEqual(len({body["idempotencyKey"] for _, body in fake.asked}), 1)
        made, refused = client.submit_calls(NewCall("remind", "http://x/") for _ in range(2))
        first, second = fake.bodies(f"POST {CALLS}:batch")
        self.assertEqual(first, second)
        self.assertEqual(len({one["idempotencyKey"] for one in first["calls"]}), 2)
        self.assertEqual((made.created, made.error, refused.created, refused.error), (True, None, False, "used before"))
        self.assertEqual(client.submit_calls([]), [])

    def test_calls_are_listed_page_by_page(self) -> None:
        query = "status=Failed&name=remind&tag=a&tag=b%26c&dueFrom=2030-01-01T00%3A00%3A00.000Z"
        fake, client = self.fake({f"GET {CALLS}?{query}&limit=200": {"serviceCalls": [CALL] * 200, "nextCursor": "n"},
                                  f"GET {CALLS}?{query}&limit=50&cursor=n": {"serviceCalls": [FAILED] * 50, "nextCursor": "m"}})
        due = datetime(2030, 1, 1, tzinfo=timezone.utc)
        found = list(client.calls(status="Failed", name="remind", tags=["a", "b&c"], due_from=due, limit=250))
        self.assertEqual((len(found), len(fake.asked)), (250, 2))
        self.assertEqual((found[-1].ended, found[-1].error_kind, found[-1].error), (True, "Cancelled", "Cancelled: by ada"))

    def test_what_is_done_to_calls(self) -> None:
        fake, client = self.fake({f"POST {CALLS}/c/{verb}": CALL for verb in ("cancel", "reschedule", "repeat")})
        due = datetime(2030, 1, 1, tzinfo=timezone.utc)
        client.cancel_call("c", "enough", by="ada")
        client.reschedule_call("c", due, by="ada")
        client.repeat_call("c")
        client.repeat_call("c", due_at=due)
        self.assertEqual([body for _, body in fake.asked], [
            {"reason": "enough", "by": "ada"}, {"dueAt": "2030-01-01T00:00:00.000Z", "by": "ada"}, {},
            {"dueAt": "2030-01-01T00:00:00.000Z"}])

    def test_a_cancelled_call_is_cancelled_though_the_answer_was_lost(self) -> None:
        refused = (409, {"code": "not_possible", "detail": "the call is Failed, not Scheduled"})
        fake, client = self.fake({f"POST {CALLS}/c/cancel": [None, refused], f"GET {CALLS}/c": FAILED})
        self.assertEqual(client.cancel_call("c").error_kind, "Cancelled")
        self.assertEqual(len(fake.asked), 3)

    def test_a_repeat_is_asked_for_again_when_the_answer_was_lost(self) -> None:
        fake, client = self.fake({f"POST {CALLS}/c/repeat": [None, CALL]})
        self.assertEqual(client.repeat_call("c").service_call_id, "c")
        self.assertEqual(len(fake.asked), 2)

    def test_the_path_names_the_tenant(self) -> None:
        _, client = self.fake({"GET /tenants/shop/service-calls/c%2Fd": CALL}, tenant="shop")
        self.assertEqual(client.call("c/d").service_call_id, "c")


POLL = "POST /workers/q/jobs:poll"
TASK = {"task_id": "t", "job_id": "j", "node_id": "n", "handler": "h", "params": {}, "lease": "0.1",
        "retry_count": 1, "checkpoint": {"row": 7}}
RUNBOOK_JOB = {"jobId": "step-12-retry-1", "batchId": 42, "workerId": "q", "functionName": "h", "parameters": {"Upn": "a@b"},
               "correlationData": {"stepExecutionId": 12, "isInitStep": False, "runbookName": "mail", "runbookVersion": 1},
               "lease": "2", "lease_until": "2030-01-01T00:00:00.000Z", "timeout_seconds": 60, "delivery_count": 2, "retry_count": 1}
OUTCOME = {"results": [{"task_id": "t", "accepted": True, "duplicate": False}]}


def twice(begun: threading.Event) -> list[Answer]:
    """Polls that hand out the task, and once more under a new lease when the first has begun."""
    again = {"jobs": [{**TASK, "lease": "0.2", "delivery_count": 2}]}
    return [{"jobs": [TASK]}, lambda: again if begun.wait(20) else {"jobs": []}, {"jobs": []}]


class WorkerContractTest(FakeServerCase):
    def perform(self, function: Any, answers: dict[str, Answer], results: int = 1, **options: Any) -> tuple[FakeServer, dict[str, Any]]:
        """One task through a worker; its result as it was sent."""
        standard = {POLL: [{"jobs": [TASK]}, {"jobs": []}], "POST /callbacks/task-results": OUTCOME,
                    "POST /workers/heartbeat": {"cancelled": []}}
        fake, client = self.fake({**standard, **answers})
        worker = bounded_worker(client, "q", name="w", **options)
        worker.task("h")(function)
        with worker:
            eventually(lambda: len(fake.bodies("POST /callbacks/task-results")) == results, "a result is sent")
        return fake, fake.bodies("POST /callbacks/task-results")[-1]["results"][0]

    def test_a_poll_asks_for_what_is_free_and_promises_heartbeats(self) -> None:
        fake, result = self.perform(lambda ctx: 1, {}, concurrency=3)
        self.assertEqual(fake.bodies(POLL)[0], {"worker": "w", "max": 3, "wait_ms": 30000, "heartbeat": True})
        result.pop("execution_duration_ms")
        self.assertEqual(result, {"task_id": "t", "lease": "0.1", "worker_id": "w", "status": "completed", "output": 1})

    def test_a_job_of_a_runbook_is_a_task_like_any_other(self) -> None:
        seen: list[Task] = []

        def work(ctx: Context, Upn: str) -> dict[str, Any]:
            seen.append(ctx.task)
            ctx.cancelled.wait(0.3)
            return {"complete": False, "upn": Upn, "batch": ctx.batch_id, "attempt": ctx.attempt, "job": [ctx.job_id, ctx.node_id]}

        answers = {POLL: [{"jobs": [RUNBOOK_JOB]}, {"jobs": []}]}
        fake, result = self.perform(work, answers, heartbeat_seconds=0.1)
        result.pop("execution_duration_ms")
        output = {"complete": False, "upn": "a@b", "batch": 42, "attempt": 2, "job": ["step-12-retry-1", ""]}
        self.assertEqual(result, {"task_id": "step-12-retry-1", "lease": "2", "worker_id": "w", "status": "completed",
                                  "output": output})
        self.assertEqual(fake.bodies("POST /workers/heartbeat")[0]["tasks"], [{"task_id": "step-12-retry-1", "lease": "2"}])
        self.assertEqual((seen[0].raw, seen[0].handler, seen[0].queue, seen[0].timeout_seconds), (RUNBOOK_JOB, "h", "q", 60))
        self.assertEqual(seen[0].correlation["runbookName"], "mail")
        self.assertEqual(seen[0].lease_until, datetime(2030, 1, 1, tzinfo=timezone.utc))

    def test_a_job_of_a_runbook_that_is_cancelled_reports_nothing(self) -> None:
        begun, stopped = threading.Event(), threading.Event()
        heartbeat = lambda: {"cancelled": ["step-12-retry-1"] if begun.is_set() else []}  # earlier, it would not begin at all
        fake, client = self.fake({POLL: [{"jobs": [RUNBOOK_JOB]}, {"jobs": []}], "POST /workers/heartbeat": heartbeat})
        worker = bounded_worker(client, "q", heartbeat_seconds=0.05)

        @worker.task("h")
        def work(ctx: Context, params: Any) -> None:
            begun.set()
            try:
                ctx.sleep(20)
            finally:
                stopped.set()

        with worker:
            self.assertTrue(stopped.wait(10))
        self.assertEqual(fake.bodies("POST /callbacks/task-results"), [])

    def test_a_job_of_a_runbook_has_a_log_but_neither_progress_nor_checkpoints(self) -> None:
        refused = (409, {"code": "not_possible", "detail": "jobs of runbooks have neither progress nor checkpoints"})
        progress, lines = "POST /callbacks/task-progress", "POST /callbacks/task-log"

        def work(ctx: Context, Upn: str) -> str:
            ctx.progress(10)
            ctx.log("still here")
            ctx.progress(20)
            try:
                ctx.checkpoint({"row": 1})
            except ApiError as error:
                return error.code
            return "taken"

        answers = {POLL: [{"jobs": [RUNBOOK_JOB]}, {"jobs": []}], progress: refused, lines: {},
                   "POST /callbacks/task-checkpoint": refused}
        fake, result = self.perform(work, answers)
        self.assertEqual((result["status"], result["output"]), ("completed", "not_possible"))
        self.assertEqual([line["text"] for body in fake.bodies(lines) for line in body["lines"]], ["still here"])
        self.assertEqual(len(fake.bodies(progress)), 1)

    def test_progress_and_log_are_gathered_and_all_there_before_the_result(self) -> None:
        progress, lines = "POST /callbacks/task-progress", "POST /callbacks/task-log"

        def work(ctx: Context) -> None:
            for percent in range(101):
                ctx.progress(percent, f"{percent} of 100")
            ctx.log("one")
            ctx.log("two\ud800")

        fake, _ = self.perform(work, {progress: {}, lines: {}})
        sent = fake.bodies(progress)
        self.assertLessEqual(len(sent), 3)
        self.assertEqual(sent[-1], {"task_id": "t", "lease": "0.1", "progress": 100, "message": "100 of 100"})
        self.assertEqual([line["text"] for body in fake.bodies(lines) for line in body["lines"]], ["one", "two?"])
        self.assertEqual({line["stream"] for body in fake.bodies(lines) for line in body["lines"]}, {"log"})
        order = [key for key, _ in fake.asked if key != POLL]
        self.assertEqual(order[-1], "POST /callbacks/task-results")

    def test_the_heartbeat_sends_what_a_silent_task_said_last(self) -> None:
        progress = "POST /callbacks/task-progress"

        def work(ctx: Context) -> bool:
            ctx.progress(1)
            ctx.progress(2)
            ctx.cancelled.wait(0.6)
            return ctx._progress is None

        fake, result = self.perform(work, {progress: {}}, heartbeat_seconds=0.1)
        self.assertIs(result["output"], True)  # it was sent while the task ran
        self.assertEqual([body["progress"] for body in fake.bodies(progress)], [1, 2])
        results = [index for index, (key, _) in enumerate(fake.asked) if key.endswith("task-results")]
        beats = [index for index, (key, _) in enumerate(fake.asked) if key.endswith("heartbeat") and index < results[0]]
        self.assertGreaterEqual(len(beats), 2)

    def test_a_server_without_progress_and_log_does_not_disturb_the_task(self) -> None:
        def work(ctx: Context) -> str:
            ctx.progress(50)
            ctx.log("x")
            ctx.check()
            return "fine"

        _, result = self.perform(work, {})
        self.assertEqual((result["status"], result["output"]), ("completed", "fine"))

    def test_a_checkpoint_is_there_for_the_next_attempt(self) -> None:
        checkpoint = "POST /callbacks/task-checkpoint"

        def work(ctx: Context) -> Any:
            before = ctx.last_checkpoint
            ctx.checkpoint({"row": 8})
            return [ctx.attempt, before, ctx.last_checkpoint]

        fake, result = self.perform(work, {checkpoint: [None, {}]})
        self.assertEqual(result["output"], [2, {"row": 7}, {"row": 8}])
        self.assertEqual(fake.bodies(checkpoint), [{"task_id": "t", "lease": "0.1", "checkpoint": {"row": 8}}] * 2)

    def test_a_checkpoint_that_is_not_taken_fails_the_task(self) -> None:
        with self.assertLogs("baton", "ERROR"):
            _, result = self.perform(lambda ctx: ctx.checkpoint(1), {})
        self.assertIn("ApiError: 404 not_found", result["error"])

    def test_a_checkpoint_of_an_old_lease_ends_the_task_without_a_result(self) -> None:
        answers = {POLL: [{"jobs": [TASK]}, {"jobs": []}], "POST /callbacks/task-checkpoint": (409, {"code": "stale_result"})}
        fake, client = self.fake(answers)
        ended = threading.Event()
        worker = bounded_worker(client, "q")

        @worker.task
        def h(ctx: Context) -> None:
            try:
                ctx.checkpoint(1)
            finally:
                ended.set()

        with worker:
            self.assertTrue(ended.wait(20))
        self.assertEqual(fake.bodies("POST /callbacks/task-results"), [])

    def test_a_result_is_sent_until_it_is_taken(self) -> None:
        not_now = {"results": [{"task_id": "t", "accepted": False, "code": "stopping", "message": "later"}]}
        answers = [None, (500, {"code": "internal"}), (503, {"code": "overloaded"}), not_now, OUTCOME]
        fake, client = self.fake({POLL: [{"jobs": [TASK]}, {"jobs": []}], "POST /callbacks/task-results": answers})
        worker = bounded_worker(client, "q")
        worker.task("h")(lambda ctx: 1)
        with self.assertLogs("baton", "WARNING"), worker:
            eventually(lambda: len(fake.bodies("POST /callbacks/task-results")) == 5, "it is sent five times")
            time.sleep(0.2)
        sent = fake.bodies("POST /callbacks/task-results")
        self.assertEqual(len(sent), 5)
        self.assertTrue(all(body == sent[0] for body in sent))

    def test_a_result_that_breaks_the_connection_is_given_up_if_it_is_large(self) -> None:
        answers: list[Answer] = [None] * 5 + [OUTCOME]
        with self.assertLogs("baton", "ERROR"):
            fake, result = self.perform(lambda ctx: "x" * 2_000_000, {"POST /callbacks/task-results": answers}, results=6)
        self.assertRegex(result["error"], r"^the server did not take the output: 2000\d+ bytes cannot be sent$")

    def test_a_task_that_comes_back_under_a_new_lease_replaces_the_old_one(self) -> None:
        begun = threading.Event()
        fake, client = self.fake({POLL: twice(begun), "POST /callbacks/task-results": OUTCOME})
        told: list[str] = []
        worker = bounded_worker(client, "q")

        @worker.task
        def h(ctx: Context) -> str:
            begun.set()
            if ctx.task.lease == "0.1" and ctx.cancelled.wait(20):
                told.append(ctx.task.lease)
            return ctx.task.lease

        with worker:
            eventually(lambda: bool(told) and bool(fake.bodies("POST /callbacks/task-results")), "both end")
        outputs = [result["output"] for body in fake.bodies("POST /callbacks/task-results") for result in body["results"]]
        self.assertEqual((told, outputs), (["0.1"], ["0.2"]))

    def test_the_drain_also_ends_for_a_task_that_was_replaced(self) -> None:
        begun, go = threading.Event(), threading.Event()
        fake, client = self.fake({POLL: twice(begun), "POST /callbacks/task-results": OUTCOME})
        worker = bounded_worker(client, "q", drain_seconds=0.2)

        @worker.task
        def h(ctx: Context) -> None:
            begun.set()
            if ctx.task.lease == "0.1":
                go.wait(20)  # it does not look whether it is still wanted

        with self.assertLogs("baton", "WARNING"), worker:
            eventually(lambda: bool(fake.bodies("POST /callbacks/task-results")), "the second one ends")
            stopped = time.monotonic()
        self.assertLess(time.monotonic() - stopped, 10)
        go.set()

    def test_a_message_that_is_no_text_fails_its_task_and_nothing_else(self) -> None:
        wrong: Any = object()
        with self.assertLogs("baton", "ERROR"):
            _, result = self.perform(lambda ctx: ctx.progress(50, wrong), {"POST /callbacks/task-progress": {}})
        self.assertIn("TypeError", result["error"])


if __name__ == "__main__":
    unittest.main()
