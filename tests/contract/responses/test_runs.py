"""Runs of agents: their own tools, the caller's functions, sessions that are chats, approvals, cancelling."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crocevia.runtime.control import operator_view
from crocevia.storage import chats as chat_rows
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House, again, events, house, text_of
from tests.fakes.provider import Play, Provider, answer, play

from .schema import check_event, check_resource
from .upstream import DONE, calls, chunk, sent, spoken, upstream, whole

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
AGENTS = """
[[agents]]
name = "writer"
mode = "primary"
model = "Pepper mini"
system_prompt = "You write files."
tools = ["read", "write", "list"]

[[agents]]
name = "asker"
mode = "primary"
model = "Pepper mini"
tools = ["write"]
permissions = { write = "ask" }

[[agents]]
name = "talker"
mode = "subagent"
model = "Pepper mini"
"""
WRITE = '{"path":"/a.txt","content":"hi"}'
WRITER = {"model": "openclaw/writer", "input": "write hi into a.txt"}


def asks(*named: tuple[str, str, str], text: str = "") -> Play:
    return whole(text, tool_calls=calls(*named))


def streams(*named: tuple[str, str, str], text: str = "") -> Play:
    """A streamed answer with a text and calls."""
    parts = [chunk({"content": text})] if text else []
    for index, (call_id, name, arguments) in enumerate(named):
        half = len(arguments) // 2
        head = {"index": index, "id": call_id, "type": "function"}
        parts.append(chunk({"tool_calls": [head | {"function": {"name": name, "arguments": arguments[:half]}}]}))
        parts.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}))
    return play(*parts, chunk({}, "tool_calls"), DONE)


def scene_with(folder: Path, *plays: Play) -> Any:
    return upstream(folder, *plays, declared=AGENTS)


async def listed(home: House) -> list[chat_rows.Chat]:
    """The operator's chats, newest first."""
    user, workspace = home.secrets.user_id, home.secrets.workspace_id
    database = home.service.database
    return await database.read(lambda tx: chat_rows.page(tx, user, workspace, chat_rows.LAST, 50))


async def chat_events(home: House, chat_id: str) -> list[tuple[str, Any]]:
    """What a reader of the chat sees over the team protocol."""
    found = await home.service.turns.events(home.secrets.user_id, chat_id, 0)
    rows = [msgspec.json.decode(row.body) for row in await found.rest()]
    return [(row["type"], row) for row in rows]


async def over(home: House, chat_id: str, turns: int) -> None:
    """Wait for the end of so many turns."""
    while sum(kind == "turn.completed" for kind, _ in await chat_events(home, chat_id)) < turns:
        await asyncio.sleep(0.01)


@requirement("R-RUN-1")
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_runs_its_own_tools_and_answers_once(stream: bool, tmp_path: Path) -> None:
    plays = [streams(("c1", "write", WRITE), text="I will."), spoken("Do", "ne.")]
    if not stream:
        plays = [asks(("c1", "write", WRITE), text="I will."), whole("Done.")]

    async def scene() -> None:
        async with scene_with(tmp_path, *plays) as (home, provider):
            made = await home.ask("/v1/responses", {**WRITER, "stream": stream})
            assert made.status == 200, made.body
            if stream:
                found = made.events()
                for event in found:
                    check_event(event)
                assert [event["sequence_number"] for event in found] == list(range(len(found)))
                resource = found[-1]["response"]
            else:
                resource = made.json()
            check_resource(resource)
            assert [item["type"] for item in resource["output"]] == ["message", "message"]
            assert [item["content"][0]["text"] for item in resource["output"]] == ["I will.", "Done."]
            assert resource["usage"]["total_tokens"] == 34  # of both calls
            path = home.service.home.files / home.secrets.workspace_id
            assert [one.read_text() for one in path.rglob("a.txt")] == ["hi"]
            last = sent(provider)["messages"]
            assert [one["role"] for one in last] == ["system", "user", "assistant", "tool"]
            kept = await home.get(f"/v1/responses/{resource['id']}")
            assert kept.json() == resource

    run(scene())


