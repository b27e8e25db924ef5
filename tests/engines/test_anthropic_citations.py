"""Pages that Claude's answers rest on: where they stand in the text, streamed and in one body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crocevia.core.answers import fold
from crocevia.core.events import Cited, ModelEvent

from .dialects import streamed, whole

DOCUMENT = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}


def page(url: Any, title: Any = "A page") -> dict[str, Any]:
    return {"type": "web_search_result_location", "url": url, "title": title, "encrypted_index": "e", "cited_text": "c"}


def text(said: str, *citations: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, "citations": list(citations) or None}


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
A, B = page("https://a.example/"), page("https://b.example/", None)
CASES: dict[str, tuple[list[dict[str, Any]], list[Cited]]] = {
    "none": ([text("Hello.")], []),
    "one": ([text("It is "), text("green", A)], [Cited("https://a.example/", "A page", 6, 11)]),
    "two of one text": (
        [text("green", A, B)],
        [Cited("https://a.example/", "A page", 0, 5), Cited("https://b.example/", "", 0, 5)],
    ),
    "the same twice": ([text("green", A, A)], [Cited("https://a.example/", "A page", 0, 5)]),
    "after a search": (
        [text("Let me look."), SEARCH, text("Grün\U0001f600", A)],
        [Cited("https://a.example/", "A page", 12, 17)],
    ),
    "after a thought": ([text("Well."), THOUGHT, text("green", A)], [Cited("https://a.example/", "A page", 0, 5)]),
    "a place in a document": ([text("green", DOCUMENT)], []),
    "nonsense": (
        [text("green", page(7), page(None), page("u", ["t"]), "word", A)],
        [Cited("https://a.example/", "A page", 0, 5)],
    ),
}


def in_one_body(blocks: list[dict[str, Any]]) -> list[ModelEvent]:
    return whole("anthropic", json.dumps({"type": "message", "content": blocks, "stop_reason": "end_turn"}).encode())


def in_a_stream(blocks: list[dict[str, Any]]) -> list[ModelEvent]:
    """Texts in two deltas, their citations between them, as they come."""
    told: list[dict[str, Any]] = [{"type": "message_start", "message": {"content": []}}]
    for index, block in enumerate(blocks):
        deltas: list[dict[str, Any]] = []
        start = dict(block)
        if block["type"] == "text":
            start |= {"text": "", "citations": []}
            cited = [{"type": "citations_delta", "citation": citation} for citation in block["citations"] or ()]
            halves = [{"type": "text_delta", "text": half} for half in (block["text"][:2], block["text"][2:])]
            deltas = [halves[0], *cited, halves[1]]
        told.append({"type": "content_block_start", "index": index, "content_block": start})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    told += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    return streamed("anthropic", [b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in told)])


@pytest.mark.parametrize("play", [in_one_body, in_a_stream])
@pytest.mark.parametrize("name", CASES)
def test_a_page_is_cited_where_its_text_stands(play: Any, name: str) -> None:
    blocks, expected = CASES[name]
    events = play(blocks)
    assert [event for event in events if isinstance(event, Cited)] == expected
    kept = [json.loads(bytes(block.block)) for block in fold(events).blocks]
    assert [block.get("citations") or None for block in kept] == [block.get("citations") for block in blocks]


@pytest.mark.parametrize("listing", ["word", 7, {"a": 1}])
def test_a_listing_that_is_none_is_no_citation(listing: Any) -> None:
    events = in_one_body([{"type": "text", "text": "green", "citations": listing}])
    assert fold(events).text == "green" and not any(isinstance(event, Cited) for event in events)
