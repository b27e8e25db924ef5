"""The event stream: framing, order, identity, endings; every event against the contract."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import ENABLED, House, events, house, text_of
from tests.fakes.provider import CUT, RESET, Play, Provider, answer, play, silence

from .schema import check_event, check_resource, event_schemas
from .upstream import DONE, chunk, sent, spoken, upstream, whole

HI = {"model": "openclaw", "input": "hi", "stream": True}
TOOL = {"type": "function", "name": "look"}
TEXT_ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]
# For these a provider has to have a cause: test_upstream_events.py has their recorded streams.
ELSEWHERE = {
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning.delta",
    "response.reasoning.done",
    "response.output_text.annotation.added",
}
SEEN_HERE: set[str] = set()


def checked(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, each valid, in one count, with every item opened and closed once."""
    for event in found:
        check_event(event)
    SEEN_HERE.update(event["type"] for event in found)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    added = [event for event in found if event["type"] == "response.output_item.added"]
    done = [event for event in found if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in added] == list(range(len(added)))
    if found[-1]["type"] in ("response.completed", "response.incomplete"):
        assert sorted(event["output_index"] for event in done) == list(range(len(added)))
        closed = {event["output_index"]: event["item"] for event in done}
        assert found[-1]["response"]["output"] == [closed[index] for index in sorted(closed)]
        assert {e["item"]["id"] for e in added} == {item["id"] for item in closed.values()}
    return found


async def streamed(home: House, **fields: Any) -> list[dict[str, Any]]:
    answer = await home.ask("/v1/responses", {**HI, **fields})
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("text/event-stream")
    return checked(answer.events())


def kinds(found: list[dict[str, Any]]) -> list[str]:
    """Types in order, repetitions once."""
    return [e["type"] for index, e in enumerate(found) if index == 0 or found[index - 1]["type"] != e["type"]]


@requirement("R-SSE-1", "R-SSE-2", "R-SSE-3", "R-SSE-4", "R-RES-4")
def test_a_text_comes_in_the_order_of_the_contract(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, spoken("Hel", "lo ", "👋 città\n")) as (home, _):
            found = await streamed(home, model="OpenClaw/Default")
            assert kinds(found) == TEXT_ORDER
            deltas = "".join(e["delta"] for e in found if e["type"] == "response.output_text.delta")
            last = found[-1]["response"]
            assert deltas == text_of(last) == "Hello 👋 città\n"
            assert last["model"] == "OpenClaw/Default" and last["usage"]["total_tokens"] == 17

    run(scene())


@requirement("R-SSE-9")
def test_no_frame_is_spread_over_two_writes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, spoken(*"abc").split(7)) as (home, _):
            result = await home.ask("/v1/responses", HI)
            assert len(result.exchange.writes) > 3
            assert all(write.endswith(b"\n\n") for write in result.exchange.writes if write)

    run(scene())


