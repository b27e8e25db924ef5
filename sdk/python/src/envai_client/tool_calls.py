"""A client-tool call from its signed request to its delivered answer, as flows.

Verify, wait for the replay to pass, claim, record, run, keep the outcome, deliver it until that is settled. Two things
never happen: a handler runs twice for one call, and an outcome is known to nobody but a log.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from .cancel import CancelToken
from .clock import monotonic
from .core import Core, backoff, call, learn_capabilities
from .effects import Blocking, Flow, Invoke, Sleep
from .errors import (
    CompatibilityError,
    ConflictError,
    EnvaiError,
    NotFoundError,
    SignatureError,
    ToolStateError,
    TransportError,
)
from .events import Event, ToolRequestEvent, ToolResultEvent
from .keys import KeyRing, signed_tool_bytes
from .ledger import Ledger, Record
from .signals import ToolEnded, ToolStarted
from .tools import Answer, ClientToolRegistry, ToolContext, ToolOutcome, ToolOutput, refusal, serialise

CLAIMS = "tool_claims"
MARGIN = 0.9
"""The part of a tool's `timeout_seconds` that is ours: the server's clock started before we heard of the call."""
UNKNOWN_TIMEOUT = 120.0
"""Seconds allowed for a tool that is not registered here: the server's default."""
SILENCE = 1.0
POLL = 0.02
POST_TIMEOUT = 10.0
"""Seconds for one attempt to claim or to deliver: a server that hangs must not be waited for longer."""
BASE_DELAY, MAX_DELAY = 0.25, 5.0
MAX_ASKED = 30.0
"""Seconds of a server's `Retry-After` that are waited for."""
REMEMBERED = 10_000
OWNER = f"{uuid.uuid4()}"  # this process's life: a claim by any other is not ours to finish
AGAIN = "again"
TRANSIENT = {408, 425, 429}
NOT_ACCEPTED = {400, 405, 411, 413, 414, 415, 422, 431}
"""The server will never take this output: an error output goes in its place."""
OVER = {"not_found", "refused", "turn_ended"}
"""Notes of the ledger: outputs that are not sent again by themselves."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose signature verified, or an output that an earlier life left to deliver."""

    chat_id: str
    turn_id: str
    call_id: str
    tool: str
    args: dict[str, object]
    fingerprint: str
    context: ToolContext
    seen: float
    """The monotonic moment at which the request was read."""
    over: CancelToken = msgspec.field(default_factory=CancelToken)
    """Cancelled once the server has a result or the turn has ended: nothing is delivered any more."""

    def __repr__(self) -> str:
        return f"<Call {self.tool} {self.call_id}>"


class Attempt(msgspec.Struct, frozen=True):
    """One post. Without an `outcome` nothing is settled and `answer` is to be sent next."""

    answer: Answer
    outcome: str | None = None
    status: int | None = None
    retry_after: float | None = None


