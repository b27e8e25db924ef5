"""Following a chat's stream across connections: the reading algorithm of the protocol, as flows."""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias
from urllib.parse import quote

from .clock import monotonic
from .core import Core, backoff, closed_error, contract_version, naming, remaining
from .cursor import Cursor, Verdict
from .effects import CloseStream, Flow, Head, OpenStream, Phases, ReadChunk, Request
from .errors import (
    ConflictError,
    CursorExpiredError,
    EnvaiError,
    InvalidEventError,
    InvalidResponseError,
    ProtocolError,
    StreamInterruptedError,
    TransportError,
)
from .events import Event, parse_event
from .requests import OPERATIONS, build, check_acknowledgement, retry_after
from .signals import EventReceived, Reconnecting, StreamClosed, StreamOpened, StreamRestarted
from .sse import SSEDecoder
from .waits import pause

OnExpired: TypeAlias = Literal["raise", "restart"]
RETRYABLE = {429, 500, 502, 503, 504}  # more than for requests: reopening a stream repeats nothing
CARRIED = {2: frozenset({2}), 3: frozenset({2, 3})}


class Follower:
    """Every event of one chat after a cursor, once and in order, through reconnections.

    `poll` gives an event that needs no I/O; `next` is the flow that waits for one. An event counts as delivered, and
    `last_seq` moves, when the next one is asked for or `settle` is called.
    """

    def __init__(
        self,
        core: Core,
        chat_id: str,
        *,
        after: int = 0,
        epoch: str | None = None,
        on_expired: OnExpired = "raise",
        include_pings: bool = False,
        deadline: float | None = None,
    ) -> None:
        self.core = core
        self.chat_id = chat_id
        self.cursor = Cursor(chat_id, after, epoch)
        self.on_expired = on_expired
        self.include_pings = include_pings
        self.deadline = deadline
        self.restarts = 0
        self.reconnects = 0
        self.closed = False
        self._head: Head | None = None
        self._decoder = SSEDecoder(core.options.max_frame_bytes)
        self._frames: deque[bytes] = deque()
        self._in_hand: Event | None = None
        self._reopen = False
        self._failures = 0
        self._failing_since: float | None = None
        self._connected_at: float | None = None
        self._version = 3

    def settle(self) -> None:
        """The event handed out last has been dealt with."""
        if self._in_hand is not None:
            self.cursor.settle(self._in_hand)
            self._in_hand = None

    def poll(self) -> Event | None:
        """The next event among the bytes already read, or None."""
        self.settle()
        while self._frames and not self._reopen:
            event = self._judge(self._frames.popleft())
            if event is not None:
                self._in_hand = event
                return event
        return None

    def next(self) -> Flow[Event]:
        """The next event, whatever it takes: connecting, waiting, resuming."""
        while True:
            event = self.poll()
            if event is not None:
                return event
            yield from self.advance()

    def connect(self) -> Flow[None]:
        """Have an open connection, without waiting for any event."""
        while self._head is None or self._reopen:
            yield from self.advance()

    def close(self) -> Flow[None]:
        """Release the connection. The cursor stays readable."""
        self.closed = True
        yield from self._release()

    def rewind(self, after: int) -> Flow[None]:
        """Read again from just after `after`, which lies behind the cursor."""
        self._in_hand = None
        yield from self._release()
        self.cursor = Cursor(self.chat_id, after, self.cursor.epoch)

    def _judge(self, frame: bytes) -> Event | None:
        event = parse_event(frame, versions=CARRIED[self._version])
        if event.chat_id.casefold() != self.chat_id.casefold():
            raise InvalidEventError("the stream of one chat carries an event of another", raw=event.raw)
        try:
            verdict = self.cursor.judge(event)
        except CursorExpiredError as expired:
            self._expired(expired)
            return None
        if verdict is Verdict.REPLAY:
            self._frames.clear()
            self._reopen = True
        if verdict is not Verdict.DELIVER:
            return None
        self._failures = 0 if event.seq else self._failures
        core = self.core
        if core.options.observer is not None or core.logger.isEnabledFor(10):
            core.notify(
                EventReceived(type=event.type, id=event.id, seq=event.seq, chat_id=event.chat_id, turn_id=event.turn_id)
            )
        return event if self.include_pings or not event.is_ping else None

    def _expired(self, problem: CursorExpiredError) -> None:
        """Apply the caller's policy. Restarting twice without progress would loop: the second one raises."""
        if self.on_expired == "raise" or (self.cursor.last_seq == 0 and self.restarts):
            raise problem
        self.core.notify(StreamRestarted(chat_id=self.chat_id, reason=problem.reason, last_seq=self.cursor.last_seq))
        self.restarts += 1
        self.cursor.restart(problem.epoch if problem.reason == "epoch_changed" else None)
        self._frames.clear()
        self._reopen = True

    def advance(self) -> Flow[None]:
        """Bring in more bytes, (re)connecting if need be."""
        if self.closed:
            raise StreamInterruptedError("the stream is closed", last_seq=self.cursor.last_seq)
        if self._reopen:
            yield from self._release()
            self._reopen = False
        if self._head is None:
            yield from self._connect()
            return
        try:
            chunk = yield ReadChunk(self._head.handle, self.deadline)
        except TransportError as problem:
            yield from self._lost(problem)
            return
        if chunk is None:
            yield from self._lost(None)
        else:
            self._frames.extend(self._decoder.feed(chunk))

    def _connect(self) -> Flow[None]:
        with naming(OPERATIONS["streamChatEvents"]):
            yield from self._open()

    def _open(self) -> Flow[None]:
        try:
            request = yield from self._request()
            head: Head = yield OpenStream(request, self.deadline)
        except TransportError as problem:
            yield from self._lost(problem)
            return
        if head.status != 200:
            yield from self._refused(head)
            return
        self._head = head
        check_acknowledgement(OPERATIONS["streamChatEvents"], head, self._version)
        if (head.get("content-type") or "").split(";")[0].strip().lower() != "text/event-stream":
            raise InvalidResponseError("the event stream is not text/event-stream", http_status=200)
        self._decoder = SSEDecoder(self.core.options.max_frame_bytes)
        self._connected_at = monotonic()
        try:
            self.cursor.connected(head.get("x-envai-stream-epoch"))
        except CursorExpiredError as expired:
            self._expired(expired)
            return
        cursor = self.cursor
        self.core.notify(StreamOpened(chat_id=self.chat_id, after=cursor.last_seq, epoch=cursor.epoch))

    def _request(self) -> Flow[Request]:
        core, timeouts = self.core, self.core.options.timeouts
        operation = OPERATIONS["streamChatEvents"]
        self._version = yield from contract_version(core, operation, self.deadline)
        given = {"chat_id": self.chat_id, "after": self.cursor.last_seq}
        request = build(core.options, operation, given, self._version, None)
        epoch = f"&epoch={quote(self.cursor.epoch, safe='')}" if self.cursor.epoch else ""
        phases = Phases(connect=timeouts.stream_connect, read=timeouts.stream_idle)
        return Request(
            operation=operation.id,
            method="GET",
            url=request.url + epoch,
            label=request.label,
            headers={**request.headers, "Cache-Control": "no-store"},
            phases=phases,
        )

    def _refused(self, head: Head) -> Flow[None]:
        problem = yield from closed_error(head, self.deadline)
        if head.status in RETRYABLE:
            yield from self._lost(problem, retry_after(head))
            return
        if isinstance(problem, ConflictError) and problem.code == "cursor_expired":
            self._expired(expired_by(problem, self.cursor))
            return
        raise problem

    def _lost(self, problem: EnvaiError | None, asked: float | None = None) -> Flow[None]:
        """The connection is gone: wait and let the caller try again, or say where the stream stopped."""
        yield from self._release()
        remaining(self.deadline)
        policy, now = self.core.options.reconnect, monotonic()
        healthy = self._connected_at is not None and now - self._connected_at > policy.healthy_after
        self._connected_at = None
        if self._failures == 0 or healthy:
            self._failures, self._failing_since = 0, now
        self._failures += 1
        spent = now - (self._failing_since or now)
        too_long = policy.max_seconds is not None and spent >= policy.max_seconds
        if self._failures > policy.max_reconnects or too_long or (asked or 0) > policy.max_retry_after:
            raise StreamInterruptedError(
                f"the stream stopped after event {self.cursor.last_seq} and could not be resumed",
                last_seq=self.cursor.last_seq,
                http_status=problem.http_status if problem else None,
                code=problem.code if problem else None,
                retry_after=asked,
            )
        delay = asked if asked is not None else backoff(policy.base_delay, policy.max_delay, self._failures)
        signal = Reconnecting(chat_id=self.chat_id, last_seq=self.cursor.last_seq, attempt=self._failures, delay=delay)
        self.reconnects += 1
        self.core.notify(signal)
        yield from pause(delay, self.deadline)

    def _release(self) -> Flow[None]:
        head, self._head = self._head, None
        self._frames.clear()
        if head is not None:
            yield CloseStream(head.handle)
            self.core.notify(StreamClosed(chat_id=self.chat_id, last_seq=self.cursor.last_seq))


