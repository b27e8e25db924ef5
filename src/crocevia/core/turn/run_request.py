"""What a run was asked beside its input. Stored with the turn, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from crocevia.core.calls import AnswerFormat, Sampling, Thinking, ToolChoice
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolMessage

UNANSWERED: Final = '{"code":"unanswered","message":"the caller gave no result for this call"}'


class RunRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """said: what the model reads after the chat's history, instead of the input. system: added to the agent's own.

    tools: functions of the caller's, which nobody here runs. model: another than the agent's. session: a name of the
    conversation for providers that route by it.
    """

    said: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    model: str | None = None
    max_tokens: int = 4096
    choice: ToolChoice = ToolChoice()
    parallel: bool = True
    format: AnswerFormat | None = None
    sampling: Sampling = Sampling()
    thinking: Thinking = Thinking()
    door: str = "responses"
    encode: str = "responses"
    session: str | None = None
    stream: bool = True
    bytes_in: int = 0


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