@requirement("R-RUN-1")
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_whose_call_of_its_own_tool_is_broken_hears_so_and_goes_on(stream: bool, tmp_path: Path) -> None:
    plays = [streams(("c1", "write", '{"path":'), text="I will."), spoken("Done.")]
    if not stream:
        plays = [asks(("c1", "write", '{"path":'), text="I will."), whole("Done.")]

    async def scene() -> None:
        async with scene_with(tmp_path, *plays) as (home, provider):
            made = await home.ask("/v1/responses", {**WRITER, "stream": stream})
            assert made.status == 200, made.body
            resource = made.events()[-1]["response"] if stream else made.json()
            check_resource(resource)
            assert resource["status"] == "completed"
            assert resource["output"][-1]["content"][0]["text"] == "Done."
            last = sent(provider)["messages"][-1]
            assert last["role"] == "tool" and "invalid_arguments" in last["content"]

    run(scene())


@requirement("R-RUN-2")
def test_a_run_with_tools_is_a_turn_of_a_chat_that_readers_see(tmp_path: Path) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path, asks(("c1", "write", WRITE)), whole("Done.")) as (home, _):
            made = await home.ask("/v1/responses", WRITER)
            (chat,) = await listed(home)
            assert chat.title == "write hi into a.txt"
            told = await chat_events(home, chat.id)
            kinds = [kind for kind, _ in told]
            assert kinds[:2] == ["turn.started", "agent.started"] and kinds[-1] == "turn.completed"
            assert "agent.tool.start" in kinds and "agent.tool.complete" in kinds
            assert told[0][1]["input"] == "write hi into a.txt"
            assert told[0][1]["turn"].removeprefix("cmpl_") == made.json()["id"].removeprefix("resp_")
            # The team answers by id, and is in no list.
            key = home.secrets.api_key
            teams = (await home.get("/api/v1/teams", token=key)).json()
            assert chat.team_id not in str(teams)
            assert (await home.get(f"/api/v1/teams/{chat.team_id}", token=key)).status == 200

    run(scene())


@requirement("R-RUN-3")
@pytest.mark.parametrize("fields", [{"store": False}, {}])
def test_a_lone_answer_of_an_agent_without_tools_leaves_no_chat(fields: dict[str, Any], tmp_path: Path) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path) as (home, _):
            await home.respond("hi", model="openclaw/talker", **fields)
            assert await listed(home) == []

    run(scene())


@requirement("R-RUN-3")
def test_the_first_continuation_makes_a_session_and_the_next_ones_stay_in_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path, whole("b"), whole("d"), whole("f"), whole("g")) as (home, provider):
            first = await home.respond("a", model="openclaw/talker")
            second = await home.respond("c", model="openclaw/talker", previous_response_id=first["id"])
            (chat,) = await listed(home)
            third = await home.respond("e", model="openclaw/talker", previous_response_id=second["id"])
            assert [one.id for one in await listed(home)] == [chat.id]
            said = [one["content"] for one in sent(provider)["messages"]]
            assert said == ["a", "b", "c", "d", "e"]
            assert third["previous_response_id"] == second["id"]
            # Going on from what is not the end of the session is another session.
            await home.respond("x", model="openclaw/talker", previous_response_id=first["id"])
            assert len(await listed(home)) == 2
            assert [one["content"] for one in sent(provider)["messages"]] == ["a", "b", "x"]

    run(scene())


@requirement("R-RUN-3")
@pytest.mark.parametrize(
    ("fields", "headers"), [({"user": "ann"}, {}), ({"store": False}, {"x-openclaw-session-key": "k"})]
)
def test_a_named_session_is_one_chat_and_hears_what_is_said_there(
    fields: dict[str, Any], headers: dict[str, str], tmp_path: Path
) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path, whole("b"), spoken("d"), whole("f")) as (home, provider):
            body = {"model": "openclaw/talker", **fields}
            assert (await home.ask("/v1/responses", {**body, "input": "a"}, headers=headers)).status == 200
            (chat,) = await listed(home)
            turns = home.service.turns
            await turns.send(home.secrets.user_id, chat.id, "c")  # over the team protocol
            await over(home, chat.id, 2)
            assert (await home.ask("/v1/responses", {**body, "input": "e"}, headers=headers)).status == 200
            assert [one.id for one in await listed(home)] == [chat.id]
            assert [one["content"] for one in sent(provider)["messages"]] == ["a", "b", "c", "d", "e"]

    run(scene())


