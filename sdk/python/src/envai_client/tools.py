"""Client tools: the registry, and the flows that take one signed request to one delivered answer."""

from __future__ import annotations

import hashlib
import inspect
import uuid
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec

from .cancel import CancelToken
from .core import Core, call
from .effects import Blocking, Flow, Invoke, Sleep
from .errors import ConflictError, EnvaiError, NotFoundError, SignatureError, ToolStateError, TransportError
from .events import Event
from .keys import KeyRing, signed_tool_bytes
from .ledger import Ledger, Record
from .signals import ToolEnded, ToolStarted

OUTPUT_LIMIT = 128 * 1024
MARGIN = 0.9
SILENCE = 1.0
POLL = 0.02
REMEMBERED = 10_000
OWNER = f"{uuid.uuid4()}"  # this process's life: a claim by any other is not ours to finish


class ToolContext:
    """What a handler may ask for by naming a `context` parameter: its call, and whether to stop."""

    def __init__(self, chat_id: str, turn_id: str, call_id: str, tool: str) -> None:
        self.chat_id = chat_id
        self.turn_id = turn_id
        self.call_id = call_id
        self.tool = tool
        self.token = CancelToken()

    @property
    def cancelled(self) -> bool:
        """Whether the answer is no longer wanted: the server has one, the turn ended or the client stops."""
        return self.token.cancelled

    def __repr__(self) -> str:
        return f"<ToolContext {self.tool} {self.call_id}>"


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What answers a call. A handler may return one to report an error of its own."""

    output: Any
    is_error: bool = False

    def __repr__(self) -> str:
        return f"<ToolOutput is_error={self.is_error}>"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` is the server's `timeout_seconds`; the handler gets a safe part of it."""

    name: str
    handler: Callable[..., Any]
    validate: Callable[[Any], bool]
    timeout: float
    wants_context: bool


class ClientToolRegistry:
    """The tools this program can run. Handlers take the arguments as keywords; sync or async, they should be
    idempotent or able to compensate: the protocol delivers at most once, the world may still see half."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def register_tool(
        self, name: str, handler: Callable[..., Any], parameters_schema: dict[str, Any], timeout: float = 120.0
    ) -> None:
        """Add a tool. `parameters_schema` is its JSON Schema, `timeout` its `timeout_seconds` (1 to 600)."""
        if name in self._tools:
            raise ValueError(f"tool {name!r} is already registered")
        if not 0 < timeout <= 600:
            raise ValueError("timeout must be within 600 seconds")
        declared = parameters_schema.get("properties", {})
        wants_context = "context" in inspect.signature(handler).parameters and "context" not in declared
        self._tools[name] = Tool(
            name=name,
            handler=handler,
            validate=schema_check(parameters_schema),
            timeout=timeout,
            wants_context=wants_context,
        )

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)


def schema_check(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """A predicate for `schema`. Raises ValueError if it is no schema. References never leave the document."""
    import jsonschema  # heavy: only programs that run tools pay for it
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise ValueError(f"parameters_schema is not a JSON Schema: {problem.message}") from None
    validator = jsonschema.Draft202012Validator(schema, registry=Registry())

    def check(value: Any) -> bool:
        try:
            return bool(validator.is_valid(value))
        except Unresolvable:
            return False

    return check


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A verified request, seen at monotonic time `seen`."""

    chat_id: str
    turn_id: str
    call_id: str
    tool: str
    args: dict[str, Any]
    fingerprint: str
    context: ToolContext
    seen: float

    def __repr__(self) -> str:
        return f"<Call {self.tool} {self.call_id}>"


