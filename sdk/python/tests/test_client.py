from __future__ import annotations

import os
import signal
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import NoReturn

from baton import ApiError, Client, Event, Unreachable

from .server import PATIENCE, WAITS, Server, ServerCase, in_threads

ECHO = """
workflow_id: echo_test
inputs:
  message: {type: string, required: true}
  times: {type: integer, default: 1}
nodes:
  start: {type: start, next: echo}
  echo: {type: task, handler: echo, next: end}
  end: {type: end}
"""


class ClientTest(ServerCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client.publish(ECHO)
        cls.client.publish(WAITS)

    def test_a_job_is_submitted_waited_for_and_shown(self) -> None:
        job = self.client.submit("echo_test", {"message": "hi"}, wait=10)
        self.assertTrue(job.completed, job)
        self.assertEqual(job.result_data, {"echo": {"echoed_params": {"message": "hi", "times": 1}}})
        shown = self.client.job(job.job_id)
        self.assertEqual(shown.nodes["echo"].status, "COMPLETED")
        self.assertEqual(shown.nodes["echo"].output, {"echoed_params": {"message": "hi", "times": 1}})
        assert shown.created_at is not None and shown.completed_at is not None
        self.assertLess(abs(shown.created_at - datetime.now(timezone.utc)), timedelta(minutes=1))
        self.assertLessEqual(shown.created_at, shown.completed_at)

    def test_waiting_has_an_end(self) -> None:
        job = self.client.submit("waits", wait=0.1)
        self.assertFalse(job.ended)
        with self.assertRaisesRegex(TimeoutError, "still RUNNING"):
            self.client.wait(job.job_id, timeout=0.2)
        with self.assertRaises(TimeoutError):
            self.client.wait(job.job_id, timeout=0)

    def test_waiting_sees_the_end_that_comes_meanwhile(self) -> None:
        job = self.client.submit("waits")
        timer = threading.Timer(0.3, lambda: self.client.cancel(job.job_id, "enough"))
        timer.start()
        self.addCleanup(timer.join, PATIENCE)
        self.assertEqual(self.client.wait(job.job_id, timeout=20).status, "CANCELLED")

    def test_the_same_key_gives_the_same_job(self) -> None:
        first = self.client.submit("echo_test", {"message": "1"}, idempotency_key="once")
        again = self.client.submit("echo_test", {"message": "1"}, idempotency_key="once")
        self.assertEqual(first.job_id, again.job_id)
        with self.assertRaises(ApiError) as refused:
            self.client.submit("echo_test", {"message": "2"}, idempotency_key="once")
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "idempotency_key_reused"))
        self.assertNotEqual(self.client.submit("echo_test", {"message": "1"}).job_id, first.job_id)

    def test_bad_input_is_an_error_that_names_the_fields(self) -> None:
        with self.assertRaises(ApiError) as refused:
            self.client.submit("echo_test", {"massage": "hi", "times": "x"})
        error = refused.exception
        self.assertEqual((error.status, error.code), (422, "invalid_input"))
        self.assertEqual(len(error.errors), 3, error.errors)
        self.assertTrue(error.request_id)
        self.assertIn("massage", str(error))
        with self.assertRaises(ApiError) as refused:
            self.client.submit("echo_test", {"message": "hi"}, version=0)
        self.assertEqual([one["field"] for one in refused.exception.errors], ["version"])

    def test_a_bad_definition_is_an_error_with_lines(self) -> None:
        bad = "workflow_id: bad\nnodes:\n  start: {type: start}\n"
        with self.assertRaises(ApiError) as refused:
            self.client.publish(bad)
        self.assertEqual(refused.exception.code, "invalid_definition")
        self.assertIn("line", refused.exception.errors[0])
        self.assertFalse(self.client.validate(bad)["valid"])
        self.assertTrue(self.client.validate(ECHO)["valid"])

    def test_workflows_are_published_once_and_listed(self) -> None:
        again = self.client.publish(ECHO)
        self.assertEqual((again.workflow_id, again.version, again.created), ("echo_test", 1, False))
        self.assertIn("echo_test", [one.workflow_id for one in self.client.workflows()])
        self.assertEqual(self.client.workflow("echo_test").definition, ECHO)
        with self.assertRaises(ApiError) as refused:
            self.client.workflow("a/b?c")
        self.assertEqual(refused.exception.status, 404)

    def test_lists_go_over_pages(self) -> None:
        begun = datetime.now(timezone.utc) - timedelta(seconds=1)
        mine = {self.client.submit("echo_test", {"message": str(i)}).job_id for i in range(70)}
        listed = [job.job_id for job in self.client.jobs(workflow_id="echo_test", created_from=begun)]
        self.assertEqual(len(listed), len(set(listed)))
        self.assertLessEqual(mine, set(listed))
        self.assertEqual([job.job_id for job in self.client.jobs(workflow_id="echo_test", limit=60)], listed[:60])
        self.assertEqual(list(self.client.jobs(status="FAILED", workflow_id="echo_test")), [])
        with self.assertRaises(ValueError):
            self.client.jobs(created_from=datetime.now())

    def test_a_timeline_is_read_whole_or_followed(self) -> None:
        job = self.client.submit("echo_test", {"message": "hi"})
        followed: list[Event] = []
        in_threads(1, lambda _: followed.extend(self.client.follow(job.job_id)))  # by itself it follows for ever
        self.assertEqual(followed[0].event_type, "job_created")
        self.assertEqual(followed[-1].event_type, "job_completed")
        self.assertEqual(followed, self.client.timeline(job.job_id))
        self.assertEqual(len(followed), 8)

    def test_a_job_is_cancelled_once(self) -> None:
        job = self.client.submit("waits")
        self.assertEqual(self.client.cancel(job.job_id, "changed my mind").status, "CANCELLED")
        self.assertEqual(self.client.cancel(job.job_id).status, "CANCELLED")
        ended = self.client.submit("echo_test", {"message": "hi"}, wait=10)
        with self.assertRaises(ApiError) as refused:
            self.client.cancel(ended.job_id)
        self.assertEqual(refused.exception.code, "job_ended")
        with self.assertRaises(ApiError) as refused:
            self.client.job("no-such-job")
        self.assertEqual(refused.exception.code, "job_not_found")

    def test_threads_share_a_client(self) -> None:
        ids: list[str] = []
        in_threads(8, lambda _: ids.extend(self.client.submit("echo_test", {"message": "x"}).job_id for _ in range(10)))
        self.assertEqual(len(set(ids)), 80)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_forked_child_has_a_connection_of_its_own(self) -> None:
        self.client.submit("echo_test", {"message": "x"})  # the parent has one now
        child = os.fork()
        if child == 0:
            self.submit_and_exit()
        for _ in range(50):
            self.assertEqual(self.client.submit("echo_test", {"message": "parent"}).input_data["message"], "parent")
        self.assertEqual(os.waitpid(child, 0)[1], 0)  # it has an alarm

    def submit_and_exit(self) -> NoReturn:
        """What the child does. It never returns: it would run the rest of the tests a second time."""
        ok = False
        try:
            signal.alarm(int(PATIENCE))  # ends it, if it hangs
            ok = all(self.client.submit("echo_test", {"message": "child"}).input_data["message"] == "child" for _ in range(50))
        finally:
            os._exit(0 if ok else 1)

    def test_the_environment_is_the_default(self) -> None:
        os.environ["BATON_SERVER"] = self.server.url
        os.environ["BATON_TENANT"] = "others"
        try:
            client = Client()
        finally:
            del os.environ["BATON_SERVER"], os.environ["BATON_TENANT"]
        self.assertEqual(list(client.workflows()), [])
        self.assertEqual(Client().server, "http://127.0.0.1:8080")
        os.environ["BATON_TOKEN"] = "wrong"
        try:
            with self.assertRaises(ApiError) as refused:
                list(Client(self.server.url).jobs())
        finally:
            del os.environ["BATON_TOKEN"]
        self.assertEqual(refused.exception.status, 401)

    def test_a_bad_address_is_refused_at_once(self) -> None:
        for address in ("ftp://x", "http://", "http://host:port"):
            with self.assertRaises(ValueError, msg=address):
                Client(address)


class OutageTest(unittest.TestCase):
    def test_no_server_is_unreachable_after_the_time_given(self) -> None:
        client = Client("http://127.0.0.1:9", retry_for=0.3)
        with self.assertRaises(Unreachable) as failed:
            client.submit("echo_test")
        self.assertFalse(failed.exception.sent)
        self.assertIsInstance(failed.exception, ConnectionError)

    def test_a_request_outlives_a_restart(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        client = Client(server.url)
        client.publish(ECHO)
        server.kill()
        timer = threading.Timer(0.3, server.start)
        timer.start()
        self.addCleanup(timer.join, PATIENCE)  # the start has to be over before the server is closed
        self.assertTrue(client.submit("echo_test", {"message": "hi"}, wait=10).completed)


if __name__ == "__main__":
    unittest.main()