@requirement("R-RUN-4")
@pytest.mark.parametrize("stream", [False, True])
def test_a_callers_function_ends_the_run_and_its_output_goes_on_with_it(stream: bool, tmp_path: Path) -> None:
    both = (("c1", "write", WRITE), ("c2", "look", '{"q":"x"}'))
    plays = [streams(*both), spoken("sunny")] if stream else [asks(*both), whole("sunny")]

    async def scene() -> None:
        async with scene_with(tmp_path, *plays) as (home, provider):

            async def ask(**fields: Any) -> dict[str, Any]:
                made = await home.ask("/v1/responses", {**WRITER, "tools": [LOOK], "stream": stream, **fields})
                assert made.status == 200, made.body
                found: dict[str, Any] = made.events()[-1]["response"] if stream else made.json()
                return found

            first = await ask()
            (call,) = first["output"]  # its own tool is nobody else's business
            assert (call["type"], call["name"], call["arguments"]) == ("function_call", "look", '{"q":"x"}')
            assert first["status"] == "completed"
            previous = {"previous_response_id": first["id"]}
            missing = await home.ask("/v1/responses", {**WRITER, "input": "well?", **previous})
            assert missing.status == 400 and "c2" in missing.error["message"]
            output = {"type": "function_call_output", "call_id": "c2", "output": "sun"}
            second = await ask(input=[output], **previous)
            assert text_of(second) == "sunny"
            last = sent(provider)["messages"]
            assert [one["role"] for one in last] == ["system", "user", "assistant", "tool", "tool"]
            assert [one.get("tool_call_id") for one in last[-2:]] == ["c1", "c2"]
            assert [call["id"] for call in last[2]["tool_calls"]] == ["c1", "c2"]
            assert len(await listed(home)) == 1

    run(scene())


@requirement("R-CHOICE-2")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_a_call_of_a_function_that_is_not_allowed_fails_the_run(stream: bool, store: bool, tmp_path: Path) -> None:
    """Also next to a call that is allowed, after the agent's own tools have worked."""
    other = {**LOOK, "name": "other"}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}
    says = streams if stream else asks
    plays = [says(("c1", "write", WRITE)), says(("c2", "look", "{}"), ("c3", "other", "{}")), whole("never said")]

    async def scene() -> None:
        async with scene_with(tmp_path, *plays) as (home, provider):
            asked = {**WRITER, "tools": [LOOK, other], "tool_choice": choice, "stream": stream, "store": store}
            made = await home.ask("/v1/responses", asked)
            offered = [[tool["function"]["name"] for tool in sent(provider, at)["tools"]] for at in range(2)]
            assert all("look" in names and "write" in names and "other" not in names for names in offered)
            assert len(provider.requests) == 2
            if stream:
                last = made.events()[-1]
                assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "tool_choice_unmet")
            else:
                assert (made.status, made.error["type"], made.error["param"]) == (502, "api_error", "tool_choice")
            async with asyncio.timeout(5):
                for chat in await listed(home):
                    assert (await chat_events(home, chat.id))[-1][0] == "turn.failed"

    run(scene())


@requirement("R-RUN-4")
def test_a_message_in_the_chat_answers_the_calls_that_nobody_answered(tmp_path: Path) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path, asks(("c1", "look", "{}")), spoken("ok")) as (home, provider):
            await home.ask("/v1/responses", {**WRITER, "tools": [LOOK]})
            (chat,) = await listed(home)
            await home.service.turns.send(home.secrets.user_id, chat.id, "never mind")
            await over(home, chat.id, 2)
            last = sent(provider)["messages"]
            assert [one["role"] for one in last] == ["system", "user", "assistant", "tool", "user"]
            assert "unanswered" in last[3]["content"]

    run(scene())


@requirement("R-RUN-4")
def test_a_function_called_like_one_of_the_agents_own_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with scene_with(tmp_path) as (home, provider):
            made = await home.ask("/v1/responses", {**WRITER, "tools": [LOOK, {**LOOK, "name": "write"}]})
            assert made.status == 400 and made.error["param"] == "tools[1].name"
            assert provider.requests == [] and await listed(home) == []

    run(scene())


