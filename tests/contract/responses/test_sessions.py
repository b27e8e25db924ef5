"""What a session remembers: whole turns, all of them, in order, and nothing that was deleted."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from crocevia.runtime import session_turns
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House, again, house
from tests.fakes.provider import Provider, play

from .test_socket import served, socket, turn
from .upstream import DONE, chunk, sent, spoken, upstream, whole

# What makes a session, and the agent that it is with: one call of a model, or the run of an agent in a chat.
WAYS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"user": "ann"}, {}),
    ({"store": False}, {"x-openclaw-session-key": "desk"}),
    ({"user": "ann", "model": "openclaw/talker"}, {}),
]
TALKER = """
[[agents]]
name = "talker"
mode = "subagent"
model = "Pepper mini"
permissions = { "*" = "allow" }
"""


def users(body: dict[str, Any]) -> list[str]:
    return [one["content"] for one in body["messages"] if one["role"] == "user"]


class Talk:
    def __init__(self, home: House, fields: dict[str, Any], headers: dict[str, str]) -> None:
        self.home = home
        self.fields = {"model": "openclaw", **fields}
        self.headers = headers

    async def say(self, text: str, **more: Any) -> Any:
        body = {**self.fields, "input": text, **more}
        return await self.home.ask("/v1/responses", body, headers=self.headers)

    def start(self, text: str, **more: Any) -> Any:
        return self.home.start("/v1/responses", {**self.fields, "input": text, **more}, headers=self.headers)


HALF = chunk({"content": "half"})


async def hang_up(talk: Talk, gate: asyncio.Event, provider: Provider) -> None:
    exchange, task = talk.start("lost", stream=True)
    await exchange.until(lambda: b"half" in exchange.body)
    exchange.hang_up()
    await task


async def cancel(talk: Talk, gate: asyncio.Event, provider: Provider) -> None:
    talk.fields["store"] = True
    made = (await talk.say("lost", background=True)).json()
    path = f"/v1/responses/{made['id']}"
    await provider.request(1)
    await talk.home.ask(f"{path}/cancel")


async def fail(talk: Talk, gate: asyncio.Event, provider: Provider) -> None:
    gate.set()  # the provider breaks off
    assert (await talk.say("lost", stream=True)).events()[-1]["type"] == "response.failed"


@requirement("R-SESS-4")
@pytest.mark.parametrize("how", [hang_up, cancel, fail])
@pytest.mark.parametrize(("fields", "headers"), WAYS)
def test_a_turn_that_did_not_end_does_not_take_the_past_with_it(
    how: Any, fields: dict[str, Any], headers: dict[str, str], tmp_path: Path
) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        plays = (whole("hello"), play(HALF, gate, "cut"), whole("Ada"))
        async with upstream(tmp_path, *plays, declared=TALKER) as (home, provider):
            talk = Talk(home, dict(fields), headers)
            assert (await talk.say("I am Ada")).status == 200
            await how(talk, gate, provider)
            assert (await talk.say("who am I?")).status == 200
            heard = users(sent(provider))
            assert heard[0] == "I am Ada" and heard[-1].endswith("who am I?")
            said = [one["content"] for one in sent(provider)["messages"] if one["role"] == "assistant"]
            assert said[0] == "hello"

    run(scene(), timeout=40)


@requirement("R-SESS-5")
@pytest.mark.parametrize(("fields", "headers"), WAYS)
def test_parallel_turns_of_a_session_follow_one_another(
    fields: dict[str, Any], headers: dict[str, str], tmp_path: Path
) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(
            tmp_path, play(gate, chunk({"content": "b"}, "stop"), DONE), spoken("b"), declared=TALKER
        ) as (home, provider):
            talk = Talk(home, fields, headers)
            tasks = [asyncio.ensure_future(talk.say(text, stream=True)) for text in ("1", "2", "3")]
            await provider.request(0)
            gate.set()
            assert [one.status for one in await asyncio.gather(*tasks)] == [200, 200, 200]
            heard = [users(request.json()) for request in provider.requests]
            assert [len(texts) for texts in heard] == [1, 2, 3]
            assert sorted(heard[-1]) == ["1", "2", "3"] and heard[1] == heard[2][:2] and heard[0] == heard[2][:1]

    run(scene(), timeout=30)


async def refused(talk: Talk, url: str, text: str, way: str) -> bool:
    """Whether it may not be said now, and is told when to come back."""
    if way == "socket":
        async with socket(talk.home, url) as connection:
            await connection.send(json.dumps({"type": "response.create", **talk.fields, "input": text}))
            (told,) = await turn(connection)
            return bool(told["status"] == 409 and told["error"]["code"] == "conflict")
    answer = await talk.say(text, **({} if way == "whole" else {way: True}))
    if answer.status != 409:
        return False
    assert answer.error["code"] == "conflict" and int(answer.headers["retry-after"]) > 0
    return True


@requirement("R-SESS-5")
@pytest.mark.parametrize("fields", [WAYS[0][0], WAYS[2][0]])
def test_turns_that_wait_for_their_session_are_few_and_do_not_wait_for_ever(
    fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_turns, "WAITING", 1)
    ways = ("whole", "stream", "background", "socket")

    async def scene() -> None:
        gate = asyncio.Event()
        plays = (play(HALF, gate, chunk({}, "stop"), DONE), whole())
        async with upstream(tmp_path, *plays, declared=TALKER) as (home, provider), served(home) as url:
            talk = Talk(home, {**fields}, {})
            first, task = talk.start("1", stream=True)
            await first.until(lambda: b"half" in first.body)
            left, leaving = talk.start("left")
            async with asyncio.timeout(10):
                while not await refused(talk, url, "3", "whole"):
                    pass
            left.hang_up()  # which makes room
            await leaving
            _, waiting = talk.start("2")
            for way in ways:
                assert await refused(talk, url, "3", way)
            other = await Talk(home, {**fields, "user": "bob"}, {}).say("x")
            assert other.status == 200  # other sessions do not wait
            monkeypatch.setattr(session_turns, "WAITING", 2)
            monkeypatch.setattr(session_turns, "PATIENCE_SECONDS", 0.05)
            for way in ways:
                assert await refused(talk, url, "4", way)
            gate.set()
            await asyncio.gather(task, waiting)
            assert users(sent(provider)) == ["1", "2"]
            assert (await talk.say("5")).status == 200
            assert users(sent(provider)) == ["1", "2", "5"]

    run(scene(), timeout=40)


@requirement("R-SESS-5")
def test_of_two_turns_that_go_on_from_one_answer_of_a_session_the_second_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        plays = (whole("b"), play(gate, chunk({"content": "b"}, "stop"), DONE), whole("b"))
        async with upstream(tmp_path, *plays) as (home, provider):
            talk = Talk(home, {"user": "ann"}, {})
            first = (await talk.say("1")).json()
            one, two = (
                asyncio.ensure_future(talk.say(text, previous_response_id=first["id"], stream=True))
                for text in ("2", "3")
            )
            await provider.request(1)
            gate.set()
            assert sorted([(await one).status, (await two).status]) == [200, 409]
            back = await talk.say("4", previous_response_id=first["id"])  # said on purpose, that is another road
            assert back.status == 200 and users(sent(provider)) == ["1", "4"]

    run(scene(), timeout=30)


@requirement("R-SESS-6")
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(("fields", "headers"), [WAYS[0], WAYS[2]])
def test_no_model_is_told_what_was_deleted_and_the_rest_stays(
    which: int, fields: dict[str, Any], headers: dict[str, str], tmp_path: Path
) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, *(whole(text) for text in "ABCDE"), declared=TALKER) as (home, provider):
            talk = Talk(home, fields, headers)
            made = [(await talk.say(text)).json()["id"] for text in "abc"]
            assert (await home.ask(f"/v1/responses/{made[which]}", method="DELETE")).status == 200
            for more in ("d", "e"):
                assert (await talk.say(more)).status == 200
                told = [one["content"] for one in sent(provider)["messages"] if one["role"] != "system"]
                kept = [text for index, text in enumerate("abc") if index != which]
                assert [text for text in told if text.islower()] == [*kept, "d", "e"][: 2 + "de".index(more) + 1]
                assert "abc"[which].upper() not in told
        async with again(tmp_path) as home:
            gone = await home.get(f"/v1/responses/{made[which]}")
            assert gone.status == 404

    run(scene(), timeout=40)


@requirement("R-SESS-6")
def test_a_chain_with_a_deleted_or_expired_answer_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home, served(home) as url, socket(home, url) as connection:
            first = await home.respond("a")
            second = await home.respond("b", previous_response_id=first["id"])
            message = {
                "type": "response.create",
                "model": "openclaw",
                "input": "c",
                "previous_response_id": second["id"],
            }
            await connection.send(json.dumps(message))
            third = (await turn(connection))[-1]["response"]
            assert (await home.ask(f"/v1/responses/{first['id']}", method="DELETE")).status == 200
            for known in (first, second, third):
                body = {"model": "openclaw", "input": "x", "previous_response_id": known["id"]}
                refused = await home.ask("/v1/responses", body)
                assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")
                await connection.send(json.dumps({"type": "response.create", **body}))
                assert (await turn(connection))[-1]["error"]["code"] == "previous_response_not_found"

    run(scene(), timeout=30)


@requirement("R-SESS-6")
def test_a_background_answer_that_is_deleted_stays_deleted(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        async with upstream(tmp_path, play(HALF, gate, chunk({}, "stop"), DONE), whole()) as (home, provider):
            talk = Talk(home, {"user": "ann"}, {})
            made = (await talk.say("a", background=True)).json()
            await provider.request(0)
            path = f"/v1/responses/{made['id']}"
            assert (await home.ask(path, method="DELETE")).status == 200
            gate.set()
            while home.service.gateway.active:
                await asyncio.sleep(0.01)
            assert (await home.get(path)).status == 404
            assert (await talk.say("b")).status == 200
            assert users(sent(provider)) == ["b"]

    run(scene(), timeout=30)


@requirement("R-SESS-7")
@pytest.mark.parametrize("other", ["agent:main:desk", "AGENT:MAIN:desk", "agent:helper:desk", "Desk"])
def test_a_session_is_the_same_with_and_without_its_agent_in_the_key(other: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for text, key in (("1", "desk"), ("2", other)):
                await home.ask(
                    "/v1/responses",
                    {"model": "openclaw", "input": text},
                    headers={"x-openclaw-session-key": key},
                )
            same = other.lower() == "agent:main:desk"
            assert users(sent(provider)) == (["1", "2"] if same else ["2"])

    run(scene(), timeout=20)


@requirement("R-WS-6")
@pytest.mark.parametrize("waits_for", ["its provider", "its session"])
def test_a_socket_with_too_many_messages_waiting_is_told_and_asked_to_come_back(tmp_path: Path, waits_for: str) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        create = {"type": "response.create", "model": "openclaw", "input": "a", "user": "ann"}
        async with (
            upstream(tmp_path, play(HALF, gate)) as (home, provider),
            served(home) as url,
            AsyncExitStack() as all,
        ):
            if waits_for == "its session":
                other = await all.enter_async_context(socket(home, url))
                await other.send(json.dumps(create))
                await provider.request(0)
            connection = await all.enter_async_context(socket(home, url))
            for _ in range(45):
                await connection.send(json.dumps(create))
            said = [json.loads(message) async for message in _all(connection)]
            assert said[-1]["type"] == "error" and said[-1]["status"] == 429
            assert connection.close_code == 1013
            assert len(provider.requests) <= 1

    run(scene(), timeout=20)


async def _all(connection: Any) -> Any:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            yield await connection.recv()
    except ConnectionClosed:
        return


@requirement("R-SESS-1", "R-STORE-3")
def test_all_keys_of_a_user_share_sessions_and_answers_and_nobody_else_does(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, *[whole("hello")] * 6) as (home, provider):
            mine = []
            for name in ("one", "two"):
                made = await home.ask("/api/v1/api-keys", {"name": name}, token=home.secrets.api_key)
                mine.append(made.json()["data"]["token"])
            said = {"model": "openclaw", "user": "ann"}
            first = (await home.ask("/v1/responses", {**said, "input": "I am Ada"}, token=mine[0])).json()
            await home.ask("/v1/responses", {**said, "input": "who am I?"}, token=mine[1])
            assert users(sent(provider)) == ["I am Ada", "who am I?"]
            onward = {"model": "openclaw", "input": "and now?", "previous_response_id": first["id"]}
            assert (await home.ask("/v1/responses", onward, token=mine[1])).status == 200
            # The operator, whose token is another identity, has sessions and answers of its own.
            await home.ask("/v1/responses", {**said, "input": "who am I?"})
            assert users(sent(provider)) == ["who am I?"]
            assert (await home.ask("/v1/responses", onward)).status in (400, 404)

    run(scene())
