"""Client and worker for baton, in one file. Standard library only, Python 3.9 or later.

    client = Client()                                   # BATON_SERVER, BATON_TOKEN, BATON_TENANT
    job = client.submit("thumbnails", {"url": "…"}, wait=10)

    worker = Worker(client, queue="images", concurrency=8)

    @worker.task("resize")
    def resize(ctx, url, size=256):
        return {"ok": True}

    worker.run()

A `Client` may be shared by threads (and survives a fork): each thread has a connection of its own. A `Worker` holds tasks under
leases that it renews; what it reports is sent until the server has accepted or refused it.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import http.client
import inspect
import json
import logging
import os
import random
import select
import signal
import socket
import ssl
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timezone
from queue import Empty, SimpleQueue
from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar, Union, overload
from urllib.parse import quote, urlencode, urlsplit

__version__ = "0.1.0"
__all__ = [
    "ApiError", "Approval", "Batch", "CallEvent", "Cancelled", "Client", "Context", "DeadLetter", "Event", "Job", "Member",
    "NewCall", "Node", "Phase", "Runbook", "ServiceCall", "Step", "Task", "TaskFailed", "Unreachable", "Waiting", "Why", "Worker",
    "WorkerInfo", "Workflow",
]

log = logging.getLogger("baton")

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", bound="_Record")
Time = Union[datetime, str]

RESULTS_MAX = 1000  # of one request, as the server has it
BYTES_MAX = 1024 * 1024  # of one batch; the server takes 4 MiB unless told otherwise
LINES_MAX = 10_000  # of a task's log that wait to be sent; older ones are dropped
_FULL = {"full": "true"}  # also what is larger than 64 KiB
NOT_NOW = frozenset(["overloaded", "stopping", "store_unavailable", "store_full"])  # codes of results to send again


# --- Errors -----------------------------------------------------------------------------------------------------------------------


class ApiError(Exception):
    """The server refused: a problem document. Programs look at `code`, people at `detail`; `errors` names each wrong field."""

    def __init__(self, status: int, code: str, detail: str, errors: Iterable[Mapping[str, Any]] = (), request_id: str = "",
                 retry_after: float = 0.0) -> None:
        self.status, self.code, self.detail = status, code, detail
        self.errors: tuple[Mapping[str, Any], ...] = tuple(errors)
        self.request_id, self.retry_after = request_id, retry_after
        wrong = "; ".join(f"{e.get('field') or e.get('line') or ''}: {e.get('message', '')}" for e in self.errors)
        super().__init__(f"{status} {code}: {detail}" + (f" ({wrong})" if wrong else ""))

    @property
    def temporary(self) -> bool:
        return self.status in (408, 429, 502, 503, 504)


class Unreachable(ConnectionError):
    """No answer. If `sent` is false, the server cannot have seen the request; otherwise it may have."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class TaskFailed(Exception):
    """Raise it in a task to fail the attempt with this message, without a traceback in the log."""


class Cancelled(Exception):
    """Raised by the methods of a context when the task is no longer this worker's. Nothing is reported then."""


# --- Records ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Record:
    """What the server sent. `raw` has all of it, also what this version does not know."""

    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def parse(cls: type[R], data: Mapping[str, Any]) -> R:
        known: dict[str, Any] = {}
        for name, key, is_time in _fields(cls):
            value = data.get(key)
            if value is not None:
                known[name] = datetime.fromisoformat(value.replace("Z", "+00:00")) if is_time else value
        return cls(raw=data, **known)


@dataclass(frozen=True)
class _CamelRecord(_Record):
    """One whose fields the server names in camelCase."""


_known_fields: dict[type, list[tuple[str, str, bool]]] = {}


def _fields(cls: type[_Record]) -> list[tuple[str, str, bool]]:
    """The fields of a record, how the server names each, and whether it is a time."""
    if cls not in _known_fields:
        names = [f.name for f in dataclasses.fields(cls) if f.name != "raw"]
        times = ("_at", "_until", "_start_time")
        is_camel = issubclass(cls, _CamelRecord)
        _known_fields[cls] = [(name, _camel(name) if is_camel else name, name in ("since", "until") or name.endswith(times))
                              for name in names]
    return _known_fields[cls]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True)
class Node(_Record):
    status: str = ""
    retry_count: int = 0
    delivery_count: int = 0
    task_id: str | None = None
    queue: str | None = None
    worker_id: str | None = None
    output: Any = None
    error: str | None = None
    lease_until: datetime | None = None
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True)
class Job(_Record):
    """A job as it was when the server answered. `nodes` is filled by `Client.job` and `Client.wait`; lists come without data."""

    job_id: str = ""
    workflow_id: str = ""
    workflow_version: int = 0
    status: str = ""
    tenant: str = "default"
    input_data: Any = None
    result_data: Any = None
    error: str | None = None
    priority: int = 0
    tags: list[str] = field(default_factory=list)
    traceparent: str | None = None
    created_at: datetime | None = None
    due_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @functools.cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {name: Node.parse(node) for name, node in (self.raw.get("nodes") or {}).items()}

    @property
    def ended(self) -> bool:
        return self.status in ("COMPLETED", "FAILED", "CANCELLED")

    @property
    def completed(self) -> bool:
        return self.status == "COMPLETED"


@dataclass(frozen=True)
class Event(_Record):
    event_id: int = 0
    event_type: str = ""
    job_id: str = ""
    node_id: str | None = None
    event_data: Any = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class Workflow(_Record):
    workflow_id: str = ""
    version: int = 0
    created: bool = False  # by publish(): false if this very text was there already
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    definition: str = ""
    published_at: datetime | None = None


@dataclass(frozen=True)
class Task(_Record):
    """One attempt of one task node, or one job of a runbook, as it was handed out. The latter has a batch and no node."""

    task_id: str = ""
    job_id: str = ""
    node_id: str = ""
    handler: str = ""
    params: Any = None
    queue: str = ""
    timeout_seconds: int = 0
    retry_count: int = 0
    delivery_count: int = 0
    lease: str = ""
    lease_until: datetime | None = None
    traceparent: str | None = None
    checkpoint: Any = None
    batch_id: int | None = None
    correlation: Mapping[str, Any] = field(default_factory=dict)


# How the contract with the workers of runbooks names what a task has.
_JOB_NAMES = {"task_id": "jobId", "job_id": "jobId", "handler": "functionName", "params": "parameters", "queue": "workerId",
              "batch_id": "batchId", "correlation": "correlationData"}


def _handed_out(job: Mapping[str, Any]) -> Task:
    if "jobId" not in job:
        return Task.parse(job)
    named = {ours: job.get(theirs) for ours, theirs in _JOB_NAMES.items()}
    return dataclasses.replace(Task.parse({**job, **named}), raw=job)


@dataclass(frozen=True)
class Approval(_Record):
    job_id: str = ""
    node_id: str = ""
    message: str = ""
    params: Any = None
    since: datetime | None = None
    timeout_at: datetime | None = None


@dataclass(frozen=True)
class Waiting(_Record):
    node_id: str | None = None
    status: str = ""
    reason: str = ""
    message: str = ""
    queue: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Why(_Record):
    """Why a job is not going on: a sentence, and what each of its nodes waits for."""

    job_id: str = ""
    status: str = ""
    summary: str = ""

    @functools.cached_property
    def waiting(self) -> list[Waiting]:
        return [Waiting.parse(one) for one in self.raw.get("waiting") or []]