def called(index: int, call_id: str, *fragments: str) -> list[bytes]:
    function = {"name": "look", "arguments": ""}
    first = {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
    rest = [{"tool_calls": [{"index": index, "function": {"arguments": one}}]} for one in fragments]
    return [chunk(delta) for delta in (first, *rest)]


@requirement("R-SSE-5")
def test_parallel_calls_keep_apart(tmp_path: Path) -> None:
    one, two = called(0, "c1", '{"q":', "1}"), called(1, "c2", '{"q":2}')
    steps = [chunk({"content": "so "}), one[0], two[0], one[1], two[1], one[2], chunk({}, "tool_calls"), DONE]

    async def scene() -> None:
        async with upstream(tmp_path, play(*steps)) as (home, _):
            found = await streamed(home, tools=[TOOL])
            output = found[-1]["response"]["output"]
            assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
            assert [(i["call_id"], i["arguments"]) for i in output[1:]] == [("c1", '{"q":1}'), ("c2", '{"q":2}')]
            for item in output[1:]:
                pieces = [e for e in found if e["type"].endswith("arguments.delta") and e["item_id"] == item["id"]]
                assert "".join(e["delta"] for e in pieces) == item["arguments"]
            assert len({item["id"] for item in output}) == 3

    run(scene())


@requirement("R-SSE-6", "R-SSE-13")
def test_reasoning_is_a_summary_before_the_text_and_every_type_is_known(tmp_path: Path) -> None:
    script = [
        {"when": {"contains": "limit"}, "say": [{"text": "cut"}, {"stop": "max_tokens"}]},
        {"when": {"contains": "fail"}, "say": [{"text": "so"}, {"cut": True}]},
        {"when": {"tool_offered": "look"}, "say": [{"tool": "look", "arguments": {"a": 1}}]},
        {"say": [{"reasoning": "let me think"}, {"text": "yes"}]},
    ]

    async def scene() -> None:
        async with house(tmp_path, script=script) as home:
            found = await streamed(home)
            assert [i["type"] for i in found[-1]["response"]["output"]] == ["reasoning", "message"]
            assert found[-1]["response"]["output"][0]["summary"] == [{"type": "summary_text", "text": "let me think"}]
            await streamed(home, tools=[TOOL])
            await streamed(home, input="limit")
            checked((await home.ask("/v1/responses", {**HI, "input": "fail"})).events())
            job = await home.respond("hi", background=True, stream=False)
            followed = await home.get(f"/v1/responses/{job['id']}?stream=true")
            SEEN_HERE.update(event["type"] for event in followed.events())
            queued = await home.ask("/v1/responses", {**HI, "background": True})
            checked(queued.events())
            assert set(event_schemas()) - ELSEWHERE == SEEN_HERE & set(event_schemas())

    run(scene())


@requirement("R-RES-3")
def test_what_the_limit_cut_is_incomplete_to_its_last_item(tmp_path: Path) -> None:
    script = [
        {
            "when": {"contains": "call"},
            "say": [{"text": "a"}, {"half_tool": "look", "fragment": '{"q"'}, {"stop": "max_tokens"}],
        },
        {"say": [{"text": "half a"}, {"stop": "max_tokens"}]},
    ]

    async def scene() -> None:
        async with house(tmp_path, script=script) as home:
            for said in ("hi", "call"):
                found = await streamed(home, input=said, tools=[TOOL])
                last = found[-1]["response"]
                assert found[-1]["type"] == "response.incomplete" and last["status"] == "incomplete"
                assert last["incomplete_details"] == {"reason": "max_output_tokens"}
                assert last["output"][-1]["status"] == "incomplete" and last["completed_at"] is None
                whole_one = await home.respond(said, tools=[TOOL])
                assert whole_one["status"] == "incomplete"
                check_resource(whole_one)

    run(scene())


BEFORE: dict[str, tuple[Play, int]] = {
    "bad request": (answer(400, b'{"error":{"type":"invalid_request_error"}}'), 400),
    "key": (answer(401, b"{}"), 502),
    "overload": (answer(429, b"{}", Retry_After="1"), 503),
    "breakdown": (answer(500, b"{}"), 502),
    "no json": (answer(200, b"<html>"), 502),
    "error event": (play(b'data: {"error":{"type":"server_error","message":"secret words"}}\n\n'), 502),
    "cut": (Play((CUT,), chunked=False, head=False), 502),
    "reset": (Play((RESET,), chunked=False, head=False), 502),
    "empty": (play(), 502),
}
AFTER: dict[str, tuple[bytes | str, ...]] = {
    "cut": (CUT,),
    "reset": (RESET,),
    "error event": (b'data: {"error":{"type":"server_error","message":"secret words"}}\n\n',),
    "no end": (),
    "nonsense": (b"data: {{{\n\n",),
}


@requirement("R-SSE-8")
@pytest.mark.parametrize("fault", BEFORE)
@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_before_the_first_token_is_a_status(fault: str, stream: bool, tmp_path: Path) -> None:
    script, status = BEFORE[fault]

    async def scene() -> None:
        async with upstream(tmp_path, script) as (home, _):
            for path, body in (
                ("/v1/responses", {**HI, "stream": stream}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "stream": stream}),
            ):
                result = await home.ask(path, body)
                assert result.status == status, (path, result.body)
                assert result.headers["content-type"] == "application/json" and result.error["message"]
                assert b"secret" not in result.body
                if status == 503:
                    assert int(result.headers["retry-after"]) >= 1

    run(scene(), timeout=50)


@requirement("R-SSE-7", "R-CHAT-5")
@pytest.mark.parametrize("fault", AFTER)
def test_a_failure_after_the_first_token_ends_the_stream_honestly(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, play(chunk({"content": "half"}), *AFTER[fault])) as (home, _):  # type: ignore[arg-type]
            found = checked((await home.ask("/v1/responses", HI)).events())
            assert [e["type"] for e in found[-2:]] == ["error", "response.failed"]
            failed = found[-1]["response"]
            assert failed["status"] == "failed" and failed["error"]["code"] == found[-2]["error"]["code"]
            (half,) = failed["output"]
            assert half["status"] == "incomplete" and half["content"][0]["text"] == "half"
            kinds = [e["type"] for e in found]
            assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 1
            assert "secret" not in json.dumps(found)
            body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
            chat = await home.ask("/v1/chat/completions", body)
            frames = chat.body.decode().split("\n\n")
            assert frames[-2] == "data: [DONE]" and "error" in json.loads(frames[-3].removeprefix("data: "))
            whole_one = await home.ask("/v1/responses", {**HI, "stream": False})
            assert whole_one.status == 502, whole_one.body

    run(scene(), timeout=30)


@requirement("R-SSE-8")
def test_a_provider_that_asks_for_patience_is_one_answer_with_the_time_whether_it_was_to_stream_or_not(
    tmp_path: Path,
) -> None:
    settings = ENABLED + "[calls]\nping_seconds = 0.5\n"

    async def scene() -> None:
        async with upstream(tmp_path, answer(429, b"{}", Retry_After="8"), settings=settings) as (home, provider):
            chat = {"messages": [{"role": "user", "content": "hi"}]}
            asked = [
                ("/v1/responses", HI),
                ("/v1/chat/completions", chat),
                ("/v1/responses", {**HI, "model": "openclaw"}),
            ]
            for count, (path, body) in enumerate([one for one in asked for _ in range(2)]):
                told = await home.ask(path, {**body, "stream": count % 2 == 0})
                assert (told.status, told.headers["retry-after"]) == (503, "8"), told.body
                assert len(provider.requests) == count + 1

    run(scene(), timeout=30)