class ToolCalls:
    """What stands between a stream and the handlers: which calls are active, which are over, what became of them.

    `admit` gives the flows an event asks for; the runner drives them beside its reading. `spawn`, set by the runner,
    starts one that takes no place of a handler.
    """

    def __init__(
        self,
        core: Core,
        registry: ClientToolRegistry,
        ledger: Ledger,
        keys: KeyRing,
        on_ambiguous: Callable[[Record], ToolOutput | None] | None = None,
        is_live: Callable[[], bool] = lambda: False,
    ) -> None:
        self.core = core
        self.registry = registry
        self.ledger = ledger
        self.keys = keys
        self.on_ambiguous = on_ambiguous
        self.is_live = is_live
        self.spawn: Callable[[Flow[None]], None] | None = None
        self.active: dict[str, Call] = {}
        self.outcomes: list[ToolOutcome] = []
        self.closing = False
        # A ledger that outlives the process has a name of its own: what it claimed, its next life may run.
        self.holder = str(getattr(ledger, "holder", None) or uuid.uuid4())
        self._answered: OrderedDict[str, str] = OrderedDict()
        self._turns: dict[str, str] = {}
        self._ended: set[str] = set()
        self._chats: set[str] = set()
        self._heard = 0.0

    def admit(self, event: Event) -> Flow[list[Flow[None]]]:
        """What there is to do because of `event`.

        Raises SignatureError, or ToolStateError for an id with other contents: nothing was executed.
        """
        self._heard = monotonic()
        flows: list[Flow[None]] = []
        if event.chat_id not in self._chats:
            self._chats.add(event.chat_id)
            flows += yield from self._kept(event.chat_id)
        if event.type == "agent.tool.result":
            yield from self._resolve(event)
        elif event.is_terminal:
            self._end(event.turn_id or "")
        elif event.type == "agent.tool.request":
            self._turns[event.data.call_id] = event.turn_id
            if self._is_open(event.data.call_id):
                flows.append((yield from self._request(event)))
        return flows

    def close(self) -> None:
        """Tell the handlers to stop and the deliveries to leave what they hold in the ledger."""
        self.closing = True
        for item in list(self.active.values()):
            item.context.token.cancel()

    def _end(self, turn_id: str) -> None:
        self._ended.add(turn_id)
        for item in list(self.active.values()):
            if self._turns.get(item.call_id) == turn_id:
                finish(item)

    def _is_open(self, call_id: str) -> bool:
        return call_id not in self.active and call_id not in self._answered

    def _request(self, event: ToolRequestEvent) -> Flow[Flow[None]]:
        """The flow that serves a request, verified here, or there if the keys cannot be had at the moment."""
        data = event.data
        message = signed_tool_bytes(data.call_id, data.tool_name, data.args)
        turn_id, seen = event.turn_id, monotonic()
        tool = self.registry.get(data.tool_name)
        deadline = seen + MARGIN * (tool.timeout if tool else UNKNOWN_TIMEOUT)
        item = Call(
            chat_id=event.chat_id,
            turn_id=turn_id,
            call_id=data.call_id,
            tool=data.tool_name,
            args=data.args,
            fingerprint=hashlib.sha256(turn_id.encode() + b"\n" + message).hexdigest(),
            context=ToolContext(event.chat_id, turn_id, data.call_id, data.tool_name, deadline),
            seen=seen,
        )
        verified = True
        try:
            yield from self._verify(event, item, message)
        except EnvaiError as problem:
            if not may_pass(problem):
                raise
            verified = False
        self.active[item.call_id] = item
        return self._serve(item, None if verified else self._verify_later(event, item, message))

    def _verify(self, event: ToolRequestEvent, item: Call, message: bytes) -> Flow[None]:
        signature = event.data.signature
        try:
            yield from self.keys.verify(signature.kid, signature.sig, message)
        except SignatureError as problem:
            raise SignatureError(f"client tool refused: {problem.message}", raw=event.raw) from None
        known: Record | None = yield Blocking(self.ledger.get, (item.chat_id, item.call_id))
        if known is not None and known.fingerprint not in ("", item.fingerprint):
            raise ToolStateError("a call id came back with other contents: nothing was executed", raw=event.raw)

    def _verify_later(self, event: ToolRequestEvent, item: Call, message: bytes) -> Flow[bool]:
        """Whether the signature verified before the call was over or out of time."""
        attempt = 0
        while (yield from self._pause(item, attempt := attempt + 1)):
            try:
                yield from self._verify(event, item, message)
            except EnvaiError as problem:
                if not may_pass(problem):
                    raise
            else:
                return True
        return False

    def _resolve(self, event: ToolResultEvent) -> Flow[None]:
        """The server has a result: remember it before anything else, and stop whoever still works on it."""
        call_id = event.data.call_id
        self._answered[call_id] = event.data.output
        if len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)
        if call_id in self.active:
            finish(self.active[call_id])
        known: Record | None = yield Blocking(self.ledger.get, (event.chat_id, call_id))
        if known is not None and known.state != "resolved":
            yield Blocking(self.ledger.resolve, (event.chat_id, call_id, "observed"))

    def _kept(self, chat_id: str) -> Flow[list[Flow[None]]]:
        """Deliveries of what an earlier life finished and could not hand over."""
        records: list[Record] = yield Blocking(self.ledger.unsettled, (chat_id,))
        kept = [record for record in records if record.state == "finished" and record.note not in OVER]
        return [self._serve(self._adopt(record)) for record in kept if self._is_open(record.call_id)]

    def _adopt(self, record: Record) -> Call:
        now = monotonic()
        item = Call(
            chat_id=record.chat_id,
            turn_id="",
            call_id=record.call_id,
            tool=record.tool,
            args={},
            fingerprint=record.fingerprint,
            context=ToolContext(record.chat_id, "", record.call_id, record.tool, now),
            seen=now,
        )
        self.active[item.call_id] = item
        return item

    def _await_live(self, item: Call) -> Flow[None]:
        """Let a replay go by: the result or the end of the turn may be a few events behind the request.

        Live is after the connection's first ping; a stream that has been silent for a while counts as live too.
        """
        while not self.is_live() and not item.context.cancelled and monotonic() - self._heard < SILENCE:
            yield Sleep(POLL)

    def _serve(self, item: Call, verifying: Flow[bool] | None = None) -> Flow[None]:
        """Take one call to the point where there is something to deliver, or to its end."""
        self.core.notify(ToolStarted(chat_id=item.chat_id, call_id=item.call_id, tool=item.tool))
        passed_on = False
        try:
            if verifying is not None and not (yield from verifying):
                self._conclude(item, "cancelled" if item.context.cancelled else "not_run")
                return
            yield from self._await_live(item)
            result = "cancelled" if item.context.cancelled else (yield from self._work(item))
            if isinstance(result, str):
                self._conclude(item, result)
            elif self.spawn is None:
                yield from self._deliver(item, result)
            else:
                passed_on = True
                self.spawn(self._deliver(item, result))
        finally:
            if not passed_on:
                self.active.pop(item.call_id, None)

    def _work(self, item: Call) -> Flow[Answer | str]:
        """The answer to deliver, or the outcome of a call that has none."""
        known: Record | None = yield Blocking(self.ledger.get, (item.chat_id, item.call_id))
        if known is None:
            refused = yield from self._claim(item)
            if refused is not None:
                return refused
            row = (item.chat_id, item.call_id, item.tool, item.fingerprint, OWNER)
            known = yield Blocking(self.ledger.claim, row)
        if known is not None:
            return (yield from self._resume(known))
        answer = yield from self._execute(item)
        if answer is None:
            return "cancelled"
        yield Blocking(self.ledger.finish, (item.chat_id, item.call_id, answer.output, answer.is_error))
        return answer

    def _claim(self, item: Call) -> Flow[str | None]:
        """None once this runner may run the call; else why it may not. Asked of servers that announce claims."""
        attempt = 0
        while (verdict := (yield from self._ask_for(item))) == AGAIN:
            if not (yield from self._pause(item, attempt := attempt + 1)):
                return "cancelled" if item.context.cancelled else "not_run"
        return verdict

    def _ask_for(self, item: Call) -> Flow[str | None]:
        given = {"chat_id": item.chat_id, "call_id": item.call_id, "holder": self.holder}
        try:
            if (yield from self._claims_announced()):
                yield from call(self.core, "claimChatTool", given, object, POST_TIMEOUT)
        except ConflictError as problem:
            return problem.code or "conflict"
        except NotFoundError:
            return "not_found"
        except EnvaiError as problem:
            return AGAIN if may_pass(problem) else "not_run"
        return None

    def _claims_announced(self) -> Flow[bool]:
        try:
            capabilities = yield from learn_capabilities(self.core, monotonic() + POST_TIMEOUT)
        except (NotFoundError, CompatibilityError):
            return False  # a server that announces nothing
        return CLAIMS in capabilities.features

    def _execute(self, item: Call) -> Flow[Answer | None]:
        """The answer of the handler, or the reason there is none; None once the call was cancelled."""
        tool = self.registry.get(item.tool)
        if tool is None:
            return refusal("tool_not_registered")
        if not tool.validate(item.args):
            return refusal("invalid_arguments")
        seconds = item.context.deadline - monotonic()
        if seconds <= 0:
            return refusal("tool_capacity_exceeded")
        given = {**item.args, "context": item.context} if tool.wants_context else item.args
        try:
            value = yield Invoke(tool.handler, given, item.context, seconds)
        except TimeoutError:
            return refusal("tool_timeout")
        except Exception as problem:  # the application's code; its message may hold arguments
            self.core.logger.info("tool handler failed: %s", type(problem).__name__)
            return refusal("tool_failed")
        return None if item.context.cancelled else serialise(value)

    def _resume(self, known: Record) -> Flow[Answer | str]:
        """A call the ledger already knows: never run its handler."""
        if known.state == "resolved":
            return "delivered" if known.note in ("delivered", "observed") else known.note
        if known.state == "finished" and known.output is not None:
            return Answer(known.output, known.is_error)
        settlement = self.on_ambiguous(known) if self.on_ambiguous else None
        if settlement is None:
            return "ambiguous"
        answer = serialise(settlement)
        yield Blocking(self.ledger.finish, (known.chat_id, known.call_id, answer.output, answer.is_error))
        return answer

    def _deliver(self, item: Call, answer: Answer) -> Flow[None]:
        """Post an answer until that is settled: acknowledged, refused, seen on the stream, or the turn over."""
        attempt = 0
        try:
            while (tried := (yield from self._attempt(item, answer))).outcome is None:
                answer = tried.answer
                if not (
                    yield from self._pause(item, attempt := attempt + 1, at_least=tried.retry_after, bounded=False)
                ):
                    tried = Attempt(answer, self._standing(item, answer) or "unconfirmed", tried.status)
                    break
            yield from self._settled(item, tried)
        finally:
            self.active.pop(item.call_id, None)

    def _attempt(self, item: Call, answer: Answer, timeout: float = POST_TIMEOUT) -> Flow[Attempt]:
        outcome = self._standing(item, answer)
        if outcome is not None:
            return Attempt(answer, outcome)
        given = {
            "chat_id": item.chat_id,
            "call_id": item.call_id,
            "output": answer.output,
            "is_error": answer.is_error,
        }
        try:
            yield from call(self.core, "resolveChatTool", given, object, timeout)
        except ConflictError as problem:
            # Somebody's result stands, or it came too late: either way there is nothing left to deliver.
            return Attempt(answer, problem.code or "conflict", problem.http_status)
        except NotFoundError as problem:
            # After the terminal a delivered call is unknown too: this says nothing about an earlier attempt.
            return Attempt(answer, "not_found", problem.http_status)
        except EnvaiError as problem:
            return refused(problem, answer)
        return Attempt(answer, "delivered")

    def _settled(self, item: Call, tried: Attempt) -> Flow[None]:
        outcome = tried.outcome or "unconfirmed"
        kept = outcome in ("not_found", "refused", "unconfirmed")
        yield Blocking(self.ledger.note if kept else self.ledger.resolve, (item.chat_id, item.call_id, outcome))
        self._conclude(item, outcome, tried.answer.error, tried.status)

    def _standing(self, item: Call, answer: Answer) -> str | None:
        """What is known of a call that needs no delivery any more."""
        if item.call_id in self._answered:
            return "delivered" if self._answered[item.call_id] == answer.output else "tool_already_resolved"
        return "turn_ended" if self._turns.get(item.call_id) in self._ended else None

    def _pause(self, item: Call, attempt: int, *, at_least: float | None = None, bounded: bool = True) -> Flow[bool]:
        """Wait before the next attempt; False once the call is over, or out of time where that bounds it."""
        until = monotonic() + max(backoff(BASE_DELAY, MAX_DELAY, min(attempt, 10)), min(at_least or 0.0, MAX_ASKED))
        while not item.over.cancelled and not self.closing and monotonic() < until:
            if bounded and monotonic() >= item.context.deadline:
                return False
            yield Sleep(POLL)
        return not item.over.cancelled and not self.closing

    def _conclude(self, item: Call, outcome: str, error: str | None = None, status: int | None = None) -> None:
        self.outcomes.append(
            ToolOutcome(
                chat_id=item.chat_id,
                turn_id=item.turn_id,
                call_id=item.call_id,
                tool=item.tool,
                outcome=outcome,
                error=error,
                http_status=status,
            )
        )
        seconds = monotonic() - item.seen
        self.core.notify(
            ToolEnded(chat_id=item.chat_id, call_id=item.call_id, tool=item.tool, outcome=outcome, seconds=seconds)
        )

    def settle(self, record: Record, answer: Answer, timeout: float | None) -> Flow[ToolOutcome]:
        """Record the application's word on a call and send it once."""
        yield Blocking(self.ledger.finish, (record.chat_id, record.call_id, answer.output, answer.is_error))
        return (yield from self.hand_over(record, answer, timeout))

    def hand_over(self, record: Record, answer: Answer, timeout: float | None) -> Flow[ToolOutcome]:
        """One attempt to deliver what the ledger keeps; two if an error output must go in its place."""
        item, seconds = self._adopt(record), POST_TIMEOUT if timeout is None else timeout
        try:
            tried = yield from self._attempt(item, answer, seconds)
            if tried.outcome is None and tried.answer is not answer:
                tried = yield from self._attempt(item, tried.answer, seconds)
            yield from self._settled(item, tried)
        finally:
            self.active.pop(item.call_id, None)
        return self.outcomes[-1]

    def hand_over_all(self, chat_id: str | None, timeout: float | None) -> Flow[list[ToolOutcome]]:
        """One attempt for everything that is finished and undelivered, of a chat or of all."""
        records: list[Record] = yield Blocking(self.ledger.unsettled, (chat_id,))
        for record in records:
            if record.state == "finished" and record.output is not None:
                yield from self.hand_over(record, Answer(record.output, record.is_error), timeout)
        return self.outcomes


def refused(problem: EnvaiError, answer: Answer) -> Attempt:
    """What an error answer says about an output: try again, send an error output in its place, or give up."""
    status = problem.http_status
    if may_pass(problem):
        return Attempt(answer, None, status, problem.retry_after)
    if status not in NOT_ACCEPTED:
        return Attempt(answer, "unconfirmed", status)  # a key, a version, a proxy: nothing the output could help
    return Attempt(refusal("output_refused"), "refused" if answer.error == "output_refused" else None, status)


def finish(item: Call) -> None:
    """The call is over: stop its handler and its delivery."""
    item.over.cancel()
    item.context.token.cancel()


def may_pass(problem: EnvaiError) -> bool:
    """Whether the same request may succeed a little later."""
    status = problem.http_status
    if status is None:
        return isinstance(problem, TransportError)
    return status in TRANSIENT or status >= 500
