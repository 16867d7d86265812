"""Whoever waits survives a restart of the server."""

from __future__ import annotations

import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

from baton import Client, Unreachable

from .server import PATIENCE, WAITS, Server


class RestartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        # What a wait survives is not what every request survives.
        self.client = Client(self.server.url, retry_for=0.1)
        self.client.publish(WAITS)

    def meanwhile(self, wait: Callable[[], Any]) -> Callable[[], Any]:
        """Begins to wait in another thread; what this returns answers with the result, or raises what was raised."""
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(wait())
            except BaseException as error:
                result.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        time.sleep(0.5)

        def end() -> Any:
            thread.join(PATIENCE)
            self.assertEqual(len(result), 1, "it still waits")
            if isinstance(result[0], BaseException):
                raise result[0]
            return result[0]

        return end

    def restart(self) -> None:
        self.server.kill()
        time.sleep(1.5)
        self.server.start()

    def finish(self, job_id: str) -> None:
        self.client.cancel(job_id)

    def test_the_wait_for_a_job_goes_on(self) -> None:
        job = self.client.submit("waits")
        waiting = self.meanwhile(lambda: self.client.wait(job.job_id, 60))
        self.restart()
        self.finish(job.job_id)
        self.assertEqual(waiting().status, "CANCELLED")

    def test_the_wait_of_a_submission_goes_on_with_one_job(self) -> None:
        waiting = self.meanwhile(lambda: self.client.submit("waits", wait=60))
        self.restart()
        (job,) = self.client.jobs()
        self.finish(job.job_id)
        self.assertEqual(waiting().job_id, job.job_id)

    def test_events_are_followed_through_a_restart(self) -> None:
        job = self.client.submit("waits")
        waiting = self.meanwhile(lambda: [event.event_type for event in self.client.follow(job.job_id)])
        self.restart()
        self.finish(job.job_id)
        events = waiting()
        self.assertEqual((events[0], events[-1]), ("job_created", "job_cancelled"))
        self.assertEqual(events.count("job_created"), 1)

    def test_the_wait_for_a_call_goes_on(self) -> None:
        call = self.client.submit_call("later", "http://example.com/", due_at=datetime.now(timezone.utc) + timedelta(hours=1))
        waiting = self.meanwhile(lambda: self.client.wait_for_call(call.service_call_id, 60))
        self.restart()
        self.client.cancel_call(call.service_call_id)
        self.assertEqual(waiting().error_kind, "Cancelled")

    def test_a_restart_does_not_make_a_wait_longer(self) -> None:
        job = self.client.submit("waits")
        begun = time.monotonic()

        def wait() -> None:
            with self.assertRaises(TimeoutError):
                self.client.wait(job.job_id, 5.0)

        waiting = self.meanwhile(wait)
        self.restart()
        waiting()
        self.assertLess(time.monotonic() - begun, 7.0)

    def test_time_that_is_over_is_told_also_without_a_server(self) -> None:
        job = self.client.submit("waits")
        with self.assertRaisesRegex(TimeoutError, "is still RUNNING"):
            self.client.wait(job.job_id, 0.2)
        self.server.kill()
        self.addCleanup(self.server.start)
        with self.assertRaisesRegex(TimeoutError, "could not be reached"):
            self.client.wait(job.job_id, 1.0)
        with self.assertRaises(Unreachable):
            Client(self.server.url, reconnect_for=0.5).wait(job.job_id)


if __name__ == "__main__":
    unittest.main()
