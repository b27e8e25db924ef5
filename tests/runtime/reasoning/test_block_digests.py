"""Digests of conversations: the same for the same, others for others, bounded."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from crocevia.core.calls import ModelRequest
from crocevia.core.messages import AssistantMessage, Message, ProviderBlocks, Tool, ToolCall, ToolMessage, user
from crocevia.runtime.reasoning.block_digests import NOTE, BlockDigests

ASK = ModelRequest(model="m", messages=(user("x"),), system="s")
BLOCKS = [Raw(b'{"type":"thinking","signature":"a","n":1.0}')]


def spelled(*blocks: bytes) -> ProviderBlocks:
    return ProviderBlocks(dialect="anthropic", blocks=Raw(b"[" + b",".join(blocks) + b"]"), thinks=True)


def out_of_place(memory: BlockDigests, request: ModelRequest, pieces: ProviderBlocks | None = None) -> bool:
    conversation = memory.conversation(request)
    for message in request.messages:
        conversation.add(message)
    return memory.is_out_of_place(pieces or spelled(bytes(BLOCKS[0])), conversation)


words = st.text(max_size=6)
messages: st.SearchStrategy[Message] = st.one_of(
    words.map(user),
    st.builds(lambda call_id, text: ToolMessage(call_id=call_id, content=text), words, words),
    st.builds(lambda text: AssistantMessage(text=text.strip() or "x"), words),
    st.builds(
        lambda name, text: AssistantMessage(
            text=text.strip() or None, tool_calls=(ToolCall(id="c", name=name, arguments=Raw(b"{}")),)
        ),
        words,
        words,
    ),
)
requests = st.builds(
    lambda found, system, names: ModelRequest(
        model="m",
        messages=tuple(found),
        system=system.strip() or None,
        tools=tuple(Tool(name=name, description="", parameters=Raw(b"{}")) for name in names),
    ),
    st.lists(messages, max_size=4),
    words,
    st.lists(words, max_size=2),
)


@given(first=requests, second=requests)
def test_pieces_hold_in_their_own_conversation_and_in_no_other(first: ModelRequest, second: ModelRequest) -> None:
    memory = BlockDigests(b"secret")
    memory.remember(first, BLOCKS)
    assert not out_of_place(memory, first)
    assert out_of_place(memory, second) == (first != second)


def test_pieces_of_unknown_origin_are_trusted() -> None:
    assert not out_of_place(BlockDigests(b"secret"), ASK)


def test_the_same_answer_may_be_given_in_several_conversations() -> None:
    memory, other = BlockDigests(b"secret"), replace(ASK, system="t")
    memory.remember(ASK, BLOCKS)
    memory.remember(other, BLOCKS)
    assert not out_of_place(memory, ASK) and not out_of_place(memory, other)
    assert out_of_place(memory, replace(ASK, system="u"))


def test_spelling_does_not_count() -> None:
    memory = BlockDigests(b"secret")
    memory.remember(ASK, BLOCKS)
    assert out_of_place(
        memory, replace(ASK, system="t"), spelled(b'{ "n": 1, "signature":"\\u0061","type":"thinking"}')
    )
    assert not out_of_place(memory, replace(ASK, system="t"), spelled(b'{"n":2,"signature":"a","type":"thinking"}'))


def test_a_later_life_recalls_what_records_noted() -> None:
    note = {NOTE: BlockDigests(b"secret").remember(ASK, BLOCKS)}
    memory = BlockDigests(b"secret")
    memory.recall([{}, {"left_out": ["seed"]}, note])
    assert not out_of_place(memory, ASK)
    assert out_of_place(memory, replace(ASK, system="t"))
    stranger = BlockDigests(b"another home")
    stranger.recall([note])
    assert not out_of_place(stranger, replace(ASK, system="t"))  # without the secret a digest says nothing


def test_what_is_remembered_is_bounded() -> None:
    memory: Any = BlockDigests(b"secret", capacity=10)
    for number in range(50):
        memory.remember(ASK, [Raw(b'{"type":"thinking","n":%d}' % number)])
    assert len(memory._answers) == 10
    assert out_of_place(memory, replace(ASK, system="t"), spelled(b'{"type":"thinking","n":49}'))
    assert not out_of_place(memory, replace(ASK, system="t"), spelled(b'{"type":"thinking","n":0}'))
