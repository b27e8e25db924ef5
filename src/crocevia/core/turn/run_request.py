"""What a run was asked beside its input. Stored with the turn, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from crocevia.core.calls import AnswerFormat, GenerationOptions, Reasoning, Sampling, ToolChoice
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolMessage

UNANSWERED: Final = '{"code":"unanswered","message":"the caller gave no result for this call"}'


class RunRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a caller asked of an agent beside the input."""

    said: tuple[Message, ...]
    """What the model reads after the chat's history, instead of the input."""
    system: str | None = None
    """Added to the agent's own."""
    tools: tuple[Tool, ...] = ()
    """Functions of the caller's, which nobody here runs."""
    model: str | None = None
    """Another than the agent's."""
    options: GenerationOptions = GenerationOptions()
    door: str = "responses"
    encode: str = "responses"
    bytes_in: int = 0
    repaired: tuple[str, ...] = ()
    """What was left out or mended of what the caller sent, for the record of the first call."""


class _Flat(Struct, frozen=True):
    """The options of a run as journals before version 1.1 spelled them: beside everything else."""

    max_tokens: int = 4096
    choice: ToolChoice = ToolChoice()
    parallel: bool = True
    format: AnswerFormat | None = None
    sampling: Sampling = Sampling()
    thinking: Reasoning = Reasoning()
    session: str | None = None
    stream: bool = True


class _Opened(Struct, frozen=True):
    brief: _Flat = _Flat()


_decoder: Final = msgspec.json.Decoder(_Opened)


def with_earlier_options(request: RunRequest, entry: bytes) -> RunRequest:
    """The request with its options, which an earlier version stored one by one. entry: as it was stored."""
    flat = _decoder.decode(entry).brief
    options = GenerationOptions(
        max_tokens=flat.max_tokens,
        stream=flat.stream,
        session=flat.session,
        tool_choice=flat.choice,
        parallel_tool_calls=flat.parallel,
        format=flat.format,
        sampling=flat.sampling,
        reasoning=flat.thinking,
    )
    return msgspec.structs.replace(request, options=options)


def continued(history: Sequence[Message], said: Sequence[Message]) -> tuple[Message, ...]:
    """The history and what is said now. Calls that were handed to a caller and never answered get a result that says
    so: no provider takes a conversation with a call left open.
    """
    open_calls = dict.fromkeys(_handed(history))
    results = []
    rest = list(said)
    while rest and isinstance(rest[0], ToolMessage):
        result = rest.pop(0)
        if isinstance(result, ToolMessage) and open_calls.pop(result.call_id, 0) is None:
            results.append(result)
    results += [ToolMessage(call_id=call_id, content=UNANSWERED, is_error=True) for call_id in open_calls]
    return (*history, *results, *rest)


def _handed(history: Sequence[Message]) -> list[str]:
    """Ids of the calls at the end of the history that have no result."""
    answered: set[str] = set()
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            answered.add(message.call_id)
        elif isinstance(message, AssistantMessage):
            return [call.id for call in message.tool_calls if call.id not in answered]
        else:
            break
    return []