@dataclass(frozen=True)
class WorkerInfo(_Record):
    worker: str = ""
    queues: list[str] = field(default_factory=list)
    running_count: int = 0
    running: list[str] = field(default_factory=list)  # the ids of tasks; of many, the first ones
    completed: int = 0
    failed: int = 0
    results_last_minute: int = 0
    polling: bool = False
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


@dataclass(frozen=True)
class DeadLetter(_Record):
    task_id: str = ""
    job_id: str = ""
    node_id: str = ""
    queue: str = ""
    error: str = ""
    deliveries: int = 0
    dead_at: datetime | None = None


@dataclass(frozen=True)
class Runbook(_Record):
    name: str = ""
    version: int = 0
    is_active: bool = False
    automation_enabled: bool = False  # whether its data source is looked at
    overdue_behavior: str = ""
    created: bool = False  # by publish_runbook(): false if this very text was there already
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    yaml_content: str = ""  # by runbook() only
    last_error: str | None = None  # of its data source
    last_error_at: datetime | None = None
    last_synced_at: datetime | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class Phase(_Record):
    id: int = 0
    phase_name: str = ""
    status: str = ""
    offset_minutes: int = 0  # before T; negative: after it
    counts: Mapping[str, int] = field(default_factory=dict)  # of its steps, by status
    due_at: datetime | None = None
    dispatched_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True)
class Batch(_Record):
    """A batch as it was when the server answered. `members` and `phases` are filled by `Client.batch` only."""

    id: int = 0
    runbook_name: str = ""
    runbook_version: int = 0
    status: str = ""
    batch_start_time: datetime | None = None  # T; none: a batch whose phases are begun by hand
    is_manual: bool = False
    importing: bool = False
    members: Mapping[str, int] = field(default_factory=dict)  # how many, by status
    error_message: str | None = None
    paused_by: str | None = None
    note: str | None = None  # by advance_batch(): the phase that was begun
    detected_at: datetime | None = None
    paused_at: datetime | None = None
    completed_at: datetime | None = None

    @functools.cached_property
    def phases(self) -> list[Phase]:
        return [Phase.parse(one) for one in self.raw.get("phases") or []]

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Member(_Record):
    id: int = 0
    batch_id: int = 0
    member_key: str = ""
    status: str = ""
    catching_up: bool = False
    data_json: Any = None  # what the source says; these two with full=True only
    worker_data_json: Any = None  # what steps put out
    added_at: datetime | None = None
    failed_at: datetime | None = None
    removed_at: datetime | None = None


@dataclass(frozen=True)
class Step(_Record):
    """A step of a member, as `Client.failures` has it."""

    id: int = 0
    batch_id: int = 0
    batch_member_id: int | None = None
    member_key: str = ""
    phase_name: str = ""
    step_name: str = ""
    status: str = ""
    function_name: str | None = None
    job_id: str | None = None
    error_message: str | None = None
    retry_count: int = 0
    poll_count: int = 0
    dispatched_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True)
class CallEvent(_CamelRecord):
    """One of the events that are the truth of a service call."""

    version: int = 0
    type: str = ""
    correlation_id: str = ""
    causation_id: str = ""
    data: Any = None
    occurred_at: datetime | None = None


@dataclass(frozen=True)
class ServiceCall(_CamelRecord):
    """A service call as it was when the server answered. `timeline` is filled by `Client.call` and `Client.wait_for_call` only."""

    service_call_id: str = ""
    tenant_id: str = ""
    name: str = ""
    status: str = ""
    request_spec: Mapping[str, Any] = field(default_factory=dict)  # without its body, and without what sounds secret
    response_meta: Mapping[str, Any] | None = None  # of one that succeeded: status, headers, the beginning of the body
    error_meta: Mapping[str, Any] | None = None  # of one that failed: kind, message, and the answer if there was one
    tags: list[str] = field(default_factory=list)
    correlation_id: str = ""
    repeat_of: str | None = None
    created: bool = False  # by submit_calls(): false if its key has made it before
    due_at: datetime | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @functools.cached_property
    def timeline(self) -> list[CallEvent]:
        return [CallEvent.parse(one) for one in self.raw.get("timeline") or []]

    @property
    def ended(self) -> bool:
        return self.status in ("Succeeded", "Failed")

    @property
    def succeeded(self) -> bool:
        return self.status == "Succeeded"

    @property
    def error_kind(self) -> str | None:
        """Of one that failed: HttpError, Timeout, NetworkError, TlsError, EgressDenied, OutcomeUnknown or Cancelled."""
        return None if self.error_meta is None else str(self.error_meta.get("kind") or "")

    @property
    def error(self) -> str | None:
        """Why it failed, for people. By submit_calls() also why it was refused: it has no id and no status then."""
        if self.error_meta is None:
            refused: str | None = self.raw.get("error")
            return refused
        return f"{self.error_kind}: {self.error_meta.get('message', '')}"


@dataclass(frozen=True)
class NewCall:
    """A service call to be submitted: one request, made once, at `due_at` or at once.

    `body` is a text or bytes that are sent as they are, or a JSON value. `timeout` is in seconds, of the whole. `probe` has
    method, url and headers of a request that tells, after a crash of the server, whether the call was received.
    """

    name: str
    url: str
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    body: Any = None
    due_at: Time | None = None
    tags: Iterable[str] | None = None
    timeout: float | None = None
    redirects: int | None = None
    probe: Mapping[str, Any] | None = None
    idempotency_key: str | None = None

    def _submission(self) -> dict[str, Any]:
        """As the server takes it. With a random key if there is none, so that a repeated request cannot make a second call."""
        encoded = base64.b64encode(self.body).decode() if isinstance(self.body, bytes) else None
        spec = _present(method=self.method, url=self.url, headers=_dict(self.headers),
                        body=self.body if encoded is None else None, bodyBase64=encoded or None, redirects=self.redirects,
                        timeoutMs=None if self.timeout is None else round(self.timeout * 1000), probe=_dict(self.probe))
        return _present(name=self.name, requestSpec=spec, dueAt=_iso(self.due_at), tags=_list(self.tags),
                        idempotencyKey=self.idempotency_key or str(uuid.uuid4()))


# --- Talking to the server --------------------------------------------------------------------------------------------------------


class _Backoff:
    """Doubling pauses with jitter, so that a thousand workers do not come back in the same moment."""

    def __init__(self, longest: float = 5.0) -> None:
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        self._pause = 0.05

    def next(self, error: Exception | None = None) -> float:
        self._pause = min(self._pause * 2, self._longest)
        asked = error.retry_after if isinstance(error, ApiError) else 0.0
        return max(self._pause, asked) * random.uniform(0.5, 1.0)


