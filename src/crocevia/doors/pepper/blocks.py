"""`blocchi` that come back: whose they are, and whether they still belong to their message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError
from crocevia.core.json import canonical, check_part
from crocevia.core.messages import ProviderBlocks, ToolCall

ANTHROPIC: Final = "anthropic"
RESPONSES: Final = "openai-responses"

EDITED: Final = "edited"
UNRECOGNISED: Final = "unrecognised"

_RESPONSES_KINDS: Final = frozenset({"message", "function_call", "reasoning"})
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_ORDINARY: Final = frozenset({"text", "tool_use"})
# What each provider accepts as the id of a call; results go to it under the same one.
_IDS: Final = {ANTHROPIC: re.compile(r"[a-zA-Z0-9_-]+"), RESPONSES: re.compile(r"[\x21-\x7e]{1,64}")}


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What blocks say."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    provider_blocks: ProviderBlocks | None = None
    """None: they are of no use, or there were none."""
    invalid_blocks: str | None = None
    """Why they are of no use."""


class _Kind(msgspec.Struct):
    type: str = ""


class _Text(msgspec.Struct):
    text: str


class _ToolUse(msgspec.Struct):
    id: str
    name: str
    input: Raw


class _Content(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct):
    content: list[_Content] = []


class _FunctionCall(msgspec.Struct):
    call_id: str
    name: str
    arguments: str


class _Said:
    """Text and calls of the blocks so far."""

    __slots__ = ("calls", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []


def _text(raw: Raw, said: _Said) -> None:
    said.texts.append(msgspec.json.decode(raw, type=_Text).text)


def _tool_use(raw: Raw, said: _Said) -> None:
    piece = msgspec.json.decode(raw, type=_ToolUse)
    said.calls.append(ToolCall(id=piece.id, name=piece.name, arguments=piece.input.copy()))


def _message(raw: Raw, said: _Said) -> None:
    content = msgspec.json.decode(raw, type=_Message).content
    said.texts += [part.text for part in content if part.type == "output_text" and part.text]


def _function_call(raw: Raw, said: _Said) -> None:
    piece = msgspec.json.decode(raw, type=_FunctionCall)
    arguments = Raw(piece.arguments.strip().encode() or b"{}")
    said.calls.append(ToolCall(id=piece.call_id, name=piece.name, arguments=arguments))


_READERS: Final[dict[str, Callable[[Raw, _Said], None]]] = {
    "text": _text,
    "tool_use": _tool_use,
    "message": _message,
    "function_call": _function_call,
}


def read(blocks: Sequence[Raw], calls: Sequence[ToolCall] | None) -> Read:
    """What blocks say, compared with the calls of the message they came in; None: it leaves them to its blocks.

    The message's text does not count: the protocol sends the blocks back and rebuilds nothing from it. Its calls do,
    because results belong to them; how numbers and objects are spelled does not matter.
    """
    kinds = [_kind(block) for block in blocks]
    if not kinds:
        return Read()
    if not all(kinds):
        return Read(invalid_blocks=UNRECOGNISED)
    dialect = RESPONSES if _RESPONSES_KINDS.intersection(kinds) else ANTHROPIC
    said = _Said()
    try:
        for kind, block in zip(kinds, blocks, strict=True):
            msgspec.json.decode(block)  # so far it was only skipped over
            check_part(block)
            if kind in _READERS:
                _READERS[kind](block, said)
        same = calls is None or _spelled(calls) == _spelled(said.calls)
    except (GatewayError, msgspec.MsgspecError, RecursionError, UnicodeError):
        return Read(invalid_blocks=UNRECOGNISED)
    if not all(_IDS[dialect].fullmatch(call.id) for call in said.calls):
        return Read(invalid_blocks=UNRECOGNISED)
    if not same:
        return Read(invalid_blocks=EDITED)
    provider_blocks = ProviderBlocks(
        dialect=dialect,
        blocks=Raw(b"[" + b",".join(map(bytes, blocks)) + b"]"),
        thinks=not _THOUGHTS.isdisjoint(kinds),
        plain=_ORDINARY.issuperset(kinds),
    )
    return Read(text="".join(said.texts), calls=tuple(said.calls), provider_blocks=provider_blocks)


def _kind(block: Raw) -> str:
    try:
        return msgspec.json.decode(block, type=_Kind).type
    except (msgspec.MsgspecError, UnicodeError):
        return ""


def _spelled(calls: Sequence[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, canonical(call.arguments)) for call in calls]