@requirement("R-RUN-11")
@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions_run_the_agents_tools_and_hand_over_the_callers(stream: bool, tmp_path: Path) -> None:
    both = (("c1", "write", WRITE), ("c2", "look", '{"q":"x"}'))
    plays = [streams(("c0", "list", "{}"), text="One."), streams(*both, text="Two.")]
    if not stream:
        plays = [asks(("c0", "list", "{}"), text="One."), asks(*both, text="Two.")]

    async def scene() -> None:
        async with scene_with(tmp_path, *plays) as (home, _):
            tool = {"type": "function", "function": {"name": "look"}}
            messages = [{"role": "user", "content": "write"}]
            body = {"model": "openclaw/writer", "messages": messages, "tools": [tool], "stream": stream}
            made = await home.ask("/v1/chat/completions", body)
            assert made.status == 200, made.body
            if stream:
                chunks = [json.loads(one[6:]) for one in made.body.split(b"\n\n") if one[:7] == b"data: {"]
                deltas = [one["choices"][0]["delta"] for one in chunks if one["choices"]]
                text = "".join(delta.get("content") or "" for delta in deltas)
                called = [one for delta in deltas for one in delta.get("tool_calls", ())]
                assert {one["index"] for one in called} == {0} and called[0]["id"] == "c2"
                finish = chunks[-1]["choices"][0]["finish_reason"]
            else:
                choice = made.json()["choices"][0]
                text, finish = choice["message"]["content"], choice["finish_reason"]
                assert [one["id"] for one in choice["message"]["tool_calls"]] == ["c2"]
            assert (text, finish) == ("One.\n\nTwo.", "tool_calls")
            assert await listed(home) == []

    run(scene())


@requirement("R-RUN-5")
def test_more_calls_than_allowed_are_refused_to_the_model(tmp_path: Path) -> None:
    asked = asks(*((f"c{n}", "list", "{}") for n in range(3)))

    async def scene() -> None:
        async with scene_with(tmp_path, asked, whole("ok")) as (home, provider):
            made = await home.ask("/v1/responses", {**WRITER, "max_tool_calls": 2})
            assert made.json()["max_tool_calls"] == 2 and text_of(made.json()) == "ok"
            results = [one["content"] for one in sent(provider)["messages"] if one["role"] == "tool"]
            assert ["limit_tool_calls" in one for one in results] == [False, False, True]

    run(scene())


@requirement("R-RUN-5")
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_goes_on_calling_is_told_once_and_then_not_heeded(stream: bool, tmp_path: Path) -> None:
    endless = streams(("c", "list", "{}"), text="Hm.") if stream else asks(("c", "list", "{}"), text="Hm.")

    async def scene() -> None:
        async with scene_with(tmp_path, endless) as (home, provider):
            made = await home.ask("/v1/responses", {**WRITER, "max_tool_calls": 2, "stream": stream})
            assert made.status == 200, made.body
            resource = made.events()[-1]["response"] if stream else made.json()
            assert (resource["status"], text_of(resource)) == ("completed", "Hm." * 4)
            assert len(provider.requests) == 4  # two calls, one that was refused, one that was ignored

    run(scene(), timeout=20)