class _Connection:
    """One keep-alive connection for one thread at a time. Only abort() may come from another."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url if "://" in url else "http://" + url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not the address of a server: {url!r}")
        self._http: http.client.HTTPConnection
        if parts.scheme == "https":
            self._http = http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
        else:
            self._http = http.client.HTTPConnection(parts.hostname, parts.port)
        self._url, self._prefix = url, parts.path.rstrip("/")
        self._aborted = False

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
                 ) -> tuple[int, http.client.HTTPMessage, bytes]:
        sent = False
        self._http.timeout = min(timeout, 10.0)  # of connecting
        try:
            if self._http.sock is not None and _is_stale(self._http.sock):
                self._http.close()
            if self._http.sock is None:
                self._http.connect()
            assert self._http.sock is not None
            self._http.sock.settimeout(timeout)
            if self._aborted:  # looked at after connecting: an abort from now on finds the socket
                raise ConnectionAbortedError("the connection was ended from here")
            sent = True
            try:
                self._http.request(method, self._prefix + path, body, dict(headers))
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server that refuses a large body does not read all of it; its answer may be there
            response = self._http.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            reason = str(error) or type(error).__name__
            raise Unreachable(f"no answer from {self._url}: {reason}", sent) from error
        except BaseException:  # such as KeyboardInterrupt: half an exchange leaves nothing to go on with
            self._http.close()
            raise

    def __del__(self) -> None:  # with its thread, or with its client
        if hasattr(self, "_http"):
            self._http.close()

    def abort(self) -> None:
        self._aborted = True
        sock: socket.socket | None = self._http.sock
        if sock is not None:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # wakes whoever reads; close() would not
            except OSError:
                pass


def _is_stale(sock: socket.socket) -> bool:
    """A server may close an idle connection at any time; seeing that before sending makes it harmless."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _iso(value: Time | None) -> str | None:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(timezone.utc)")
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _problem(status: int, headers: http.client.HTTPMessage, data: bytes) -> ApiError:
    try:
        body = json.loads(data)
        if not isinstance(body, dict):
            raise ValueError
    except ValueError:  # a proxy's page
        body = {"code": "unexpected_answer", "detail": data[:200].decode("utf-8", "replace")}
    try:
        retry_after = float(headers.get("Retry-After", "0"))
    except ValueError:
        retry_after = 0.0
    return ApiError(status, str(body.get("code", "")), str(body.get("detail") or body.get("title") or ""),
                    body.get("errors") or (), str(body.get("instance") or ""), retry_after)