@requirement("R-SSE-8")
def test_a_failure_after_an_empty_block_was_begun_is_a_status(tmp_path: Path) -> None:
    begun = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "error", "error": {"type": "overloaded_error"}},
    ]
    script = play(*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in begun))

    async def scene() -> None:
        async with Provider(script) as provider:
            engine = {"kind": "anthropic", "base_url": provider.url}
            async with house(tmp_path, engine=engine, model={"upstream": "up-1"}) as home:
                for path, body in (
                    ("/v1/responses", HI),
                    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "stream": True}),
                ):
                    result = await home.ask(path, body)
                    assert result.status == 503, (path, result.body)
            assert len(provider.requests) == 2  # begun is paid, and not asked for again

    run(scene(), timeout=30)


@requirement("R-SSE-9")
@pytest.mark.parametrize("field", ["content", "reasoning_content"])
def test_no_delta_is_longer_than_any_reader_takes(field: str, tmp_path: Path) -> None:
    said = "\x01é🌍" * 100_000

    async def scene() -> None:
        async with upstream(tmp_path, play(chunk({field: said}), chunk({}, "stop"), DONE)) as (home, _):
            found = (await home.ask("/v1/responses", HI)).events()
            deltas = [e for e in found if e["type"].endswith(".delta")]
            assert "".join(e["delta"] for e in deltas) == said
            assert max(len(json.dumps(e)) for e in deltas) < 2 * 65_536
            body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
            lines = (await home.ask("/v1/chat/completions", body)).body.split(b"\n")
            assert max(map(len, lines)) < 65_536
            chunks = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
            told = [one["choices"][0]["delta"].get(field) or "" for one in chunks if one["choices"]]
            assert "".join(told) == said

    run(scene(), timeout=30)


@requirement("R-SSE-10")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_client_that_hangs_up_ends_the_call_upstream(path: str, moment: str, tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        script = silence(gate) if moment == "before" else play(chunk({"content": "half"}), gate)
        async with upstream(tmp_path, script) as (home, provider):
            said = {"input": "hi"} if path == "/v1/responses" else {"messages": [{"role": "user", "content": "hi"}]}
            exchange, task = home.start(path, {"model": "openclaw", "stream": True, **said})
            request = await provider.request(0)
            if moment == "after":
                await exchange.until(lambda: bool(exchange.writes))
            exchange.hang_up()
            await task
            await request.ended.wait()
            assert request.aborted and home.service.gateway.active == 0

    run(scene())


@requirement("R-SSE-11")
def test_silence_is_filled_with_comments(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        settings = ENABLED + "[calls]\nping_seconds = 0.05\n"
        async with upstream(tmp_path, play(gate, chunk({"content": "x"}, "stop"), DONE), settings=settings) as (
            home,
            _,
        ):
            exchange, task = home.start("/v1/responses", HI)
            await exchange.until(lambda: exchange.body.count(b": ping\n\n") >= 2)
            gate.set()
            await task
            assert checked(events(exchange.body))[-1]["type"] == "response.completed"

    run(scene())


@requirement("R-SSE-7")
def test_a_failure_after_a_comment_is_told_in_the_stream(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        settings = ENABLED + "[calls]\nping_seconds = 0.05\n"
        async with upstream(tmp_path, play(gate, CUT), settings=settings) as (home, _):
            exchange, task = home.start("/v1/responses", HI)
            await exchange.until(lambda: b": ping" in exchange.body)
            gate.set()
            await task
            found = checked(events(exchange.body))
            assert [e["type"] for e in found] == [
                "response.created",
                "response.in_progress",
                "error",
                "response.failed",
            ]

    run(scene(), timeout=40)


@requirement("R-SSE-7")
def test_draining_ends_a_stream_as_failed(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(tmp_path, play(chunk({"content": "half"}), gate)) as (home, _):
            exchange, task = home.start("/v1/responses", HI)
            await exchange.until(lambda: b"half" in exchange.body)
            home.service.gateway.drain(0)
            await task
            assert checked(events(exchange.body))[-1]["response"]["error"]["code"] == "draining"
            refused = await home.ask("/v1/responses", HI)
            assert refused.status == 503 and "retry-after" in refused.headers

    run(scene())


@requirement("R-RES-2")
def test_usage_is_whole_or_null(tmp_path: Path) -> None:
    async def scene() -> None:
        bare = answer(200, b'{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}')
        async with upstream(tmp_path, whole(), bare) as (home, provider):
            counted = await home.respond("hi")
            assert counted["usage"] == {
                "input_tokens": 12,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 17,
            }
            assert (await home.respond("hi"))["usage"] is None
            assert sent(provider)["stream"] is False

    run(scene())
