"""One client's state and the flows every operation goes through: versions, retries, redirects, results."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from .clock import monotonic
from .effects import CloseStream, Exchange, Flow, Head, OpenStream, ReadChunk, Request, Sleep
from .errors import (
    CompatibilityError,
    EnvaiError,
    NotFoundError,
    RedirectRefusedError,
    RequestTimeoutError,
    TransportError,
)
from .models import Capabilities
from .models.base import decode
from .options import Options, RetryPolicy, origin_of
from .requests import (
    OPERATIONS,
    Operation,
    build,
    check_acknowledgement,
    parse_json,
    read_error,
    read_result,
    retry_after,
)
from .signals import LOGGER, RequestEnded, RequestStarted, Retrying, Signal, write_log

T = TypeVar("T")
RETRYABLE = {429, 502, 503, 504}
REDIRECTS = {301, 302, 303, 307, 308}
MAX_REDIRECTS = 3


class Core:
    """Settings, what was learnt about the server, and who watches. Shared by every flow of one client."""

    def __init__(self, options: Options, logger: logging.Logger | None = None) -> None:
        self.options = options
        self.logger = logger or LOGGER
        self.version: int | None = None if options.contract_version == "auto" else options.contract_version
        self.capabilities: Capabilities | None = None

    def with_options(self, **changes: Any) -> Core:
        """The same with other settings; what was learnt stays."""
        other = Core(msgspec.structs.replace(self.options, **changes), self.logger)
        other.version, other.capabilities = self.version, self.capabilities
        return other

    def notify(self, signal: Signal) -> None:
        """Tell the log and the observer; a failing observer is reported and never breaks a request."""
        write_log(signal, self.logger)
        if self.options.observer is not None:
            try:
                self.options.observer(signal)
            except Exception as problem:  # the application's code
                self.logger.warning("observer failed: %s", type(problem).__name__)


def deadline_of(timeout: float | None) -> float | None:
    """The monotonic moment `timeout` seconds from now."""
    return None if timeout is None else monotonic() + timeout


def remaining(deadline: float | None) -> float | None:
    """Seconds left, None without a deadline. Raises RequestTimeoutError when none are left."""
    if deadline is None:
        return None
    left = deadline - monotonic()
    if left <= 0:
        raise RequestTimeoutError("the operation's timeout has passed")
    return left


@contextmanager
def naming(operation: Operation) -> Iterator[None]:
    """Let every error say which operation it is of."""
    try:
        yield
    except EnvaiError as problem:
        problem.where = problem.where or f"{operation.id} {operation.method} {operation.path}"
        raise


def call(
    core: Core, name: str, given: dict[str, Any], kind: Any, timeout: float | None = None, retries: int | None = None
) -> Flow[Any]:
    """Perform an operation that answers JSON or nothing; `timeout` bounds all of it, retries included."""
    operation = OPERATIONS[name]
    with naming(operation):
        version, head, body = yield from answer(core, operation, given, timeout, retries)
        value = read_result(operation, head, body, version)
        return None if operation.result == "none" else decode(kind, value)


def answer(
    core: Core, operation: Operation, given: dict[str, Any], timeout: float | None, retries: int | None
) -> Flow[tuple[int, Head, bytes]]:
    """The contract version that was spoken, and the answer, whatever it is."""
    deadline = deadline_of(timeout)
    version = yield from contract_version(core, operation, deadline)
    request = build(core.options, operation, given, version, timeout)
    head, body = yield from send(core, operation, request, deadline, retries)
    return version, head, body


def call_raw(
    core: Core, name: str, given: dict[str, Any], timeout: float | None, retries: int | None
) -> Flow[RawResponse]:
    """The answer to an operation as it came, refusals included. Raises ValueError for what is not answered whole."""
    operation = OPERATIONS.get(name)
    if operation is None or operation.result not in ("json", "none"):
        raise ValueError(f"{name!r} is no operation that answers JSON or nothing")
    with naming(operation):
        version, head, body = yield from answer(core, operation, given, timeout, retries)
    return RawResponse(operation=operation, version=version, head=head, content=body)


class RawResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came: status, headers and bytes."""

    operation: Operation
    version: int
    head: Head
    content: bytes

    @property
    def http_status(self) -> int:
        return self.head.status

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names in lower case, repeated lines kept."""
        return list(self.head.headers)

    @property
    def request_id(self) -> str | None:
        return self.head.get("x-request-id")

    def json(self) -> object:
        """The body, parsed. Raises InvalidResponseError if it is not JSON."""
        value: object = parse_json(self.content)
        return value

    def raise_for_status(self) -> RawResponse:
        """This answer, or the error it stands for."""
        if not 200 <= self.http_status < 300:
            with naming(self.operation):
                raise read_error(self.head, self.content)
        return self

    def __repr__(self) -> str:
        return f"<RawResponse {self.operation.id} {self.http_status} {len(self.content)} bytes>"


def contract_version(core: Core, operation: Operation, deadline: float | None) -> Flow[int]:
    """The version to speak; asked of the server once, the first time it matters."""
    if core.version is None:
        if not operation.negotiated or operation.id == "getCapabilitiesLegacy":
            return 3
        yield from learn_capabilities(core, deadline)
    return core.version or 3


def learn_capabilities(core: Core, deadline: float | None) -> Flow[Capabilities]:
    """What the server announces, cached. Falls back to the version 2 paths only if version 3 is not there."""
    if core.capabilities is not None:
        return core.capabilities
    options = core.options
    operation = OPERATIONS["getCapabilities"]
    for version in (3, 2) if core.version is None else (core.version,):
        request = build(options, operation, {}, version, None)
        head, body = yield from send(core, operation, request, deadline)
        try:
            raw = read_result(operation, head, body, version)
        except (NotFoundError, CompatibilityError):
            if version == 2 or core.version is not None:
                raise
            continue
        core.capabilities = decode(Capabilities, raw)
        core.version = version
        return core.capabilities
    raise AssertionError("unreachable: the last version raises")


def send(
    core: Core, operation: Operation, request: Request, deadline: float | None, retries: int | None = None
) -> Flow[tuple[Head, bytes]]:
    """The answer, after the retries that are safe: GET only, whatever a mutation carries."""
    policy = core.options.retry
    if retries is not None:
        policy = msgspec.structs.replace(policy, max_retries=retries)
    attempt = 0
    while True:
        failure: TransportError | None = None
        try:
            head, body = yield from exchange(core, request, deadline)
        except TransportError as problem:
            failure = problem
        if failure is None and head.status not in RETRYABLE:
            return head, body
        asked = None if failure else retry_after(head)
        if not may_retry(policy, operation, attempt, asked, deadline):
            if failure:
                raise failure
            return head, body
        attempt += 1
        delay = asked if asked is not None else backoff(policy.base_delay, policy.max_delay, attempt)
        status = None if failure else head.status
        core.notify(Retrying(operation=operation.id, attempt=attempt, delay=delay, status=status))
        yield Sleep(delay, deadline)


def may_retry(
    policy: RetryPolicy, operation: Operation, attempt: int, asked: float | None, deadline: float | None
) -> bool:
    out_of_time = deadline is not None and monotonic() + (asked or 0) >= deadline
    too_long = asked is not None and asked > policy.max_retry_after
    return operation.retry_safe and attempt < policy.max_retries and not too_long and not out_of_time


def backoff(base: float, ceiling: float, attempt: int) -> float:
    """Exponential with full jitter above one half, seconds."""
    top = min(ceiling, base * 2.0 ** (attempt - 1))
    return top * (0.5 + random.random() / 2)  # noqa: S311  # jitter, not a secret


def exchange(core: Core, request: Request, deadline: float | None) -> Flow[tuple[Head, bytes]]:
    """One answer, following the redirects that keep to the origin."""
    for _ in range(MAX_REDIRECTS + 1):
        started = announce(core, request)
        status = None
        try:
            head, body = yield Exchange(request, deadline)
            status = head.status
        finally:
            conclude(core, request, status, started)
        if status not in REDIRECTS:
            return head, body
        request = redirected(request, head, keep_bytes=False)
    raise RedirectRefusedError("too many redirects", http_status=head.status)


def announce(core: Core, request: Request) -> float:
    core.notify(RequestStarted(operation=request.operation, method=request.method, path=request.label))
    return monotonic()


def conclude(core: Core, request: Request, status: int | None, started: float) -> None:
    seconds = monotonic() - started
    core.notify(
        RequestEnded(
            operation=request.operation, method=request.method, path=request.label, status=status, seconds=seconds
        )
    )


def redirected(request: Request, head: Head, *, keep_bytes: bool) -> Request:
    """The request a redirect leads to. Another origin never sees credentials, and only downloads may go there."""
    target = urljoin(request.url, head.get("location") or "")
    same = origin_of(target) == origin_of(request.url)
    downgrade = urlsplit(request.url).scheme == "https" and urlsplit(target).scheme != "https"
    bad = request.method != "GET" or head.get("location") is None or downgrade
    if bad or urlsplit(target).scheme not in ("http", "https") or not (same or keep_bytes):
        raise RedirectRefusedError("refused a redirect", http_status=head.status)
    kept = (
        request.headers
        if same
        else {name: request.headers[name] for name in ("Accept", "Accept-Encoding", "User-Agent")}
    )
    return msgspec.structs.replace(request, url=target, headers=kept)


def open_bytes(core: Core, name: str, given: dict[str, Any], timeout: float | None) -> Flow[Head]:
    """The head of a download, its body unread; `timeout` bounds the wait for the head and each read."""
    operation = OPERATIONS[name]
    with naming(operation):
        version = yield from contract_version(core, operation, deadline_of(timeout))
        request = build(core.options, operation, given, version, timeout)
        head = yield from open_request(core, request, deadline_of(timeout))
        try:
            check_acknowledgement(operation, head, version)
        except CompatibilityError:
            yield CloseStream(head.handle)
            raise
        return head


def open_request(core: Core, request: Request, deadline: float | None) -> Flow[Head]:
    """An open, successful answer, after at most a few redirects. Anything else is closed and raised."""
    for _ in range(MAX_REDIRECTS + 1):
        started = announce(core, request)
        status = None
        try:
            head: Head = yield OpenStream(request, deadline)
            status = head.status
        finally:
            conclude(core, request, status, started)
        if 200 <= head.status < 300:
            return head
        problem = yield from closed_error(head, deadline)
        if head.status not in REDIRECTS:
            raise problem
        request = redirected(request, head, keep_bytes=True)
    raise RedirectRefusedError("too many redirects", http_status=head.status)


def closed_error(head: Head, deadline: float | None) -> Flow[EnvaiError]:
    """Read a little of a refusal, close it, and say what it was."""
    body = b""
    try:
        while len(body) < 65_536:
            chunk = yield ReadChunk(head.handle, deadline)
            if chunk is None:
                break
            body += chunk
    except TransportError:
        pass  # the status alone still names the error
    finally:
        yield CloseStream(head.handle)
    return read_error(head, body)
