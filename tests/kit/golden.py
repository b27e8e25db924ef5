"""The golden streams of conformance/pepper-streams, as core values and as bytes of the wire.

answers.json: one model call each: what the engine said, the stream that the door makes of it, and the JSON answer.
chats.json: what a page's own server may send, with the caller's events, and what the kit makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from msgspec import Raw

from crocevia.core import json as core_json
from crocevia.core.answers import fold
from crocevia.core.catalogue import ModelSpec
from crocevia.core.events import (
    ModelEvent,
    ProviderBlock,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDone,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.doors.pepper import encode

FOLDER = Path(__file__).parents[2] / "conformance" / "pepper-streams"

_MAKERS: dict[str, Callable[..., ModelEvent]] = {
    "text": TextDelta,
    "tool": lambda id, name, arguments: ToolCallDone(
        0, ToolCall(id=id, name=name, arguments=Raw(core_json.encode(arguments)))
    ),
    "opaque": lambda dialect, block: ProviderBlock(dialect, Raw(core_json.encode(block))),
    "usage": lambda counts: UsageReported(Usage(**counts)),
    "stop": lambda reason: Stopped(StopReason(reason)),
}


def load(name: str) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], json.loads((FOLDER / name).read_text(encoding="utf-8")))


def model_events(rows: list[list[Any]]) -> list[ModelEvent]:
    return [_MAKERS[kind](*values) for kind, *values in rows]


def wire_of(events: list[ModelEvent], model: ModelSpec) -> bytes:
    """The stream, one event per upstream read."""
    return b"".join(encode.events([event]) for event in events) + encode.done(fold(events), model)
