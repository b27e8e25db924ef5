"""Client tools as an application sees them: the registry, what a handler is given, and what became of a call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .cancel import CancelToken
from .clock import monotonic

OUTPUT_LIMIT = 128 * 1024
NAME = re.compile(r"[a-z][a-z0-9_]{0,254}\Z")


class ToolContext:
    """What a handler may ask for by naming a `context` parameter: its call, and whether to stop."""

    def __init__(self, chat_id: str, turn_id: str, call_id: str, tool: str, deadline: float) -> None:
        self.chat_id = chat_id
        self.turn_id = turn_id
        self.call_id = call_id
        self.tool = tool
        self.deadline = deadline
        """The moment of `time.monotonic()` by which the handler must have returned."""
        self.token = CancelToken()

    @property
    def seconds_left(self) -> float:
        """Until the deadline; 0 once it has passed."""
        return max(0.0, self.deadline - monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the answer is no longer wanted: the server has one, the turn ended or the client stops."""
        return self.token.cancelled

    def __repr__(self) -> str:
        return f"<ToolContext {self.tool} {self.call_id}>"


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What answers a call. A handler may return one to report an error of its own."""

    output: object
    is_error: bool = False

    def __repr__(self) -> str:
        return f"<ToolOutput is_error={self.is_error}>"


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one client-tool call, ids and codes only."""

    chat_id: str
    turn_id: str
    """Empty for an output kept from an earlier life of the program."""
    call_id: str
    tool: str
    outcome: str
    """One of:

    - `delivered`: the server acknowledged the output, or its result was seen on the stream.
    - `tool_already_resolved`, `tool_timed_out` or another code of a 409: the server has another answer.
    - `turn_ended`: the turn ended before the server had acknowledged the output.
    - `not_found`: the server does not know the call (any more).
    - `refused`: it accepted neither the output nor the error output in its place.
    - `unconfirmed`: still kept in the ledger, delivered the next time this chat is followed.
    - `tool_claimed`: another runner has the call; nothing ran here.
    - `not_run`: the call could not be claimed or verified in time; nothing ran here.
    - `cancelled`: the answer was no longer wanted; the handler did not run, or was told to stop.
    - `ambiguous`: another life of the program began the call; it is for `on_ambiguous` or `settle_tool_call`.
    """
    error: str | None = None
    """The code of the error output that was sent in the place of a result, None if none was."""
    http_status: int | None = None
    """Of the answer that decided, where it was not a success."""

    @property
    def is_delivered(self) -> bool:
        """Whether the server has this call's output or error output."""
        return self.outcome == "delivered"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` is the server's `timeout_seconds`; the handler gets a safe part of it."""

    name: str
    handler: Callable[..., object]
    validate: Callable[[object], bool]
    timeout: float
    wants_context: bool


class ClientToolRegistry:
    """The tools this program can run. Handlers take the arguments as keywords; sync or async, they should be
    idempotent or able to compensate: the protocol delivers at most once, the world may still see half."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def register_tool(
        self,
        name: str,
        handler: Callable[..., object],
        parameters_schema: Mapping[str, object],
        timeout: float = 120.0,
    ) -> None:
        """Add a tool. `parameters_schema` is its JSON Schema, `timeout` its `timeout_seconds` (1 to 600).

        Raises ValueError for a name the server would not accept, a name taken, a bad schema or timeout.
        """
        if not NAME.match(name):
            raise ValueError(
                f"tool name {name!r}: a lower-case letter, then lower-case letters, digits and '_', at most 255"
            )
        if name in self._tools:
            raise ValueError(f"tool {name!r} is already registered")
        if not 0 < timeout <= 600:
            raise ValueError("timeout must be within 600 seconds")
        declared = parameters_schema.get("properties")
        own = isinstance(declared, Mapping) and "context" in declared
        wants_context = not own and "context" in inspect.signature(handler).parameters
        self._tools[name] = Tool(
            name=name,
            handler=handler,
            validate=schema_check(parameters_schema),
            timeout=timeout,
            wants_context=wants_context,
        )

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)


def schema_check(schema: Mapping[str, object]) -> Callable[[Any], bool]:
    """A predicate for `schema`. Raises ValueError if it is no schema. References never leave the document."""
    import jsonschema  # heavy: only programs that run tools pay for it
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise ValueError(f"parameters_schema is not a JSON Schema: {problem.message}") from None
    validator = jsonschema.Draft202012Validator(schema, registry=Registry())

    def check(value: object) -> bool:
        try:
            return bool(validator.is_valid(value))
        except Unresolvable:
            return False

    return check


class Answer(msgspec.Struct, frozen=True):
    """The output string of a call as it is sent. `error` is the code of an error output of ours."""

    output: str
    is_error: bool = False
    error: str | None = None

    def __repr__(self) -> str:
        return f"<Answer is_error={self.is_error} error={self.error}>"


def serialise(value: object) -> Answer:
    """What is sent for a handler's value: a string as it is, anything else as JSON, once.

    What no server accepts becomes an error output: nothing at all, what has no JSON form, more than 131,072 bytes.
    """
    given = value if isinstance(value, ToolOutput) else ToolOutput(output=value)
    try:
        text = given.output if isinstance(given.output, str) else msgspec.json.encode(given.output).decode()
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError, OverflowError):
        return refusal("output_not_serialisable")
    if size > OUTPUT_LIMIT:
        return refusal("output_too_large")
    return Answer(text, given.is_error) if text else refusal("output_empty")


def refusal(code: str) -> Answer:
    """An error output the model can read; it never quotes arguments."""
    return Answer(msgspec.json.encode({"error": code}).decode(), True, code)
