"""Which tool round of a conversation is open."""

from __future__ import annotations

import pytest
from msgspec import Raw

from crocevia.core.history import open_round
from crocevia.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, user

U = user("x")
A = AssistantMessage(text="x", tool_calls=(ToolCall(id="c", name="t", arguments=Raw(b"{}")),))
T = ToolMessage(call_id="c", content="ok")
S = AssistantMessage(text="fatto")


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], ()),
        ([U], ()),
        ([U, S], ()),
        ([U, A, T], (1,)),
        ([U, A, T, T], (1,)),
        ([U, A, T, A, T], (1, 3)),
        ([U, S, A, T], (2,)),
        ([U, A, T, S], ()),
        ([U, A, T, S, U], ()),
        ([U, A, T, S, U, A, T], (5,)),
        ([U, A, T, U], (1,)),
        ([U, A, T, U, A, T], (4,)),
        ([A, T], (0,)),
    ],
)
def test_a_round_is_open_until_the_model_has_spoken_without_asking(
    messages: list[Message], found: tuple[int, ...]
) -> None:
    assert open_round(messages) == found
