"""What providers say beside text, as their recorded streams spell it: refusals, thoughts, citations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House, house, text_of
from tests.fakes.provider import Play, Provider, answer, play

from .schema import check_event, check_resource
from .upstream import DONE, chunk, sent, upstream

HI = {"model": "openclaw", "input": "hi"}
USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 12,
}
PAGE = {"type": "url_citation", "start_index": 0, "end_index": 3, "url": "https://example.org/a", "title": "A"}


def told(item: dict[str, Any], *events: dict[str, Any]) -> Play:
    """A stream of OpenAI's Responses API with one item."""
    opened = {**item, "status": "in_progress"} | ({"content": []} if "content" in item else {})
    frames = [
        {"type": "response.created", "response": {"id": "resp_up", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        *({"item_id": item["id"], "output_index": 0, "content_index": 0, **event} for event in events),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item], "usage": USAGE}},
    ]
    return play(*(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in frames))


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_up", "type": "message", "role": "assistant", "status": "completed", "content": list(content)}


REFUSED = message({"type": "refusal", "refusal": "I cannot."})
CITING = message({"type": "output_text", "text": "Yes", "annotations": [PAGE]})
THINKING = {
    "id": "rs_up",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "hm, well"}],
    "status": "completed",
}


@asynccontextmanager
async def responses_upstream(folder: Path, *plays: Play) -> AsyncIterator[tuple[House, Provider]]:
    async with Provider(*plays) as provider:
        engine = {"kind": "openai-responses", "base_url": f"{provider.url}/v1"}
        async with house(folder, engine=engine, model={"upstream": "gpt-5.5", "reasoning": "on"}) as home:
            yield home, provider


