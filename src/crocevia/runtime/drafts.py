"""A call as a door understood it, and the request that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from crocevia.core.calls import AnswerFormat, ModelRequest, Sampling, Thinking, ToolChoice
from crocevia.core.catalogue import ModelSpec
from crocevia.core.messages import Message, Tool

REASONING_TOKENS: Final = 16_000  # the least `max_tokens` of a model that reasons


class CallDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a door understood it. `system` None: the model's own instructions. `bytes_in`: of the request.

    user_id, agent: for the record, when no project is asking. spoiled: by index, why the pieces of a message could
    not be read. keeps_pieces: the protocol lets the caller send them back. origins: indexes of the messages as the
    caller counts them; empty: the same. going_on: it continues what was admitted before, so it is not refused for
    draining.
    """

    door: str
    encode: str
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    max_tokens: int = 4096
    stream: bool = True
    session: str | None = None
    bytes_in: int = 0
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    format: AnswerFormat | None = None
    sampling: Sampling = Sampling()
    thinking: Thinking = Thinking()
    user_id: str | None = None
    agent: str | None = None
    spoiled: Mapping[int, str] = {}
    origins: tuple[int, ...] = ()
    keeps_pieces: bool = False
    going_on: bool = False


def compose(model: ModelSpec, draft: CallDraft) -> ModelRequest:
    """The request for `model`: its instructions and the caller's, and room to reason."""
    return ModelRequest(
        model=model.upstream,
        messages=draft.messages,
        system=_instructions(model, draft.system),
        tools=draft.tools,
        max_tokens=draft.max_tokens if model.reasoning == "off" else max(draft.max_tokens, REASONING_TOKENS),
        stream=draft.stream,
        reasoning=model.reasoning,
        session=draft.session,
        tool_choice=draft.tool_choice,
        parallel_tool_calls=draft.parallel_tool_calls,
        format=draft.format,
        sampling=draft.sampling,
        thinking=draft.thinking,
    )


def _instructions(model: ModelSpec, system: str | None) -> str | None:
    if not system:
        return model.instructions
    if model.voice_in_apps and model.instructions:
        return f"{model.instructions}\n\n{system}"
    return system