@requirement("R-RUN-6")
@pytest.mark.parametrize("fields", [{}, {"store": False}])
def test_an_approval_waits_in_the_waiting_room_while_the_stream_is_kept_alive(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    settings = "[gateway.http.endpoints.responses]\nenabled = true\n[calls]\nping_seconds = 0.05\n"

    async def scene() -> None:
        plays = (streams(("c1", "write", WRITE)), spoken("Done."))
        async with upstream(tmp_path, *plays, declared=AGENTS, settings=settings) as (home, _):
            body = {"model": "openclaw/asker", "input": "write", "stream": True, **fields}
            exchange, task = home.start("/v1/responses", body)
            while not (found := await home.service.database.read(lambda tx: operator_view.requests(tx, 0))):
                await asyncio.sleep(0.01)
            (wanted,) = found
            while exchange.body.count(b": ping\n\n") < 2:
                await asyncio.sleep(0.01)
            await home.service.turns.decide(wanted.user_id, wanted.chat_id, wanted.id, True, "")
            await task
            found_events = events(b"\n\n".join(p for p in exchange.body.split(b"\n\n") if not p.startswith(b":")))
            assert text_of(found_events[-1]["response"]) == "Done."

    run(scene())


@requirement("R-RUN-7")
@pytest.mark.parametrize("model", ["openclaw/talker", "openclaw/writer"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_leaves_cancels_the_turn(model: str, stream: bool, tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with scene_with(tmp_path, play(chunk({"content": "half"}), gate)) as (home, provider):
            exchange, task = home.start("/v1/responses", {"model": model, "input": "hi", "stream": stream})
            request = await provider.request(0)
            exchange.hang_up()
            await task
            await request.ended.wait()
            assert request.aborted
            while home.service.gateway.active:
                await asyncio.sleep(0.01)
            for chat in await listed(home):
                assert (await chat_events(home, chat.id))[-1][0] == "turn.cancelled"

    run(scene())


@requirement("R-RUN-7")
def test_a_cancel_in_the_chat_ends_the_answer_as_failed(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with scene_with(tmp_path, play(chunk({"content": "half"}), gate)) as (home, provider):
            exchange, task = home.start("/v1/responses", {**WRITER, "stream": True})
            await provider.request(0)
            while b"half" not in exchange.body:
                await asyncio.sleep(0.01)
            (chat,) = await listed(home)
            await home.service.turns.cancel(home.secrets.user_id, chat.id)
            await task
            found = events(exchange.body)
            assert found[-1]["type"] == "response.failed"
            assert found[-1]["response"]["error"]["code"] == "conflict"

    run(scene())


@requirement("R-RUN-8")
def test_a_steer_reaches_the_run_at_its_next_boundary(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        first = play(chunk({"content": "one"}), gate, chunk({}, "stop"), DONE)
        async with scene_with(tmp_path, first, spoken("two")) as (home, provider):
            exchange, task = home.start("/v1/responses", {**WRITER, "stream": True})
            while b"one" not in exchange.body:
                await asyncio.sleep(0.01)
            (chat,) = await listed(home)
            await home.service.turns.steer(home.secrets.user_id, chat.id, "and another")
            gate.set()
            await task
            last = events(exchange.body)[-1]["response"]
            assert [item["content"][0]["text"] for item in last["output"]] == ["one", "two"]
            assert sent(provider)["messages"][-1] == {"role": "user", "content": "and another"}

    run(scene())


@requirement("R-RUN-9")
def test_a_failure_inside_a_run_keeps_its_own_status(tmp_path: Path) -> None:
    async def scene() -> None:
        limited = answer(429, b'{"error":{"message":"slow down"}}', Retry_After="7")
        async with scene_with(tmp_path, asks(("c1", "list", "{}")), limited) as (home, _):
            made = await home.ask("/v1/responses", WRITER)
            assert made.status in (429, 503) and int(made.headers["retry-after"]) >= 1
            async with asyncio.timeout(5):
                (chat,) = await listed(home)
                assert (await chat_events(home, chat.id))[-1][0] == "turn.failed"

    run(scene(), timeout=50)


@requirement("R-RUN-10")
def test_a_background_run_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with Provider(play(chunk({"content": "half"}), gate), spoken("whole")) as provider:
            engine = {"kind": "openai-chat", "base_url": f"{provider.url}/v1"}
            async with house(tmp_path, engine=engine, model={"upstream": "up-1"}, declared=AGENTS) as home:
                made = await home.respond("hi", model="openclaw/writer", background=True)
                path = f"/v1/responses/{made['id']}"
                await provider.request(0)
                while (await home.get(path)).json()["status"] != "in_progress":
                    await asyncio.sleep(0.01)
                background = home.service.background
                assert background is not None
                await background.close()
                assert (await home.get(path)).json()["status"] == "in_progress"
            async with again(tmp_path) as home:
                while (last := (await home.get(path)).json())["status"] != "completed":
                    assert last["status"] == "in_progress", last
                    await asyncio.sleep(0.01)
                assert text_of(last) == "whole"
                check_resource(last)
                found = (await home.get(f"{path}?stream=true")).events()
                for event in found:
                    check_event(event)
                assert found[-1]["response"] == last
                assert (await home.get(f"{path}?stream=true&starting_after=3")).events() == found[4:]

    run(scene(), timeout=40)
