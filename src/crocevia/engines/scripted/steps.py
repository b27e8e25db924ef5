"""The script format of a `scripted` engine, checked when the engine is built (docs/scripted-engine.md).

A script is a list of rules `{when?, say}`; the first rule whose `when` holds answers the call with its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw

from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import StopReason
from crocevia.core.usage import Usage

Milliseconds = Annotated[float, Meta(ge=0, le=600_000)]
Count = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Unknown fields are refused: a misspelt condition must not mean «always»."""


class When(_Written, frozen=True, kw_only=True):
    """All given conditions must hold; none given: always."""

    contains: str | None = None
    """In the last user text, whatever the case."""
    after_tool: str | bool | None = None
    """The call's newest messages are tool results (of the tool with that name); False: they are not."""
    tool_offered: str | None = None
    nth: Annotated[int, Meta(ge=1)] | None = None
    """Which call of this conversation this is, from 1."""


class SayText(_Written, frozen=True, kw_only=True):
    """`chars` code points per delta (default: word by word), `every_ms` apart."""

    text: str
    chars: Annotated[int, Meta(ge=1)] | None = None
    every_ms: Milliseconds = 0


class SayReasoning(_Written, frozen=True, kw_only=True):
    reasoning: str
    chars: Annotated[int, Meta(ge=1)] | None = None
    every_ms: Milliseconds = 0


class CallTool(_Written, frozen=True, kw_only=True):
    tool: Name
    arguments: dict[str, Any] = {}
    id: Name | None = None

    def __post_init__(self) -> None:
        try:
            json.encode(self.arguments)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("`arguments` cannot be written as JSON") from None

    @property
    def spelled(self) -> Raw:
        """The arguments as JSON."""
        return Raw(json.encode(self.arguments))


class HalfTool(_Written, frozen=True, kw_only=True):
    """A tool call that never completes: the name and the beginning of its arguments."""

    half_tool: Name
    fragment: str = '{"'


class Figures(_Written, frozen=True, kw_only=True):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class ReportUsage(_Written, frozen=True, kw_only=True):
    usage: Figures

    @property
    def figures(self) -> Usage:
        return Usage(**msgspec.structs.asdict(self.usage))


class Delay(_Written, frozen=True, kw_only=True):
    delay_ms: Milliseconds


class CutStep(_Written, frozen=True, kw_only=True):
    """The stream ends here without having said how it stopped."""

    cut: bool

    def __post_init__(self) -> None:
        if not self.cut:
            raise ValueError("`cut` can only be true")


class Fail(_Written, frozen=True, kw_only=True):
    error: Literal["overloaded", "failed", "timeout", "refused", "rejected"]
    retry_after: Annotated[int, Meta(ge=1)] | None = None


class Stop(_Written, frozen=True, kw_only=True):
    stop: StopReason


Step: TypeAlias = SayText | SayReasoning | CallTool | HalfTool | ReportUsage | Delay | CutStep | Fail | Stop

STEPS: Mapping[str, type[Step]] = {
    "text": SayText,
    "reasoning": SayReasoning,
    "tool": CallTool,
    "half_tool": HalfTool,
    "usage": ReportUsage,
    "delay_ms": Delay,
    "cut": CutStep,
    "error": Fail,
    "stop": Stop,
}
_LAST = (CutStep, Fail, Stop)


class ScriptRule(msgspec.Struct, frozen=True, kw_only=True):
    when: When = When()
    say: tuple[Step, ...]


class _RuleShape(_Written, frozen=True, kw_only=True):
    when: When = When()
    say: Annotated[list[dict[str, Any]], Meta(min_length=1)]


def parse(script: list[dict[str, Any]], *, engine: str) -> tuple[ScriptRule, ...]:
    """The rules of a script. Raises GatewayError(INVALID_REQUEST) that names engine, rule and step, counted from 1."""
    return tuple(_rule(raw, _Place(engine, number)) for number, raw in enumerate(script, 1))


class _Place(msgspec.Struct, frozen=True):
    engine: str
    rule: int
    step: int | None = None

    def wrong(self, reason: Reason, /, **details: Any) -> GatewayError:
        where: dict[str, Any] = {"engine": self.engine, "rule": self.rule}
        param = f"engines.{self.engine}.script[{self.rule - 1}]"
        if self.step is not None:
            where["step"] = self.step
            param += f".say[{self.step - 1}]"
        return GatewayError(reason, param=param, **where, **details)


def _rule(raw: dict[str, Any], place: _Place) -> ScriptRule:
    try:
        shape = msgspec.convert(raw, _RuleShape)
    except msgspec.ValidationError as error:
        raise place.wrong(Reason.SCRIPT_RULE_WRONG, reason=str(error)) from None
    steps: list[Step] = []
    for number, written in enumerate(shape.say, 1):
        here = _Place(place.engine, place.rule, number)
        step = _step(written, here)
        _check_order(step, steps, here)
        steps.append(step)
    return ScriptRule(when=shape.when, say=tuple(steps))


def _step(written: dict[str, Any], place: _Place) -> Step:
    kinds = [kind for kind in STEPS if kind in written]
    if len(kinds) != 1:
        raise place.wrong(Reason.SCRIPT_STEP_UNKNOWN, kinds=", ".join(STEPS))
    try:
        return msgspec.convert(written, STEPS[kinds[0]])
    except msgspec.ValidationError as error:
        raise place.wrong(Reason.SCRIPT_STEP_WRONG, reason=str(error)) from None


def _check_order(step: Step, before: list[Step], place: _Place) -> None:
    """Whatever passes here plays to exactly one end."""
    if before and isinstance(before[-1], _LAST):
        raise place.wrong(Reason.SCRIPT_STEP_AFTER_END)
    if isinstance(step, SayText | SayReasoning | CallTool | HalfTool) and _half(before):
        raise place.wrong(Reason.SCRIPT_STEP_AFTER_HALF_TOOL)
    if isinstance(step, CallTool) and step.id is not None and step.id in _ids(before):
        raise place.wrong(Reason.SCRIPT_ID_TWICE)
    if isinstance(step, Stop) and step.stop not in allowed_stops(before):
        raise place.wrong(Reason.SCRIPT_STOP_WRONG, stops=", ".join(allowed_stops(before)))


def allowed_stops(steps: list[Step] | tuple[Step, ...]) -> tuple[StopReason, ...]:
    """How an answer made of `steps` can stop; the first one is the default."""
    if _half(steps):
        return (StopReason.MAX_TOKENS, StopReason.REFUSAL)
    if any(isinstance(step, CallTool) for step in steps):
        return (StopReason.TOOL_USE, StopReason.MAX_TOKENS, StopReason.REFUSAL)
    return (StopReason.END, StopReason.MAX_TOKENS, StopReason.REFUSAL)


def _half(steps: list[Step] | tuple[Step, ...]) -> bool:
    return any(isinstance(step, HalfTool) for step in steps)


def _ids(steps: list[Step]) -> set[str | None]:
    return {step.id for step in steps if isinstance(step, CallTool)}
