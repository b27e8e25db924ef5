"""A call as a door understood it, and the request that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from crocevia.core.calls import GenerationOptions, ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.messages import Message, Tool
from crocevia.documents.intake import Attachment
from crocevia.runtime.fitting import NOWHERE, Places

REASONING_TOKENS: Final = 16_000  # the least `max_tokens` of a model that reasons


class CallDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a door understood it."""

    door: str
    encode: str
    messages: tuple[Message, ...]
    system: str | None = None
    """None: the model's own instructions."""
    tools: tuple[Tool, ...] = ()
    options: GenerationOptions = GenerationOptions()
    attachments: tuple[Attachment, ...] = ()
    """The files that stand in the messages as placeholders, in order."""
    bytes_in: int = 0
    """Of the request."""
    user_id: str | None = None
    """For the record, when no project is asking."""
    agent: str | None = None
    """For the record."""
    invalid_blocks: Mapping[int, str] = {}
    """By index of a message, why its blocks could not be read."""
    places: Places = NOWHERE
    """Where messages and tools stand in the caller's own request."""
    repaired: tuple[str, ...] = ()
    """What the door had to repair, for the record."""
    keeps_blocks: bool = False
    """The protocol lets the caller send provider blocks back."""
    going_on: bool = False
    """It continues what was admitted before, so it is not refused for draining."""


def compose(model: ModelSpec, draft: CallDraft) -> ModelRequest:
    """The request for `model`: its instructions and the caller's, and room to reason."""
    options = draft.options
    if model.reasoning != "off" and options.max_tokens < REASONING_TOKENS:
        options = msgspec.structs.replace(options, max_tokens=REASONING_TOKENS)
    return ModelRequest(
        model=model.upstream,
        messages=draft.messages,
        system=_instructions(model, draft.system),
        tools=draft.tools,
        reasoning=model.reasoning,
        think_tags=model.think_tags,
        options=options,
    )


def _instructions(model: ModelSpec, system: str | None) -> str | None:
    if not system:
        return model.instructions
    if model.voice_in_apps and model.instructions:
        return f"{model.instructions}\n\n{system}"
    return system
