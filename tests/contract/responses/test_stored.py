"""Stored answers, sessions, background, compaction."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import again, events, house, text_of
from tests.fakes.provider import answer, play

from .schema import check, check_event, check_resource
from .upstream import DONE, calls, chunk, sent, upstream, whole

TOOL = {"type": "function", "name": "look"}
BODY = {"model": "openclaw", "input": "hi"}


def users(body: dict[str, Any]) -> list[str]:
    return [one["content"] for one in body["messages"] if one["role"] == "user"]


@requirement("R-STORE-1", "R-STORE-2")
def test_what_was_stored_can_be_read_streamed_listed_and_deleted(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            items = [{"role": "user", "content": text} for text in ("a", "b", "c")]
            made = await home.respond(items)
            path = f"/v1/responses/{made['id']}"
            assert (await home.get(path)).json() == made
            told = (await home.get(f"{path}?stream=true")).events()
            for event in told:
                check_event(event)
            assert told[-1]["response"] == made
            rest = (await home.get(f"{path}?stream=true&starting_after=2")).events()
            assert rest == told[3:]
            page = (await home.get(f"{path}/input_items?order=asc&limit=2")).json()
            assert [item["content"][0]["text"] for item in page["data"]] == ["a", "b"] and page["has_more"]
            after = (await home.get(f"{path}/input_items?order=asc&after={page['last_id']}")).json()
            assert [item["content"][0]["text"] for item in after["data"]] == ["c"] and not after["has_more"]
            newest = (await home.get(f"{path}/input_items")).json()["data"]
            assert [item["content"][0]["text"] for item in newest] == ["c", "b", "a"]
            gone = await home.ask(path, method="DELETE")
            assert gone.json() == {"id": made["id"], "object": "response", "deleted": True}
            assert [(await home.ask(path, method=m)).status for m in ("GET", "DELETE")] == [404, 404]
            hidden = await home.respond("hi", store=False)
            assert hidden["store"] is False and (await home.get(f"/v1/responses/{hidden['id']}")).status == 404

    run(scene())


@requirement("R-STORE-1")
def test_odd_questions_about_stored_answers_are_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            made = await home.respond("hi")
            path = f"/v1/responses/{made['id']}"
            for query in ("limit=0", "limit=x", "order=up", "after=item_nope"):
                assert (await home.get(f"{path}/input_items?{query}")).status == 400, query
            assert (await home.get(f"{path}/nonsense")).status == 404
            assert (await home.ask(path, method="PUT")).headers["allow"] == "GET, DELETE"
            assert (await home.ask(f"{path}/cancel")).status == 400
            assert (await home.get(f"{path}/cancel")).status == 405

    run(scene())


@requirement("R-STORE-3")
def test_nobody_else_reads_or_continues_an_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            made = await home.respond("hi")
            key = home.secrets.api_key
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
                answer = await home.ask(f"/v1/responses/{made['id']}{path}", method=method, token=key)
                assert answer.status == 404
            body = {**BODY, "previous_response_id": made["id"]}
            refused = await home.ask("/v1/responses", body, token=key)
            assert refused.error["code"] == "previous_response_not_found"
            other_agent = await home.ask("/v1/responses", {**body, "model": "openclaw/clerk"})
            assert other_agent.error["code"] == "previous_response_not_found"

    run(scene())


@requirement("R-STORE-4", "R-PREV-1")
def test_a_conversation_goes_on_after_a_restart_without_its_old_instructions(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, whole("b"), whole("d")) as (home, provider):
            first = await home.respond("a", instructions="speak French")
            second = await home.respond("c", previous_response_id=first["id"])
            assert second["previous_response_id"] == first["id"]
            body = sent(provider)
            assert [one["content"] for one in body["messages"][1:]] == ["a", "b", "c"]
            assert "French" not in body["messages"][0]["content"]
        async with again(tmp_path) as home:
            kept = await home.get(f"/v1/responses/{second['id']}")
            assert kept.json() == second
            page = await home.get(f"/v1/responses/{second['id']}/input_items")
            assert page.json()["data"][0]["content"] == [{"type": "input_text", "text": "c"}]

    run(scene())


@requirement("R-PREV-2")
def test_what_cannot_be_continued_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, answer(500, b"{}")) as (home, _):
            body = {**BODY, "previous_response_id": "resp_nope"}
            refused = await home.ask("/v1/responses", body)
            assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")
            assert refused.error["param"] == "previous_response_id"

    run(scene(), timeout=40)


@requirement("R-PREV-3")
def test_a_tool_loop_goes_on_with_the_output_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        first = whole("", tool_calls=calls(("c1", "look", '{"q":1}')))
        async with upstream(tmp_path, first, whole("sunny")) as (home, provider):
            asked = await home.respond("weather?", tools=[TOOL])
            output = {"type": "function_call_output", "call_id": "c1", "output": "sun"}
            stray = await home.ask("/v1/responses", {**BODY, "previous_response_id": asked["id"]})
            assert stray.status == 400 and "c1" in stray.error["message"]
            done = await home.respond([output], tools=[TOOL], previous_response_id=asked["id"])
            assert text_of(done) == "sunny"
            assert [one["role"] for one in sent(provider)["messages"]] == ["system", "user", "assistant", "tool"]

    run(scene())


@requirement("R-REF-1")
def test_a_reference_brings_the_item_that_it_means(tmp_path: Path) -> None:
    async def scene() -> None:
        first = whole("said before", tool_calls=calls(("c1", "look", "{}")))
        async with upstream(tmp_path, first, whole("ok")) as (home, provider):
            made = await home.respond("a", tools=[TOOL])
            references = [{"type": "item_reference", "id": item["id"]} for item in made["output"]]
            output = {"type": "function_call_output", "call_id": "c1", "output": "sun"}
            items = [{"role": "user", "content": "a"}, *references, output]
            await home.respond(items, tools=[TOOL])
            roles = [one["role"] for one in sent(provider)["messages"]]
            assert roles == ["system", "user", "assistant", "tool"]
            assert sent(provider)["messages"][2]["content"] == "said before"
            body = {**BODY, "input": [{"role": "user", "content": "a"}, references[0]]}
            await home.ask("/v1/responses", body, token=home.secrets.api_key)
            assert "said before" not in provider.requests[-1].body.decode()

    run(scene())


@requirement("R-SESS-1", "R-SESS-3")
def test_a_user_continues_a_session_and_nobody_is_nobody_s(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for said, who, expected in (
                ("1", "ann", ["1"]),
                ("2", "ann", ["1", "2"]),
                ("3", "bob", ["3"]),
                ("4", None, ["4"]),
                ("5", " ", ["5"]),
            ):
                await home.respond(said, user=who, store=False)
                assert users(sent(provider)) == expected
            await home.respond("6", user="ann", model="openclaw/clerk")
            assert users(sent(provider)) == ["6"]
            await home.ask("/v1/responses", {**BODY, "user": "ann"}, token=home.secrets.api_key)
            assert users(sent(provider)) == ["hi"]
            await home.respond("7", user="ann", model="Pepper mini")
            assert users(sent(provider)) == ["7"]

    run(scene())


@requirement("R-SESS-2")
def test_a_named_session_goes_on_and_reserved_names_are_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            named = {"x-openclaw-session-key": "desk"}
            first = await home.ask("/v1/responses", BODY, headers=named)
            await home.ask("/v1/responses", {**BODY, "input": "two", "user": "ignored"}, headers=named)
            assert users(sent(provider)) == ["hi", "two"]
            body = {**BODY, "previous_response_id": first.json()["id"]}
            other = await home.ask("/v1/responses", body, headers={"x-openclaw-session-key": "other"})
            assert other.error["code"] == "previous_response_not_found"
            for name in ("subagent:x", "CRON:x", "acp:", "agent:main:subagent:x", "agent:main:cron:1"):
                for path in ("/v1/responses", "/v1/chat/completions"):
                    chat = {"model": "openclaw", "messages": [{"role": "user", "content": "hi"}]}
                    asked = BODY if path == "/v1/responses" else chat
                    refused = await home.ask(path, asked, headers={"x-openclaw-session-key": name})
                    assert refused.status == 400 and "reserved" in refused.error["message"], name

    run(scene())


@requirement("R-BACK-1")
def test_a_background_answer_completes_by_itself(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(tmp_path, play(gate, chunk({"content": "done"}, "stop"), DONE)) as (home, provider):
            made = await home.respond("hi", background=True, stream=False)
            check_resource(made)
            assert made["status"] == "queued"
            await provider.request(0)
            path = f"/v1/responses/{made['id']}"
            assert (await home.get(path)).json()["status"] == "in_progress"
            gate.set()
            while (last := (await home.get(path)).json())["status"] == "in_progress":
                await asyncio.sleep(0.01)
            assert last["status"] == "completed" and text_of(last) == "done"
            check_resource(last)

    run(scene())


@requirement("R-BACK-2")
def test_a_background_answer_is_followed_and_cancelled(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(tmp_path, play(chunk({"content": "half"}), gate)) as (home, provider):
            exchange, task = home.start("/v1/responses", {**BODY, "background": True, "stream": True})
            await exchange.until(lambda: b"half" in exchange.body)
            exchange.hang_up()
            await task
            response_id = exchange.body.split(b'"id":"', 1)[1].split(b'"', 1)[0].decode()
            path = f"/v1/responses/{response_id}"
            follower, following = home.start(f"{path}?stream=true&starting_after=2", method="GET")
            await follower.until(lambda: b"half" in follower.body)
            cancelled = await home.ask(f"{path}/cancel")
            assert cancelled.json()["status"] == "cancelled"
            await following
            assert events(follower.body)[0]["sequence_number"] == 3
            assert provider.requests[0].aborted and home.service.gateway.active == 0
            again = await home.ask(f"{path}/cancel")
            assert again.status == 200 and again.json()["status"] == "cancelled"

    run(scene())


@requirement("R-BACK-1")
def test_an_answer_that_nobody_makes_any_more_has_failed(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(tmp_path, play(gate)) as (home, _):
            made = await home.respond("hi", model="Pepper mini", background=True)
            background = home.service.background
            assert background is not None
            await background.close()
            last = (await home.get(f"/v1/responses/{made['id']}")).json()
            assert last["status"] == "failed" and last["error"]["code"]
            check_resource(last)

    run(scene())


@requirement("R-COMP-1")
def test_a_compacted_conversation_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, whole("They like papaya."), whole("papaya")) as (home, provider):
            items = [{"role": "user", "content": "I like papaya"}, {"role": "assistant", "content": "noted"}]
            made = await home.ask("/v1/responses/compact", {"model": "openclaw", "input": items})
            assert made.status == 200
            check("CompactResource", made.json())
            assert made.json()["output"][0]["type"] == "compaction"
            item = {"role": "user", "content": "what?"}
            await home.respond([*made.json()["output"], item])
            assert "They like papaya." in users(sent(provider))[0]
            forged = [{"type": "compaction", "encrypted_content": "AAAA"}, item]
            refused = await home.ask("/v1/responses", {**BODY, "input": forged})
            assert refused.status == 400 and refused.error["param"] == "input[0].encrypted_content"

    run(scene())


@requirement("R-COMP-2")
@pytest.mark.parametrize("body", [{"input": "hi"}, {}, {"model": None}])
def test_compaction_needs_a_model(body: dict[str, Any], tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            refused = await home.ask("/v1/responses/compact", body)
            assert refused.status == 400 and refused.error["code"] == "missing_required_parameter"

    run(scene())


@requirement("R-ITEM-6")
def test_an_engine_s_own_blocks_come_back_untouched(tmp_path: Path) -> None:
    thinking = '{"type":"thinking","thinking":"hm","signature":"c2ln"}'
    use = '{"type":"tool_use","id":"toolu_1","name":"look","input":{"q":  1}}'
    body = (
        '{"type":"message","role":"assistant","content":[' + thinking + "," + use + '],"stop_reason":"tool_use",'
        '"usage":{"input_tokens":1,"output_tokens":1}}'
    )

    async def scene() -> None:
        from tests.fakes.provider import Provider

        async with Provider(answer(200, body.encode())) as provider:
            engine = {"kind": "anthropic", "base_url": provider.url}
            model = {"upstream": "claude-opus-5-5", "reasoning": "on"}
            async with house(tmp_path, engine=engine, model=model) as home:
                include = ["reasoning.encrypted_content"]
                first = await home.respond("hi", tools=[TOOL], store=False, include=include)
                kinds = [item["type"] for item in first["output"]]
                assert "function_call" in kinds and kinds[-1] == "reasoning"
                back = [{"role": "user", "content": "hi"}, *first["output"]]
                back.append({"type": "function_call_output", "call_id": "toolu_1", "output": "x"})
                await home.respond(back, tools=[TOOL], store=False, include=include)
                assert thinking.encode() in provider.requests[-1].body
                assert use.encode() in provider.requests[-1].body

    run(scene())
