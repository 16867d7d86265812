"""Service calls of the real server, to a server of ours that writes down what reaches it."""

from __future__ import annotations

import http.server
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

from baton import ApiError, Client, NewCall, ServiceCall

from .server import PATIENCE, HttpServer, Server, ServerCase, eventually

LOOPBACK = ("--egress-allow", "127.0.0.1")  # by default calls do not go there


class Sink(HttpServer):
    """Answers by path: /held when it is let go, /moved with a redirect to /ok, /fail with 500, the others with 200."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], str]] = []
        self.let_go = threading.Event()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = PATIENCE  # of reading

            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
                headers = {name.lower(): value for name, value in self.headers.items()}
                sink.seen.append((self.command, self.path, headers, body))
                if self.path.startswith("/held"):
                    sink.let_go.wait(PATIENCE)
                self.send_response({"/moved": 302, "/fail": 500}.get(self.path, 200))
                self.send_header("Location", "/ok")
                self.send_header("Content-Length", "4")
                try:
                    self.end_headers()
                    self.wfile.write(b"word")
                except OSError:
                    pass  # whoever called has not waited

            do_GET = do_POST = do_PUT = respond

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(Handler)

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.seen]


def soon(seconds: float = 0.0) -> datetime:
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


class CallTest(ServerCase):
    options = LOOPBACK
    sink: Sink

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.sink = Sink()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sink.let_go.set()
        super().tearDownClass()
        cls.sink.close()

    def submit(self, path: str, **options: Any) -> ServiceCall:
        return self.client.submit_call(self.name(), self.sink.url + path, **options)

    def name(self) -> str:
        """Of all calls of a test, so that others do not find them."""
        return self.id().rsplit(".", 1)[1]

    def ended(self, path: str, **options: Any) -> ServiceCall:
        return self.client.wait_for_call(self.submit(path, **options).service_call_id, 20)

    def test_a_call_is_made_and_its_outcome_kept(self) -> None:
        submitted = self.submit("/charge", method="POST", headers={"Authorization": "Bearer x", "X-Shop": "1"}, body={"amount": 12})
        self.assertEqual((submitted.name, submitted.tenant_id, submitted.error), (self.name(), "default", None))
        call = self.client.wait_for_call(submitted.service_call_id, 20)
        self.assertTrue(call.succeeded, call.error)
        assert call.response_meta is not None and call.started_at is not None and call.finished_at is not None
        self.assertEqual(call.response_meta["status"], 200)
        self.assertLessEqual(call.started_at, call.finished_at)
        self.assertEqual([event.type for event in call.timeline],
                         ["ServiceCallSubmitted", "ServiceCallScheduled", "ExecutionStarted", "ExecutionSucceeded"])
        self.assertEqual(call.timeline[2].data["startedAt"], call.raw["startedAt"])
        self.assertNotIn("Bearer", str(call.raw))
        ((method, _, headers, body),) = [one for one in self.sink.seen if one[1] == "/charge"]
        self.assertEqual((method, body), ("POST", '{"amount":12}'))
        self.assertEqual((headers["authorization"], headers["x-shop"], headers["content-type"]),
                         ("Bearer x", "1", "application/json"))

    def test_a_text_is_sent_as_it_is(self) -> None:
        self.assertTrue(self.ended("/text", method="PUT", headers={"Content-Type": "text/plain"}, body="grüße").succeeded)
        (body,) = [body for _, path, _, body in self.sink.seen if path == "/text"]
        self.assertEqual(body, "grüße".encode().decode("latin-1"))

    def test_a_call_that_fails_says_of_which_kind(self) -> None:
        refused = self.ended("/fail")
        self.assertEqual((refused.status, refused.error_kind), ("Failed", "HttpError"))
        assert refused.error_meta is not None
        self.assertEqual(refused.error_meta["status"], 500)
        self.assertIn("HttpError: ", refused.error or "")
        self.assertEqual(self.ended("/held", timeout=0.2).error_kind, "Timeout")
        denied = self.client.submit_call(self.name(), self.sink.url.replace("127.0.0.1", "127.0.0.2"))
        self.assertEqual(self.client.wait_for_call(denied.service_call_id, 20).error_kind, "EgressDenied")

    def test_redirects_are_followed_if_asked_for(self) -> None:
        self.assertTrue(self.ended("/moved", redirects=1).succeeded)
        self.assertEqual(self.ended("/moved").error_kind, "HttpError")

    def test_a_call_waits_for_its_time_and_may_be_given_another(self) -> None:
        call = self.submit("/later", due_at=soon(3600))
        self.assertEqual(call.status, "Scheduled")
        with self.assertRaisesRegex(TimeoutError, "still Scheduled"):
            self.client.wait_for_call(call.service_call_id, 0.2)
        self.assertNotIn("/later", self.sink.paths())
        due = soon(0.3)
        self.client.reschedule_call(call.service_call_id, due, by="ada")
        ended = self.client.wait_for_call(call.service_call_id, 20)
        assert ended.started_at is not None
        self.assertGreaterEqual(ended.started_at, due - timedelta(milliseconds=2))  # times have milliseconds
        self.assertEqual([event.type for event in ended.timeline].count("ServiceCallScheduled"), 2)
        with self.assertRaises(ApiError) as refused:
            self.client.reschedule_call(call.service_call_id, soon())
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "not_possible"))

    def test_a_call_is_cancelled_once(self) -> None:
        call = self.submit("/never", due_at=soon(3600))
        for _ in range(2):
            cancelled = self.client.cancel_call(call.service_call_id, "changed my mind", by="ada")
            self.assertEqual((cancelled.status, cancelled.error_kind), ("Failed", "Cancelled"))
        with self.assertRaises(ApiError) as refused:
            self.client.cancel_call(self.ended("/ok").service_call_id)
        self.assertEqual(refused.exception.code, "not_possible")
        with self.assertRaises(ApiError) as refused:
            self.client.call("01936f2e-0000-7000-8000-000000000000")
        self.assertEqual(refused.exception.code, "call_not_found")
        self.assertNotIn("/never", self.sink.paths())

    def test_the_same_key_gives_the_same_call(self) -> None:
        first, again = (self.submit("/once", idempotency_key="once") for _ in range(2))
        self.assertEqual(first.service_call_id, again.service_call_id)
        with self.assertRaises(ApiError) as refused:
            self.submit("/twice", idempotency_key="once")
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "idempotency_key_reused"))
        self.assertNotEqual(self.submit("/ok").service_call_id, self.submit("/ok").service_call_id)
        self.client.wait_for_call(first.service_call_id, 20)
        self.assertEqual(self.sink.paths().count("/once"), 1)

    def test_a_wrong_call_is_an_error_that_names_the_fields(self) -> None:
        with self.assertRaises(ApiError) as refused:
            self.submit("/ok", timeout=3600, redirects=99)
        self.assertEqual(refused.exception.status, 422)
        self.assertEqual({one["field"].rsplit(".", 1)[1] for one in refused.exception.errors}, {"timeoutMs", "redirects"})
        with self.assertRaises(ValueError):
            self.submit("/ok", due_at=datetime.now())

    def test_many_calls_are_submitted_at_once(self) -> None:
        url = self.sink.url + "/many"
        wanted = [NewCall(self.name(), url, body=str(n), method="POST", idempotency_key=f"many-{n}") for n in range(5)]
        made = self.client.submit_calls(wanted)
        self.assertEqual([call.created for call in made], [True] * 5)
        for call in made:
            self.assertTrue(self.client.wait_for_call(call.service_call_id, 20).succeeded)
        self.assertEqual(sorted(body for _, path, _, body in self.sink.seen if path == "/many"), list("01234"))
        other = NewCall(self.name(), url, idempotency_key="many-4")
        again, refused = self.client.submit_calls([wanted[3], other])
        self.assertEqual((again.service_call_id, again.created), (made[3].service_call_id, False))
        self.assertEqual((refused.service_call_id, refused.status), ("", ""))
        self.assertIn("idempotency key", refused.error or "")
        with self.assertRaises(ApiError) as wrong:
            self.client.submit_calls([NewCall(self.name(), url), NewCall(self.name(), "ftp://x")])
        self.assertEqual(wrong.exception.status, 422)
        self.assertEqual(len(list(self.client.calls(name=self.name()))), 5)

    def test_lists_go_over_pages(self) -> None:
        due = soon(3600)
        wanted = [NewCall(self.name(), self.sink.url, due_at=due + timedelta(seconds=n), tags=["all", f"tens-{n // 10}"])
                  for n in range(70)]
        mine = [call.service_call_id for call in self.client.submit_calls(wanted)]
        listed = [call.service_call_id for call in self.client.calls(name=self.name())]
        self.assertEqual((len(listed), set(listed)), (70, set(mine)))
        self.assertEqual([call.service_call_id for call in self.client.calls(name=self.name(), limit=60)], listed[:60])
        tagged = {call.service_call_id for call in self.client.calls(tags=["tens-3", "all"], status="Scheduled")}
        self.assertEqual(tagged, set(mine[30:40]))
        until = due + timedelta(seconds=5)
        self.assertEqual({call.service_call_id for call in self.client.calls(name=self.name(), due_from=due, due_until=until)},
                         set(mine[:5]))
        self.assertEqual(list(self.client.calls(name=self.name(), status="Failed")), [])

    def test_a_repeat_is_a_call_of_its_own(self) -> None:
        first = self.ended("/again", method="POST", body="x", tags=["t"])
        second = self.client.repeat_call(first.service_call_id)
        self.assertEqual((second.repeat_of, second.tags), (first.service_call_id, ["t"]))
        self.assertTrue(self.client.wait_for_call(second.service_call_id, 20).succeeded)
        self.assertEqual([body for _, path, _, body in self.sink.seen if path == "/again"], ["x", "x"])
        third = self.client.repeat_call(first.service_call_id, due_at=soon(3600))
        self.assertEqual(third.status, "Scheduled")

    def test_bytes_are_sent_as_they_are(self) -> None:
        self.ended("/bytes", method="PUT", body=b"\x00\xff\n")
        self.assertEqual([body for _, path, _, body in self.sink.seen if path == "/bytes"], ["\x00\xff\n"])

    def test_tenants_do_not_see_each_others_calls(self) -> None:
        shop = Client(self.server.url, tenant="shop")
        call = shop.submit_call("shop", self.sink.url)
        self.assertEqual(call.tenant_id, "shop")
        self.assertTrue(shop.wait_for_call(call.service_call_id, 20).succeeded)
        with self.assertRaises(ApiError) as refused:
            self.client.call(call.service_call_id)
        self.assertEqual(refused.exception.code, "call_not_found")


class CallCrashTest(unittest.TestCase):
    def test_a_call_in_doubt_is_settled_by_its_probe_or_says_so(self) -> None:
        sink = Sink()
        self.addCleanup(sink.close)
        self.addCleanup(sink.let_go.set)
        server = Server(*LOOPBACK)
        self.addCleanup(server.close)
        client = Client(server.url)
        probe = {"method": "GET", "url": sink.url + "/received"}
        known, unknown = client.submit_calls([NewCall("known", sink.url + "/held/1", probe=probe, timeout=3.0),
                                              NewCall("unknown", sink.url + "/held/2")])
        eventually(lambda: {"/held/1", "/held/2"} <= set(sink.paths()), "both calls are under way")
        server.kill()
        server.start()
        self.assertTrue(client.wait_for_call(known.service_call_id, 20).succeeded)
        self.assertEqual(client.wait_for_call(unknown.service_call_id, 20).error_kind, "OutcomeUnknown")
        self.assertEqual(sorted(sink.paths()), ["/held/1", "/held/2", "/received"])


if __name__ == "__main__":
    unittest.main()