async def both(home: House) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The stream, checked, and its answer; the stream told again says the same."""
    made = await home.ask("/v1/responses", {**HI, "stream": True})
    found = made.events()
    for event in found:
        check_event(event)
    last = found[-1]["response"]
    check_resource(last)
    again = (await home.get(f"/v1/responses/{last['id']}?stream=true")).events()
    for event in again:
        check_event(event)
    assert again[-1]["response"] == last
    assert {e["type"] for e in again} == {e["type"] for e in found}
    return found, last


def of(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in found if event["type"] == kind]


@requirement("R-SSE-14")
@pytest.mark.parametrize("kind", ["responses", "chat"])
def test_a_refusal_in_words_is_an_answer_with_a_refusal_in_it(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        if kind == "responses":
            deltas = [{"type": "response.refusal.delta", "delta": text} for text in ("I can", "not.")]
            opened = responses_upstream(tmp_path, told(REFUSED, *deltas))
        else:
            parts = [chunk({"refusal": text}) for text in ("I can", "not.")]
            opened = upstream(tmp_path, play(*parts, chunk({}, "stop"), DONE))
        async with opened as (home, _):
            found, last = await both(home)
            assert [e["delta"] for e in of(found, "response.refusal.delta")] == ["I can", "not."]
            assert [e["refusal"] for e in of(found, "response.refusal.done")] == ["I cannot."]
            item = last["output"][0]  # the provider's own blocks, sealed, may follow
            assert item["content"] == [{"type": "refusal", "refusal": "I cannot."}]
            assert last["status"] == "completed"

    run(scene())


@requirement("R-SSE-14")
def test_a_refusal_in_one_body_is_the_same_answer(tmp_path: Path) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "refusal": "No."}, "finish_reason": "stop"}]}

    async def scene() -> None:
        async with upstream(tmp_path, answer(200, json.dumps(body).encode())) as (home, _):
            made = await home.respond("hi")
            check_resource(made)
            assert made["output"][0]["content"] == [{"type": "refusal", "refusal": "No."}]

    run(scene())


@requirement("R-SSE-14")
@pytest.mark.parametrize("model", ["openclaw", "Pepper mini"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_completion_carries_a_refusal_in_its_own_place(stream: bool, model: str, tmp_path: Path) -> None:
    """Also where a call was demanded: who refuses does not call."""
    said = {"role": "assistant", "content": None, "refusal": "I cannot."}
    body = {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    parts = [chunk({"refusal": text}) for text in ("I can", "not.")]
    told_by = play(*parts, chunk({}, "stop"), DONE) if stream else answer(200, json.dumps(body).encode())

    async def scene() -> None:
        async with upstream(tmp_path, told_by) as (home, _):
            asked = {
                "model": model,
                "messages": [{"role": "user", "content": "do harm"}],
                "stream": stream,
                "tools": [{"type": "function", "function": {"name": "look"}}],
                "tool_choice": "required",
            }
            made = await home.ask("/v1/chat/completions", asked)
            assert made.status == 200, made.body
            if stream:
                choices = [json.loads(line[6:])["choices"][0] for line in made.body.decode().split("\n\n")[:-2]]
                assert [c["delta"]["refusal"] for c in choices if "refusal" in c["delta"]] == ["I can", "not."]
                assert not any(c["delta"].get("content") for c in choices)
                assert choices[-1]["finish_reason"] == "stop"
            else:
                (choice,) = made.json()["choices"]
                assert (choice["message"]["content"], choice["message"]["refusal"]) == (None, "I cannot.")
                assert choice["finish_reason"] == "stop"

    run(scene())


@requirement("R-SSE-15")
@pytest.mark.parametrize("name", ["response.reasoning_text.delta", "response.reasoning.delta"])
def test_thoughts_themselves_are_told_as_thoughts_and_not_as_a_summary(name: str, tmp_path: Path) -> None:
    async def scene() -> None:
        deltas = [{"type": name, "delta": text} for text in ("hm,", " well")]
        async with responses_upstream(tmp_path, told(THINKING, *deltas)) as (home, _):
            found, last = await both(home)
            assert [e["delta"] for e in of(found, "response.reasoning.delta")] == ["hm,", " well"]
            assert [e["text"] for e in of(found, "response.reasoning.done")] == ["hm, well"]
            thought = last["output"][0]
            assert thought["content"] == [{"type": "reasoning_text", "text": "hm, well"}]
            assert thought["summary"] == []

    run(scene())


@requirement("R-SSE-16")
@pytest.mark.parametrize("kind", ["responses", "chat"])
def test_pages_that_an_answer_rests_on_are_annotations_of_its_text(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        if kind == "responses":
            said = {"type": "response.output_text.delta", "delta": "Yes"}
            cited = {"type": "response.output_text.annotation.added", "annotation_index": 0, "annotation": PAGE}
            opened = responses_upstream(tmp_path, told(CITING, said, cited))
        else:
            inner = {name: PAGE[name] for name in ("start_index", "end_index", "url", "title")}
            notes = [{"type": "url_citation", "url_citation": inner}, {"type": "other"}, 7]
            script = play(chunk({"content": "Yes"}), chunk({"annotations": notes}), chunk({}, "stop"), DONE)
            opened = upstream(tmp_path, script)
        async with opened as (home, _):
            found, last = await both(home)
            (added,) = of(found, "response.output_text.annotation.added")
            assert (added["annotation"], added["annotation_index"]) == (PAGE, 0)
            part = next(item for item in last["output"] if item["type"] == "message")["content"][0]
            assert part["annotations"] == [PAGE] and text_of(last) == "Yes"

    run(scene())


@requirement("R-REQ-13")
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
def test_the_effort_reaches_a_model_that_reasons(effort: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with responses_upstream(tmp_path, told(CITING)) as (home, provider):
            asked = {"effort": effort, "summary": "detailed"}
            made = await home.ask("/v1/responses", {**HI, "stream": True, "reasoning": asked})
            assert made.events()[-1]["response"]["reasoning"] == asked
            reached = sent(provider).get("reasoning")
            assert reached == (None if effort == "none" else asked)
            wrong = await home.ask("/v1/responses", {**HI, "reasoning": {"effort": "utmost"}})
            assert (wrong.status, wrong.error["param"]) == (400, "reasoning.effort")

    run(scene())


@requirement("R-REQ-14")
def test_the_service_tier_of_the_answer_is_the_one_there_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for tier in ("auto", "default", "flex", "priority"):
                assert (await home.respond("hi", service_tier=tier))["service_tier"] == "default"

    run(scene())