def expired_by(problem: ConflictError, cursor: Cursor) -> CursorExpiredError:
    """The server's `cursor_expired` answer as the error the caller handles."""
    details = problem.details if isinstance(problem.details, dict) else {}
    epoch = details.get("epoch")
    return CursorExpiredError(
        problem.message,
        reason=str(details.get("reason") or "expired"),
        last_seq=cursor.last_seq,
        epoch=epoch if isinstance(epoch, str) else None,
        http_status=problem.http_status,
        type=problem.type,
        code=problem.code,
        details=problem.details,
        request_id=problem.request_id,
    )


def read_history(core: Core, chat_id: str, after: int, timeout: float | None) -> Flow[list[Event]]:
    """A finite version 2 replay: contiguous from `after`, complete, or an error."""
    deadline = None if timeout is None else monotonic() + timeout
    operation = OPERATIONS["streamChatEventsLegacy"]
    request = build(core.options, operation, {"chat_id": chat_id, "after": after}, 3, timeout)
    head: Head = yield OpenStream(request, deadline)
    if head.status != 200:
        raise (yield from closed_error(head, deadline))
    cursor, decoder, events = Cursor(chat_id, after), SSEDecoder(core.options.max_frame_bytes), list[Event]()
    try:
        check_acknowledgement(operation, head, 3)
        while (chunk := (yield ReadChunk(head.handle, deadline))) is not None:
            for event in (parse_event(frame, versions=CARRIED[2]) for frame in decoder.feed(chunk)):
                if cursor.judge(event) is not Verdict.DELIVER:
                    raise ProtocolError("a finite replay is not contiguous", raw=event.raw)
                cursor.settle(event)
                if not event.is_ping:
                    events.append(event)
    finally:
        yield CloseStream(head.handle)
    return events