class ToolState:
    """What stands between a stream and the handlers: which calls are active, which are over."""

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
        self.active: dict[str, Call] = {}
        self.ambiguous: list[Record] = []
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._heard = 0.0

    def admit(self, event: Event) -> Flow[Call | None]:
        """A new verified call for the driver to serve, or None.

        Raises SignatureError, or ToolStateError for an id with other contents: nothing was executed.
        """
        self._heard = monotonic()
        if event.type == "agent.tool.result":
            yield from self._resolve(event)
        elif event.is_terminal:
            self.cancel(turn_id=event.turn_id)
        elif event.type == "agent.tool.request" and self._is_open(event.data.call_id):
            call = yield from self._verified(event)
            self.active[call.call_id] = call
            return call
        return None

    def cancel(self, turn_id: str | None = None) -> None:
        """Tell the handlers (of one turn, or all) to stop."""
        for item in list(self.active.values()):
            if turn_id in (None, item.turn_id):
                item.context.token.cancel()

    def _is_open(self, call_id: str) -> bool:
        return call_id not in self.active and call_id not in self._answered

    def _verified(self, event: Event) -> Flow[Call]:
        data = event.data
        message = signed_tool_bytes(data.call_id, data.tool_name, data.args)
        try:
            yield from self.keys.verify(data.signature.kid, data.signature.sig, message)
        except SignatureError as problem:
            raise SignatureError(f"client tool refused: {problem}", raw=event.raw) from None
        turn_id = event.turn_id or ""
        fingerprint = hashlib.sha256(turn_id.encode() + b"\n" + message).hexdigest()
        known: Record | None = yield Blocking(self.ledger.get, (event.chat_id, data.call_id))
        if known is not None and known.fingerprint not in ("", fingerprint):
            raise ToolStateError("a call id came back with other contents: nothing was executed", raw=event.raw)
        return Call(
            chat_id=event.chat_id,
            turn_id=turn_id,
            call_id=data.call_id,
            tool=data.tool_name,
            args=data.args,
            fingerprint=fingerprint,
            context=ToolContext(event.chat_id, turn_id, data.call_id, data.tool_name),
            seen=monotonic(),
        )

    def _resolve(self, event: Event) -> Flow[None]:
        """The server has a result: remember it before anything else, and stop whoever still works on it."""
        call_id = event.data.call_id
        self._answered[call_id] = None
        if len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)
        if call_id in self.active:
            self.active[call_id].context.token.cancel()
        known: Record | None = yield Blocking(self.ledger.get, (event.chat_id, call_id))
        if known is not None and known.state != "resolved":
            yield Blocking(self.ledger.resolve, (event.chat_id, call_id, "observed"))

    def _await_live(self, item: Call) -> Flow[None]:
        """Let a replay go by: the result or the end of the turn may be a few events behind the request.

        Live is after the connection's first ping; a stream that has been silent for a while counts as live too.
        """
        while not self.is_live() and not item.context.cancelled and monotonic() - self._heard < SILENCE:
            yield Sleep(POLL)

    def serve(self, item: Call) -> Flow[None]:
        """Take one admitted call to its end."""
        self.core.notify(ToolStarted(chat_id=item.chat_id, call_id=item.call_id, tool=item.tool))
        outcome = "cancelled"
        try:
            yield from self._await_live(item)
            if item.context.cancelled:
                return
            known = yield Blocking(self.ledger.claim, (item.chat_id, item.call_id, item.tool, item.fingerprint, OWNER))
            if known is None:
                outcome = yield from self._run(item)
            else:
                outcome = yield from self._resume(item, known)
        finally:
            self.active.pop(item.call_id, None)
            seconds = monotonic() - item.seen
            self.core.notify(
                ToolEnded(chat_id=item.chat_id, call_id=item.call_id, tool=item.tool, outcome=outcome, seconds=seconds)
            )

    def _run(self, item: Call) -> Flow[str]:
        answer = yield from self._execute(item)
        if answer is None:
            return "cancelled"
        output, is_error = answer
        yield Blocking(self.ledger.finish, (item.chat_id, item.call_id, output, is_error))
        return (yield from self.deliver(item.chat_id, item.call_id, output, is_error))

    def _execute(self, item: Call) -> Flow[tuple[str, bool] | None]:
        """The answer of the handler, or the reason there is none; None once the call was cancelled."""
        tool = self.registry.get(item.tool)
        if tool is None:
            return refusal("tool_not_registered")
        if not tool.validate(item.args):
            return refusal("invalid_arguments")
        seconds = tool.timeout * MARGIN - (monotonic() - item.seen)
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

    def _resume(self, item: Call, known: Record) -> Flow[str]:
        """A call the ledger already knows: never run its handler."""
        if known.state == "resolved":
            return "resolved"
        if known.state == "finished" and known.output is not None:
            return (yield from self.deliver(item.chat_id, item.call_id, known.output, known.is_error))
        self.ambiguous.append(known)
        settlement = self.on_ambiguous(known) if self.on_ambiguous else None
        if settlement is None:
            return "ambiguous"
        return (yield from settle(self, item.chat_id, item.call_id, settlement))

    def deliver(
        self, chat_id: str, call_id: str, output: str, is_error: bool, timeout: float | None = None
    ) -> Flow[str]:
        """Post an output once. A clear answer resolves the call; an unclear one is noted and waits for the stream."""
        given = {"chat_id": chat_id, "call_id": call_id, "output": output, "is_error": is_error}
        try:
            yield from call(self.core, "resolveChatTool", given, object, timeout)
        except ConflictError as problem:
            # Somebody's result stands, or it came too late: either way there is nothing left to deliver.
            outcome = problem.code or "conflict"
            yield Blocking(self.ledger.resolve, (chat_id, call_id, outcome))
            return outcome
        except NotFoundError:
            # After the terminal a delivered call is unknown too: this says nothing about an earlier attempt.
            yield Blocking(self.ledger.note, (chat_id, call_id, "not_found"))
            return "not_found"
        except (TransportError, EnvaiError) as problem:
            yield Blocking(self.ledger.note, (chat_id, call_id, "unconfirmed"))
            self.core.logger.info("tool output not confirmed: %s", type(problem).__name__)
            return "unconfirmed"
        yield Blocking(self.ledger.resolve, (chat_id, call_id, "delivered"))
        return "delivered"


def settle(state: ToolState, chat_id: str, call_id: str, answer: ToolOutput, timeout: float | None = None) -> Flow[str]:
    """The application's word on an ambiguous call: recorded, then delivered."""
    output, is_error = serialise(answer)
    yield Blocking(state.ledger.finish, (chat_id, call_id, output, is_error))
    return (yield from state.deliver(chat_id, call_id, output, is_error, timeout))


def serialise(value: Any) -> tuple[str, bool]:
    """The output string of a handler's value: a string as it is, anything else as JSON, once."""
    answer = value if isinstance(value, ToolOutput) else ToolOutput(output=value)
    try:
        text = answer.output if isinstance(answer.output, str) else msgspec.json.encode(answer.output).decode()
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError, OverflowError):
        return refusal("output_not_serialisable")
    return refusal("output_too_large") if size > OUTPUT_LIMIT else (text, answer.is_error)


def refusal(code: str) -> tuple[str, bool]:
    """An error output the model can read; it never quotes arguments."""
    return msgspec.json.encode({"error": code}).decode(), True