class Client:
    """The HTTP API. Arguments left out come from BATON_SERVER, BATON_TOKEN and BATON_TENANT, as on the command line.

    A request that finds no server, or one that asks to come back later, is repeated for `retry_for` seconds, if repeating cannot do
    it twice. Errors are `ApiError` (refused) and `Unreachable` (no answer). What waits (`wait`, `wait_for_call`, `follow`) goes on
    through restarts of the server: until its own time is over or, if it has none, as long as the server is not away for more
    than `reconnect_for` seconds.
    """

    def __init__(self, server: str | None = None, token: str | None = None, *, tenant: str | None = None,
                 timeout: float = 30.0, retry_for: float = 10.0, reconnect_for: float = 300.0,
                 ssl_context: ssl.SSLContext | None = None) -> None:
        self.server = server or os.environ.get("BATON_SERVER") or "http://127.0.0.1:8080"
        self.timeout, self.retry_for, self.reconnect_for = timeout, retry_for, reconnect_for
        self._context = ssl_context
        self._headers = {"Accept": "application/json", "User-Agent": f"baton-python/{__version__}"}
        token = token or os.environ.get("BATON_TOKEN")
        tenant = tenant or os.environ.get("BATON_TENANT")
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if tenant:
            self._headers["Baton-Tenant"] = tenant
        self._calls = f"/tenants/{_part(tenant or '-')}/service-calls"  # the only paths that name the tenant; -: the token's
        self._local = threading.local()
        self._connect()  # a bad address is an error here, not later

    # Workflows

    def publish(self, yaml_text: str) -> Workflow:
        return Workflow.parse(self.request("POST", "/workflows", yaml_text, content_type="application/yaml"))

    def validate(self, yaml_text: str) -> dict[str, Any]:
        """`valid`, `errors` and `warnings`, without publishing."""
        answer: dict[str, Any] = self.request("POST", "/workflows/validate", yaml_text, content_type="application/yaml")
        return answer

    def workflows(self) -> Iterator[Workflow]:
        return map(Workflow.parse, self._pages("/workflows", "workflows"))

    def workflow(self, workflow_id: str, version: int | None = None) -> Workflow:
        return Workflow.parse(self.request("GET", f"/workflows/{_part(workflow_id)}", query={"version": version}))

    # Jobs

    def submit(self, workflow_id: str, input_data: Mapping[str, Any] | None = None, *, version: int | None = None,
               idempotency_key: str | None = None, priority: int | None = None, tags: Iterable[str] | None = None,
               due_at: Time | None = None, delay_seconds: float | None = None, traceparent: str | None = None,
               wait: float = 0.0) -> Job:
        """Submits a job. Without a key it is given a random one, so that a repeated request cannot make a second job.

        With `wait` the answer comes when the job has ended, or after that many seconds with what it is then.
        """
        body = _present(
            workflow_id=workflow_id, version=version, input_data=input_data, priority=priority,
            tags=_list(tags), due_at=_iso(due_at), delay_seconds=delay_seconds,
            idempotency_key=idempotency_key or str(uuid.uuid4()),
        )
        until = time.monotonic() + wait
        headers = {"traceparent": traceparent} if traceparent else {}
        job = Job.parse(self.request("POST", "/jobs", body, headers=headers, wait=wait,
                                     retry_until=max(until, time.monotonic() + self.retry_for)))
        return job if job.ended or wait <= 0 else self._wait(job.job_id, until, job)

    def job(self, job_id: str) -> Job:
        return Job.parse(self.request("GET", f"/jobs/{_part(job_id)}", query=_FULL))

    def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """Waits for the end of a job, whatever it is, through restarts of the server. TimeoutError if it has not ended by then."""
        job = self._wait(job_id, None if timeout is None else time.monotonic() + timeout)
        if not job.ended:
            raise TimeoutError(f"job {job_id} is still {job.status} after {timeout} seconds")
        return job

    def _wait(self, job_id: str, until: float | None, job: Job | None = None) -> Job:
        while job is None or not job.ended:
            if job is not None and until is not None and time.monotonic() >= until:
                return job
            job = Job.parse(self._held(f"/jobs/{_part(job_id)}", _FULL, until, f"job {job_id}",
                                       lambda answer: Job.parse(answer).ended))
        return job

    def _held(self, path: str, query: Mapping[str, Any], until: float | None, what: str, over: Callable[[Any], bool]) -> Any:
        """An answer that the server holds back until there is something to say, 30 seconds at most, through its restarts."""
        begun = time.monotonic()
        left = 30.0 if until is None else max(0.0, until - begun)
        try:
            answer = self.request("GET", path, query=query, wait=min(left, 30.0), retry_for=self.reconnect_for,
                                  retry_until=until)
        except (Unreachable, ApiError) as error:
            if until is None or (isinstance(error, ApiError) and not error.temporary):
                raise
            raise TimeoutError(f"{what}: the time is over, and the server could not be reached: {error}") from error
        if not over(answer) and time.monotonic() - begun < min(left, 0.1):
            time.sleep(0.1)  # a server that stops answers at once
        return answer

    def jobs(self, *, status: str | None = None, workflow_id: str | None = None,
             created_from: Time | None = None, created_until: Time | None = None,
             limit: int | None = None) -> Iterator[Job]:
        """Newest first, page by page as you go; at most `limit`. Without input and result data."""
        query = {"status": status, "workflow_id": workflow_id,
                 "created_from": _iso(created_from), "created_until": _iso(created_until)}
        return map(Job.parse, self._pages("/jobs", "jobs", query, limit))

    def timeline(self, job_id: str) -> list[Event]:
        """All events of a job so far, oldest first."""
        return list(self._events(job_id, wait=0.0))

    def follow(self, job_id: str) -> Iterator[Event]:
        """The events of a job as they happen, until it has ended."""
        return self._events(job_id, wait=30.0)

    def _events(self, job_id: str, wait: float) -> Iterator[Event]:
        after: Any = None
        while True:
            path, query = f"/jobs/{_part(job_id)}/timeline", {"after": after, "limit": 1000}
            if wait > 0:
                answer = self._held(path, query, None, f"job {job_id}", lambda page: bool(page["events"]))
            else:
                answer = self.request("GET", path, query=query)
            yield from map(Event.parse, answer["events"])
            ended = answer.get("status") in ("COMPLETED", "FAILED", "CANCELLED")
            if not answer["events"] and (ended or wait <= 0):
                return
            after = answer["next_after"]

    def cancel(self, job_id: str, reason: str | None = None) -> Job:
        return self._act(job_id, "cancel", _present(reason=reason), safe=True)

    def pause(self, job_id: str, reason: str | None = None, *, by: str | None = None) -> Job:
        return self._act(job_id, "pause", _present(reason=reason, by=by), safe=True)

    def resume(self, job_id: str) -> Job:
        return self._act(job_id, "resume", {}, safe=True)

    def retry(self, job_id: str) -> Job:
        """Takes a failed job up again from what failed."""
        return self._act(job_id, "retry", {}, safe=False)

    def rerun(self, job_id: str, *, idempotency_key: str | None = None) -> Job:
        """A new job with the same workflow and input."""
        return self._act(job_id, "rerun", {"idempotency_key": idempotency_key or str(uuid.uuid4())}, safe=True)

    def _act(self, job_id: str, verb: str, body: Mapping[str, Any], safe: bool) -> Job:
        return Job.parse(self.request("POST", f"/jobs/{_part(job_id)}/{verb}", body, safe=safe))

    def why(self, job_id: str) -> Why:
        return Why.parse(self.request("GET", f"/jobs/{_part(job_id)}/why"))

    def items(self, job_id: str, node_id: str) -> Iterator[dict[str, Any]]:
        """The children of a fan-out."""
        return self._after(f"{_node(job_id, node_id)}/items", "items")

    def logs(self, job_id: str, node_id: str) -> Iterator[dict[str, Any]]:
        """The lines that the tasks of a node have logged."""
        return self._after(f"{_node(job_id, node_id)}/logs", "lines")

    # People

    def approvals(self) -> Iterator[Approval]:
        return map(Approval.parse, self._pages("/approvals", "approvals"))

    def approve(self, job_id: str, node_id: str, *, by: str, comment: str | None = None) -> dict[str, Any]:
        return self._judge(job_id, node_id, "approve", by, comment)

    def reject(self, job_id: str, node_id: str, *, by: str, comment: str | None = None) -> dict[str, Any]:
        return self._judge(job_id, node_id, "reject", by, comment)

    def _judge(self, job_id: str, node_id: str, verb: str, by: str, comment: str | None) -> dict[str, Any]:
        body = _present(by=by, comment=comment)
        answer: dict[str, Any] = self.request("POST", f"{_node(job_id, node_id)}/{verb}", body, safe=False)
        return answer

    # Workers

    def workers(self) -> list[WorkerInfo]:
        return [WorkerInfo.parse(one) for one in self._pages("/workers", "workers")]

    def dead_letters(self) -> Iterator[DeadLetter]:
        return map(DeadLetter.parse, self._pages("/dead-letters", "dead_letters"))

    def replay(self, task_id: str) -> dict[str, Any]:
        """Gives a dead task out again."""
        answer: dict[str, Any] = self.request("POST", f"/dead-letters/{_part(task_id)}/replay", {}, safe=False)
        return answer

    # Runbooks

    def publish_runbook(
        self, yaml_text: str, *, open_batches: str | None = None, overdue_behavior: str | None = None, rerun_init: bool = False
    ) -> Runbook:
        """A new version; open batches that have not begun go over to it. `open_batches` says what becomes of the others:
        `keep`, `ignore` or `rerun`; without it a version over such batches is refused (`open_batches`)."""
        query = {
            "open_batches": open_batches,
            "overdue_behavior": overdue_behavior,
            "rerun_init": "true" if rerun_init else None,
        }
        return Runbook.parse(self.request("POST", "/runbooks", yaml_text, query=query, content_type="application/yaml"))

    def validate_runbook(self, yaml_text: str) -> dict[str, Any]:
        """`valid`, `errors` and `warnings`, without publishing."""
        answer: dict[str, Any] = self.request("POST", "/runbooks/validate", yaml_text, content_type="application/yaml")
        return answer

    def runbooks(self) -> Iterator[Runbook]:
        """The newest version of each."""
        return map(Runbook.parse, self._pages("/runbooks", "runbooks"))

    def runbook(self, name: str, version: int | None = None) -> Runbook:
        return Runbook.parse(self.request("GET", f"/runbooks/{_part(name)}", query={"version": version}))

    def create_batch(self, runbook: str, csv_text: str, *, version: int | None = None, by: str | None = None) -> Batch:
        """A batch of the members in a CSV text, whose phases are begun by `advance_batch`."""
        path, query = f"/runbooks/{_part(runbook)}/batches", {"version": version, "by": by}
        return Batch.parse(self.request("POST", path, csv_text, query=query, content_type="text/csv", safe=False))

    def batches(self, *, runbook: str | None = None, status: str | None = None, limit: int | None = None) -> Iterator[Batch]:
        """Newest first, page by page as you go; at most `limit`."""
        return map(Batch.parse, self._pages("/batches", "batches", {"runbook": runbook, "status": status}, limit))

    def batch(self, batch_id: int) -> Batch:
        return Batch.parse(self.request("GET", f"/batches/{batch_id}"))

    def members(self, batch_id: int, *, status: str | None = None, full: bool = False) -> Iterator[Member]:
        """By id, page by page as you go."""
        query = {"status": status, "full": "true" if full else None}
        return map(Member.parse, self._pages(f"/batches/{batch_id}/members", "members", query))

    def matrix(self, batch_id: int, *, status: str | None = None, limit: int | None = None, cursor: str | None = None
               ) -> dict[str, Any]:
        """Members against steps: the columns in `phases`, a page of rows in `members`, `next_cursor` for the next page."""
        query = {"status": status, "limit": limit, "cursor": cursor}
        answer: dict[str, Any] = self.request("GET", f"/batches/{batch_id}/matrix", query=query)
        return answer

    def failures(self, batch_id: int, *, limit: int | None = None) -> Iterator[Step]:
        """The steps that failed for good, newest first."""
        return map(Step.parse, self._pages(f"/batches/{batch_id}/failures", "failures", limit=limit))

    def advance_batch(self, batch_id: int, phase: str | None = None, *, by: str | None = None) -> Batch:
        """Begins a phase now, whenever it is due: the named one, or the next."""
        return self._steer(batch_id, "advance", _present(phase=phase, by=by), safe=False)

    def pause_batch(self, batch_id: int, reason: str | None = None, *, by: str | None = None) -> Batch:
        return self._steer(batch_id, "pause", _present(reason=reason, by=by), safe=True)

    def resume_batch(self, batch_id: int, *, by: str | None = None) -> Batch:
        return self._steer(batch_id, "resume", _present(by=by), safe=True)

    def cancel_batch(self, batch_id: int, reason: str | None = None, *, by: str | None = None) -> Batch:
        return self._steer(batch_id, "cancel", _present(reason=reason, by=by), safe=True)

    def _steer(self, batch_id: int, verb: str, body: Mapping[str, Any], safe: bool) -> Batch:
        return Batch.parse(self.request("POST", f"/batches/{batch_id}/{verb}", body, safe=safe))

    def retry_members(self, batch_id: int, keys: Iterable[str] | None = None, *, by: str | None = None) -> dict[str, Any]:
        """Failed members go on from what failed: those of these keys, or all. `count` of the answer says how many."""
        return self._choose(batch_id, "retry", keys, by, safe=False)

    def remove_members(self, batch_id: int, keys: Iterable[str], *, by: str | None = None) -> dict[str, Any]:
        return self._choose(batch_id, "remove", keys, by, safe=True)

    def _choose(self, batch_id: int, verb: str, keys: Iterable[str] | None, by: str | None, safe: bool) -> dict[str, Any]:
        if isinstance(keys, str):
            raise TypeError("keys is a list of member keys, not one of them")
        body = _present(member_keys=_list(keys), all=True if keys is None else None, by=by)
        if body.get("member_keys") == []:
            return {"count": 0, "left_out": 0, "member_ids": []}
        answer: dict[str, Any] = self.request("POST", f"/batches/{batch_id}/members:{verb}", body, safe=safe)
        return answer

    def send_events(self, events: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Messages of a scheduler, such as phase-due: one, or up to 1,000, each of which has an entry in `results`."""
        answer: dict[str, Any] = self.request("POST", "/events", _one_or_many(events))
        return answer

    def report_worker_result(self, results: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Results in the shape of the contract (jobId, status, result, …): one, or up to 1,000. A `Worker` does not need it."""
        answer: dict[str, Any] = self.request("POST", "/callbacks/worker-result", _one_or_many(results))
        return answer

    # Service calls

    def submit_call(self, name: str, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: Any = None,
                    due_at: Time | None = None, tags: Iterable[str] | None = None, timeout: float | None = None,
                    redirects: int | None = None, probe: Mapping[str, Any] | None = None,
                    idempotency_key: str | None = None) -> ServiceCall:
        """Has one request made, once, at its time or at once. The arguments are those of `NewCall`.

        Without a key it is given a random one, so that a repeated request cannot make a second call.
        """
        wanted = NewCall(name, url, method, headers, body, due_at, tags, timeout, redirects, probe, idempotency_key)
        return ServiceCall.parse(self.request("POST", self._calls, wanted._submission()))

    def submit_calls(self, calls: Iterable[NewCall]) -> list[ServiceCall]:
        """Up to 1,000 calls in one request, answered in their order. If a field of one is wrong, none is stored.

        One whose key was used for another request has no id in the answer but an `error`; the others are stored.
        """
        wanted = [call._submission() for call in calls]
        if not wanted:
            return []
        return [ServiceCall.parse(one) for one in self.request("POST", self._calls + ":batch", {"calls": wanted})["calls"]]

    def call(self, call_id: str) -> ServiceCall:
        """A call with its timeline."""
        return ServiceCall.parse(self.request("GET", f"{self._calls}/{_part(call_id)}"))

    def calls(self, *, status: str | None = None, name: str | None = None, tags: Iterable[str] | None = None,
              due_from: Time | None = None, due_until: Time | None = None, limit: int | None = None) -> Iterator[ServiceCall]:
        """Newest first, page by page as you go; at most `limit`. Of several `tags` a call has to have all."""
        query = {"status": status, "name": name, "tag": _list(tags),
                 "dueFrom": _iso(due_from), "dueUntil": _iso(due_until)}
        return map(ServiceCall.parse, self._pages(self._calls, "serviceCalls", query, limit))

    def wait_for_call(self, call_id: str, timeout: float | None = None) -> ServiceCall:
        """Waits for the end of a call, whatever it is, through restarts of the server. TimeoutError if it has not ended by then."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            call = ServiceCall.parse(self._held(f"{self._calls}/{_part(call_id)}", {}, until, f"call {call_id}",
                                                lambda answer: ServiceCall.parse(answer).ended))
            if call.ended:
                return call
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"call {call_id} is still {call.status} after {timeout} seconds")

    def cancel_call(self, call_id: str, reason: str | None = None, *, by: str | None = None) -> ServiceCall:
        """Cancels a call that is Scheduled. Not an error if it was cancelled before: perhaps by us, and the answer was lost."""
        try:
            return self._change_call(call_id, "cancel", _present(reason=reason, by=by))
        except ApiError as error:
            if error.code != "not_possible":
                raise
            call = self.call(call_id)
            if call.error_kind != "Cancelled":
                raise
            return call

    def reschedule_call(self, call_id: str, due_at: Time, *, by: str | None = None) -> ServiceCall:
        """Gives a call that is Scheduled another time."""
        return self._change_call(call_id, "reschedule", _present(dueAt=_iso(due_at), by=by))

    def repeat_call(self, call_id: str, *, due_at: Time | None = None) -> ServiceCall:
        """A new call with the same request as one that has ended, at `due_at` or at once. Look first why the old one failed.

        It is asked for with a random key, so that a repeated request cannot make a second call.
        """
        return self._change_call(call_id, "repeat", _present(dueAt=_iso(due_at)), {"Idempotency-Key": str(uuid.uuid4())})

    def _change_call(self, call_id: str, verb: str, body: Mapping[str, Any],
                     headers: Mapping[str, str] | None = None) -> ServiceCall:
        return ServiceCall.parse(self.request("POST", f"{self._calls}/{_part(call_id)}/{verb}", body, headers=headers))

    # Everything else

    def request(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None,
                headers: Mapping[str, str] | None = None, content_type: str = "application/json", wait: float = 0.0,
                safe: bool = True, retry_for: float | None = None, retry_until: float | None = None) -> Any:
        """Any request under /api/v1: JSON in, JSON out. Say `safe=False` if doing it twice would be wrong.

        It is tried again for `retry_for` seconds from the first failure, or until a time of `time.monotonic()`.
        """
        wait_until = time.monotonic() + wait
        backoff = _Backoff(longest=2.0)
        until = retry_until

        def rest(pause: float) -> bool:
            """Before the next try; false: there is no time for another."""
            nonlocal until
            now = time.monotonic()
            if until is None:
                until = now + (self.retry_for if retry_for is None else retry_for)
            if now >= until:
                return False
            time.sleep(min(pause, until - now))
            return True

        while True:
            try:
                return self._once(method, path, body, query, headers, content_type, wait)
            except Unreachable as error:
                if (error.sent and not safe) or not rest(backoff.next()):
                    raise
            except ApiError as error:
                pause = backoff.next(error)
                settled = error.status in (429, 503) and error.code != "store_unavailable"  # certain that nothing has happened
                if not error.temporary or not (safe or settled) or not rest(pause):
                    raise
            wait = max(0.0, wait_until - time.monotonic())

    def _once(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None,
              headers: Mapping[str, str] | None = None, content_type: str = "application/json", wait: float = 0.0,
              connection: _Connection | None = None, timeout: float | None = None) -> Any:
        pairs = _present(**(query or {}))
        if wait > 0:
            pairs["wait_ms"] = min(60_000, int(wait * 1000))
        target = "/api/v1" + path + ("?" + urlencode(pairs, doseq=True) if pairs else "")
        all_headers = {**self._headers, **(headers or {})}
        data: bytes | None = None
        if body is not None:
            all_headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body)
        status, answer_headers, answer = (connection or self._mine()).exchange(
            method, target, data, all_headers, (timeout or self.timeout) + min(wait, 60.0))
        if not 200 <= status < 300:
            raise _problem(status, answer_headers, answer)
        try:
            return json.loads(answer) if answer else None
        except ValueError as error:
            raise ApiError(status, "unexpected_answer", f"{self.server} did not answer with JSON; is it a baton server?") from error

    def _connect(self) -> _Connection:
        return _Connection(self.server, self._context)

    def _mine(self) -> _Connection:
        local = self._local
        if getattr(local, "pid", None) != os.getpid():  # a forked child must not talk into its parent's connection
            local.pid, local.connection = os.getpid(), self._connect()
        connection: _Connection = local.connection
        return connection

    def _pages(self, path: str, key: str, query: Mapping[str, Any] | None = None, limit: int | None = None
               ) -> Iterator[dict[str, Any]]:
        cursor, left = None, limit
        while left is None or left > 0:
            page = None if left is None else min(left, 200)
            answer = self.request("GET", path, query={**(query or {}), "limit": page, "cursor": cursor})
            yield from answer[key]
            cursor = answer.get("next_cursor") or answer.get("nextCursor")
            left = None if left is None else left - len(answer[key])
            if cursor is None:
                return

    def _after(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        after: Any = None
        while True:
            answer = self.request("GET", path, query={"after": after})
            yield from answer[key]
            if not answer[key] or answer.get("next_after") in (None, after):
                return
            after = answer["next_after"]


def _part(text: str) -> str:
    return quote(text, safe="")


def _node(job_id: str, node_id: str) -> str:
    return f"/jobs/{_part(job_id)}/nodes/{_part(node_id)}"


def _dict(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)  # JSON is written of dicts, and of no other mapping


def _list(given: Iterable[str] | None) -> list[str] | None:
    return None if given is None else list(given)


def _one_or_many(said: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Any:
    return said if isinstance(said, Mapping) else list(said)


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


# --- Working ----------------------------------------------------------------------------------------------------------------------


class Context:
    """What a task knows of itself, and how it talks back. Used by the thread of the task.

    Each method raises `Cancelled` once the task is not this worker's any more: cancelled, timed out, or given to another.
    """

    def __init__(self, worker: Worker, task: Task) -> None:
        self.task, self.task_id, self.job_id, self.node_id = task, task.task_id, task.job_id, task.node_id
        self.batch_id = task.batch_id  # of a job of a runbook
        self.params: Any = task.params
        self.attempt = task.retry_count + 1
        self.last_checkpoint: Any = task.checkpoint
        self.cancelled = threading.Event()
        self._client = worker.client
        self._lock = threading.Lock()  # of what follows: the heartbeat sends it too
        self._progress: dict[str, Any] | None = None
        self._keeps_progress = True  # until the server says that it cannot, as of jobs of runbooks
        self._lines: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        self._sent_at = 0.0

    def check(self) -> None:
        """Raises Cancelled if it is time to stop; for loops that call nothing else here."""
        if self.cancelled.is_set():
            raise Cancelled(self.task_id)

    def sleep(self, seconds: float) -> None:
        """Sleeps, and wakes up with Cancelled if it is time to stop."""
        if self.cancelled.wait(seconds):
            raise Cancelled(self.task_id)

    def progress(self, percent: float, message: str | None = None) -> None:
        """Says how far the task is. Cheap: at most one request a second, and the last word always arrives."""
        self.check()
        text = None if message is None else _clean(message)  # what is no text raises here, and not in a thread of the worker
        with self._lock:
            if self._keeps_progress:
                self._progress = _present(progress=max(0, min(100, int(percent))), message=text)
        self._tell(now=False)

    def log(self, text: str) -> None:
        """A line for the log of the node, and for Python's logging. Sent in batches, as progress is."""
        self.check()
        log.info("%s: %s", self.task_id, text)
        line = {"stream": "log", "text": _clean(text), "at": _iso(datetime.now(timezone.utc))}
        with self._lock:
            self._lines.append(line)
        self._tell(now=False)

    def checkpoint(self, value: Any) -> None:
        """Keeps a JSON value with the task; the next attempt finds it in `last_checkpoint`. Durable when this returns."""
        self.check()
        try:
            self._client.request("POST", "/callbacks/task-checkpoint", self._body(checkpoint=value), retry_for=60.0)
        except ApiError as error:
            self._lost(error)
            self.check()
            raise
        self.last_checkpoint = value

    def _tell(self, now: bool) -> None:
        """Sends what there is to send. It is a courtesy: no failure of it is the task's."""
        with self._lock:
            if not (self._progress or self._lines) or (not now and time.monotonic() - self._sent_at < 1.0):
                return
            self._sent_at = time.monotonic()
            try:
                if self._progress:
                    self._send_progress(self._progress)
                    self._progress = None
                while self._lines:
                    lines = [self._lines[i] for i in range(min(len(self._lines), 500))]
                    self._client._once("POST", "/callbacks/task-log", self._body(lines=lines), timeout=5.0)
                    for _ in lines:
                        self._lines.popleft()
            except Unreachable:
                pass  # kept for the next time
            except ApiError as error:
                if error.status < 500 and not error.temporary:
                    log.debug("%s: the server does not take progress or log: %s", self.task_id, error)
                    self._progress = None
                    self._lines.clear()
                self._lost(error)

    def _send_progress(self, progress: Mapping[str, Any]) -> None:
        try:
            self._client._once("POST", "/callbacks/task-progress", self._body(**progress), timeout=5.0)
        except ApiError as error:
            if error.code != "not_possible":
                raise
            log.debug("%s: the server keeps no progress: %s", self.task_id, error)
            self._keeps_progress = False

    def _lost(self, error: ApiError) -> None:
        gone = error.code in ("stale_result", "task_not_found", "stale_lease") or error.status == 409
        if gone and error.code != "not_possible":  # that is about what was asked, and the task is still ours
            self.cancelled.set()

    def _body(self, **more: Any) -> dict[str, Any]:
        return {"task_id": self.task_id, "lease": self.task.lease, **more}


def _clean(text: str) -> str:
    """Text that every JSON reader takes: no lone surrogates, no end."""
    return text[:10_000].encode("utf-8", "replace").decode()


class _Handler:
    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function, self._signature = name, function, inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"task {name!r} is a coroutine; tasks run in threads and are plain functions")
        if not parameters or parameters[0].kind not in (parameters[0].POSITIONAL_ONLY, parameters[0].POSITIONAL_OR_KEYWORD):
            raise TypeError(f"the first parameter of task {name!r} must be the context, as in def {name}(ctx, …)")
        self._takes_all = len(parameters) == 2 and parameters[1].name == "params"

    def __call__(self, context: Context) -> Any:
        if self._takes_all:
            return self._function(context, context.params)
        if not isinstance(context.params, dict):
            raise TaskFailed(f"task '{self._name}' takes named parameters, and the params are no object")
        try:
            bound = self._signature.bind(context, **context.params)
        except TypeError as error:
            raise TaskFailed(f"the params do not fit task '{self._name}': {error}") from None
        return self._function(*bound.args, **bound.kwargs)


@dataclass(frozen=True)
class _Result:
    context: Context
    data: bytes
    tries: int = 0  # in which the connection broke while it was sent
    last_word: bool = False  # it stands for a result that the server refused to read


class Worker:
    """Runs the tasks of one queue in `concurrency` threads.

    It asks for as many tasks as it has threads free, plus `prefetch`: a reserve makes a queue of very short tasks faster.
    `run` returns after `stop`, SIGTERM or SIGINT, when what had begun is done and reported. A second signal, or the end of
    `drain_seconds`, ends the waiting: what still runs is cancelled, and somebody else is given it when its leases have run out.
    """

    def __init__(self, client: Client, queue: str, *, concurrency: int = 8, prefetch: int = 0, name: str | None = None,
                 poll_seconds: float = 30.0, heartbeat_seconds: float = 10.0, drain_seconds: float | None = None) -> None:
        if concurrency < 1 or prefetch < 0:
            raise ValueError("concurrency must be at least 1, and prefetch not negative")
        self.client, self.queue = client, queue
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._concurrency, self._prefetch = concurrency, prefetch
        self._poll_seconds, self._heartbeat_seconds, self._drain_seconds = poll_seconds, heartbeat_seconds, drain_seconds
        self._handlers: dict[str, _Handler] = {}
        self._wake: SimpleQueue[str] = SimpleQueue()  # for run(): the only thing that a signal handler touches
        self._running = threading.Lock()
        self._background: threading.Thread | None = None
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._room = self._concurrency + self._prefetch  # guarded by _changed
        self._held: dict[str, Context] = {}  # guarded by _changed: from the hand-out until the result is settled
        self._unsettled: set[Context] = set()  # guarded by _changed: as _held, and those whose task came back under a new lease
        self._tasks: SimpleQueue[Context | None] = SimpleQueue()
        self._results: SimpleQueue[_Result | None] = SimpleQueue()
        self._stopping, self._gave_up, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._polling = self.client._connect()
        self._failure: BaseException | None = None

    @overload
    def task(self, name: F) -> F: ...
    @overload
    def task(self, name: str | None = None) -> Callable[[F], F]: ...
    def task(self, name: Any = None) -> Any:
        """Registers a function for a handler, or a function of a runbook, of that name; without a name, for its own.

        The params of the task are its keyword arguments. A function of the form `f(ctx, params)` is given all of them as they are.
        """
        if callable(name):
            return self.task()(name)

        def register(function: F) -> F:
            handler = name or function.__name__
            if handler in self._handlers:
                raise ValueError(f"there is a task {handler!r} already")
            self._handlers[handler] = _Handler(handler, function)
            return function

        return register

    # Life

    def run(self, *, signals: bool = True) -> None:
        """Works until it is told to stop. Raises what made it impossible to go on, such as a token that is not accepted."""
        previous: dict[signal.Signals, Any] = {}
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                previous[number] = signal.signal(number, lambda *_: self._wake.put("signal"))
        try:
            self._run()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Asks run() to finish what has begun and to return. From any thread, also from a task."""
        self._wake.put("stop")

    def __enter__(self) -> Worker:
        """Works in the background; the end of the `with` block stops it and waits."""
        self._background = threading.Thread(target=self._run, name="baton-worker", daemon=True)
        self._background.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
        if self._background is not None:
            self._background.join()
        self._wake = SimpleQueue()  # it may have ended before: this stop() is not for the next run
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        if not self._running.acquire(blocking=False):
            raise RuntimeError("this worker runs already")
        try:
            self._reset()
            poller = self._thread(self._poll)
            helpers = [self._thread(self._send), self._thread(self._beat)]
            helpers += [self._thread(self._work) for _ in range(self._concurrency)]
            log.info("worker %s serves queue %s of %s", self.name, self.queue, self.client.server)
            self._wait_for_word()
            self._stopping.set()
            with self._changed:
                self._changed.notify_all()
            self._polling.abort()
            if not self._drained(poller):
                self._give_up()
            for _ in range(self._concurrency):
                self._tasks.put(None)
            self._results.put(None)
            self._ended.set()
            for helper in helpers:
                helper.join(0.2 if self._gave_up.is_set() else None)
        finally:
            self._wake = SimpleQueue()
            self._running.release()

    def _wait_for_word(self) -> None:
        """Waits for a signal, stop(), or a poller that cannot go on.

        Not in one long wait: a signal that comes just before get() sleeps, or to another thread, does not wake it, and Python
        runs the handler only when the main thread runs again. The signal would be slept through for ever.
        """
        while True:
            try:
                self._wake.get(timeout=0.5)
                return
            except Empty:
                continue

    def _thread(self, target: Callable[[], None]) -> threading.Thread:
        # Daemons, and not a ThreadPoolExecutor: a task that hangs must not keep the process from ending.
        thread = threading.Thread(target=target, name=f"baton-{self.queue}{target.__name__}", daemon=True)
        thread.start()
        return thread

    def _drained(self, poller: threading.Thread) -> bool:
        """Waits until nothing is held. False if that takes too long, or somebody is impatient."""
        until = None if self._drain_seconds is None else time.monotonic() + self._drain_seconds
        while True:
            with self._changed:
                if not poller.is_alive() and not self._unsettled:
                    return True
                log.debug("stopping; %d tasks are not settled", len(self._unsettled))
            try:
                word = self._wake.get(timeout=0.1 if until is None else max(0.0, min(0.1, until - time.monotonic())))
            except Empty:
                word = ""
            if word == "signal" or (until is not None and time.monotonic() >= until):
                return False

    def _give_up(self) -> None:
        self._gave_up.set()
        with self._changed:
            left = list(self._held.values())
        for context in left:
            context.cancelled.set()
        log.warning("worker %s leaves %d tasks behind; their leases will run out", self.name, len(left))

    # The threads

    def _poll(self) -> None:
        path, backoff = f"/workers/{_part(self.queue)}/jobs:poll", _Backoff()
        timeout = self.client.timeout + self._poll_seconds
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._room > 0 or self._stopping.is_set())
                    room = self._room
                if self._stopping.is_set():
                    return
                begun = time.monotonic()
                body = {"worker": self.name, "max": min(room, 1000), "wait_ms": int(self._poll_seconds * 1000), "heartbeat": True}
                try:
                    jobs = self.client._once("POST", path, body, connection=self._polling, timeout=timeout)["jobs"]
                except (ApiError, Unreachable) as error:
                    if self._stopping.is_set():
                        return
                    if isinstance(error, ApiError) and error.status < 500 and not error.temporary:
                        raise
                    pause = backoff.next(error)
                    log.warning("cannot ask for tasks, again in %.1f s: %s", pause, error)
                    self._stopping.wait(pause)
                    continue
                backoff.reset()
                for job in jobs:
                    self._begin(_handed_out(job))
                if not jobs and time.monotonic() - begun < min(0.1, self._poll_seconds):
                    self._stopping.wait(0.1)  # a server that stops answers at once
        except BaseException as error:
            log.error("worker %s cannot go on: %s", self.name, error)
            self._failure = error
        finally:
            self._wake.put("polled")

    def _begin(self, task: Task) -> None:
        context = Context(self, task)
        with self._changed:
            earlier = self._held.get(task.task_id)
            self._held[task.task_id] = context
            self._unsettled.add(context)
            self._room -= 1
        if earlier is not None:  # its lease ran out, and the task came back to us under a new one
            earlier.cancelled.set()
        self._tasks.put(context)

    def _work(self) -> None:
        while True:
            context = self._tasks.get()
            if context is None:
                return
            result = self._perform(context)
            if result is None:
                self._settle(context)
            else:
                self._results.put(result)
            with self._changed:
                self._room += 1
                self._changed.notify()

    def _perform(self, context: Context) -> _Result | None:
        begun = time.monotonic()
        try:
            context.check()
            handler = self._handlers.get(context.task.handler)
            if handler is None:
                known = ", ".join(sorted(self._handlers)) or "none"
                raise TaskFailed(f"worker {self.name} has no task '{context.task.handler}' (it has: {known})")
            outcome = {"status": "completed", "output": handler(context)}
        except TaskFailed as error:
            outcome = {"status": "failed", "error": _clean(str(error)) or "failed"}
        except BaseException as error:
            if not context.cancelled.is_set():
                log.exception("task %s failed", context.task_id)
            outcome = {"status": "failed", "error": _clean(f"{type(error).__name__}: {error}")}
        if not context.cancelled.is_set():
            context._tell(now=True)
        if context.cancelled.is_set():
            log.info("task %s is not ours any more; nothing is reported", context.task_id)
            return None
        return self._result(context, outcome, int((time.monotonic() - begun) * 1000))

    def _result(self, context: Context, outcome: dict[str, Any], duration_ms: int = 0) -> _Result:
        more = {"worker_id": self.name, "execution_duration_ms": duration_ms}
        try:
            return _Result(context, _json({**context._body(), **more, **outcome}))
        except (TypeError, ValueError, RecursionError) as error:
            log.error("task %s returned what is not JSON: %s", context.task_id, error)
            refused = {"status": "failed", "error": _clean(f"the output cannot be written as JSON: {error}")}
            return _Result(context, _json({**context._body(), **more, **refused}))

    def _send(self) -> None:
        """Sends results, as many at a time as have come together meanwhile, until each is accepted or refused."""
        waiting: deque[_Result] = deque()
        backoff, open_ = _Backoff(), True
        while not self._gave_up.is_set():
            try:
                while open_ and len(waiting) < RESULTS_MAX:
                    result = self._results.get(block=not waiting)
                    open_ = result is not None
                    if result is not None:
                        waiting.append(result)
            except Empty:
                pass
            if not waiting:
                return
            batch: list[_Result] = []
            size = 0
            while waiting and len(batch) < RESULTS_MAX and (not batch or size + len(waiting[0].data) <= BYTES_MAX):
                size += len(waiting[0].data)
                batch.append(waiting.popleft())
            try:
                again = self._report(batch)
                error: Exception | None = None
            except Exception as problem:  # a thread that dies here would lose results
                again, error = self._broken(batch, problem), problem
            if not again:
                backoff.reset()
                continue
            waiting.extendleft(reversed(again))
            if error is not None or len(again) == len(batch):
                pause = backoff.next(error)
                log.warning("%d results wait, again in %.1f s: %s", len(waiting), pause, error or "not now")
                self._gave_up.wait(pause)

    def _report(self, batch: list[_Result]) -> list[_Result]:
        """Returns those that have to be sent again."""
        try:
            body = b'{"results":[' + b",".join(result.data for result in batch) + b"]}"
            outcomes = self.client._once("POST", "/callbacks/task-results", body)["results"]
        except ApiError as error:
            if error.status >= 500 or error.temporary:
                raise
            if len(batch) == 1:
                return self._refused(batch[0], error)
            # One of them is wrong, and the whole was refused. Tell it apart.
            again: list[_Result] = []
            for result in batch:
                try:
                    again += self._report([result])
                except (ApiError, Unreachable):
                    again.append(result)
            return again
        if len(outcomes) != len(batch):
            raise ApiError(502, "unexpected_answer", f"{len(batch)} results were sent and {len(outcomes)} answered")
        again = []
        for result, outcome in zip(batch, outcomes):
            if outcome["accepted"]:
                self._settle(result.context)
            elif outcome.get("code") in NOT_NOW:
                again.append(result)
            else:
                reason = f"{outcome.get('code')}: {outcome.get('message')}"
                log.warning("the result of %s is dropped: %s", result.context.task_id, reason)
                self._settle(result.context)
        return again

    def _broken(self, batch: list[_Result], error: Exception) -> list[_Result]:
        """A body that is too large may end the connection instead of being refused: do not send that for ever."""
        if len(batch) > 1 or len(batch[0].data) <= BYTES_MAX or not (isinstance(error, Unreachable) and error.sent):
            return batch
        result = dataclasses.replace(batch[0], tries=batch[0].tries + 1)
        if result.tries < 5:
            return [result]
        return self._refused(result, ApiError(413, "body_too_large", f"{len(result.data)} bytes cannot be sent"))

    def _refused(self, result: _Result, error: ApiError) -> list[_Result]:
        if error.status in (400, 413, 422) and not result.last_word:
            log.error("the result of %s cannot be taken: %s", result.context.task_id, error)
            failed = {"status": "failed", "error": _clean(f"the server did not take the output: {error.detail}")}
            return [dataclasses.replace(self._result(result.context, failed), last_word=True)]
        log.error("the result of %s is dropped: %s", result.context.task_id, error)
        self._settle(result.context)
        return []

    def _settle(self, context: Context) -> None:
        with self._changed:
            if self._held.get(context.task_id) is context:
                del self._held[context.task_id]
            self._unsettled.discard(context)
            done = not self._unsettled
        if done and self._stopping.is_set():
            self._wake.put("settled")

    def _beat(self) -> None:
        """Renews the leases of all that is held, and hears what is to be stopped."""
        pause = self._heartbeat_seconds
        while not self._ended.wait(pause):
            with self._changed:
                held = [context for context in self._held.values() if not context.cancelled.is_set()]
            pause, begun = self._heartbeat_seconds, time.monotonic()
            for first in range(0, len(held), 1000):
                part = held[first : first + 1000]
                try:
                    body = {"worker": self.name, "tasks": [context._body() for context in part]}
                    cancelled = set(self.client._once("POST", "/workers/heartbeat", body, timeout=5.0)["cancelled"])
                except Exception as error:  # whatever it is, the next one may succeed
                    log.warning("heartbeat failed: %s", error)
                    pause = min(1.0, self._heartbeat_seconds)
                    break
                for context in part:
                    if context.task_id in cancelled:
                        context.cancelled.set()
            for context in held:
                if pause < self._heartbeat_seconds or time.monotonic() - begun > self._heartbeat_seconds / 2:
                    break  # leases come first
                context._tell(now=True)
