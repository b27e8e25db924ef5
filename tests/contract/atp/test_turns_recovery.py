"""Restarts, drains, and histories that cannot be read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.config import Settings, TurnsSettings
from tests.contract.atp.test_turns_team import SLOW, TEAM, check_order
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import THREE, Theatre, Watcher, play, tool

SPEAKS: dict[str, Any] = {
    "main": [
        {"when": {"contains": "slow"}, "say": [SLOW]},
        {"when": {"after_tool": True}, "say": [{"text": "It was {tool_result}"}]},
        {"when": {"contains": "ask"}, "say": [{"tool": "phone"}]},
        {"say": [{"text": "Hello."}]},
    ]
}
FAIL = Settings(turns=TurnsSettings(on_restart="fail"))


@requirement("T-REC-1")
def test_a_turn_that_lost_its_server_goes_on_and_takes_back_what_it_said() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "slow")
        await watcher.until("agent.text.delta")
        before = list(watcher.events)
        await place.reopen()
        watcher = await place.watch(chat)
        end = await watcher.end(turn)
        assert end["type"] == "turn.completed" and watcher.events[: len(before)] == before
        reset = watcher.types.index("agent.text.reset")
        said = "".join(
            event["data"]["delta"] for event in watcher.events[reset:] if event["type"] == "agent.text.delta"
        )
        assert said == watcher.all("agent.text.done")[0]["data"]["text"] == SLOW["text"]
        check_order(watcher)

    play(SPEAKS, work)


@requirement("T-REC-1")
def test_an_operator_may_prefer_an_honest_failure() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        turn = await place.say(chat, "slow")
        await place.reopen()
        watcher = await place.watch(chat)
        end = await watcher.end(turn)
        assert (end["type"], end["data"]["code"]) == ("turn.failed", "interrupted")
        check_order(watcher)
        assert (await watcher.end(await place.say(chat, "hi")))["type"] == "turn.completed"

    play(SPEAKS, work, settings=FAIL)


@requirement("T-REC-1")
@pytest.mark.parametrize("message", ["both", "background", "never"])
def test_members_go_on_too(message: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, message)
        await watcher.until(lambda event: event["type"] == "agent.started" and event["agent"]["role"] == "member")
        for _ in range(2):
            await place.reopen()
        if message == "never":
            assert (await place.post(chat, "cancel")).status == 202
        watcher = await place.watch(chat)
        end = await watcher.end(turn)
        assert end["type"] == ("turn.cancelled" if message == "never" else "turn.completed")
        check_order(watcher)

    play(TEAM, work)


@requirement("T-REC-1")
def test_a_client_tool_goes_on_waiting_and_is_not_asked_for_twice() -> None:
    async def work(place: Theatre) -> None:
        await place.call("POST", "/api/v1/tools", {"name": "phone", "parameters": {"type": "object"}})
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "ask")
        request = await watcher.until("agent.tool.request")
        await place.reopen()
        answer = {"call_id": request["data"]["call_id"], "output": "answered"}
        assert (await place.post(chat, "tool-output", answer)).status == 204
        watcher = await place.watch(chat)
        await watcher.end(turn)
        assert watcher.all("agent.tool.request") == [request]
        assert watcher.text("main") == "It was answered"

    play(SPEAKS, work, agents={"main": {"external_tools_enabled": tool("phone")}})


@requirement("T-REC-1")
def test_a_cancel_that_was_accepted_before_the_end_is_done_before_anything_else() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "slow")
        await watcher.until("agent.text.delta")
        log, at = place.service.turns._log, len(watcher.events)
        await place.service.turns._supervisor.close()  # the process is gone for this turn; its command came in time
        await log.put_command(chat, "cancel", turn, b"user", 1, turn=turn)
        await place.reopen()
        watcher = await place.watch(chat)
        assert (await watcher.end(turn))["type"] == "turn.cancelled"
        assert "agent.text.delta" not in watcher.types[at + 2 :]

    play(SPEAKS, work)


@requirement("T-REC-2")
def test_a_history_that_cannot_be_read_is_never_an_empty_one() -> None:
    async def work(place: Theatre) -> None:
        broken, well = await place.chat(), await place.chat()
        for chat in (broken, well):
            watcher = await place.watch(chat)
            await watcher.end(await place.say(chat, "hi"))
        head = len(watcher.events)

        def damage(tx: Any) -> None:
            tx.connection.execute(
                "UPDATE journal SET body = ? WHERE seq = 1 AND log = (SELECT id FROM chat_logs WHERE chat = ?)",
                (b'{"type":"turn.started"', broken),
            )

        await place.service.database.write(damage)
        await place.reopen()
        empty = await place.chat()
        for what, body in (
            ("messages", {"message": "hi"}),
            ("fork", {"destination_chat_id": empty}),
        ):
            refused = await place.post(broken, what, body)
            assert (refused.status, refused.json["error"]["code"]) == (503, "context_unavailable"), what
        rest = await place.watch(broken, 2)
        await rest.pinged()
        assert len(rest.events) == head - 2  # nothing was added
        assert (await place.post(well, "messages", {"message": "hi"})).status == 202

    play(SPEAKS, work)


@requirement("T-REC-2")
@pytest.mark.parametrize("where", ["an entry of an ended turn", "the end of a turn", "a private entry", "an open turn"])
def test_a_chat_that_cannot_be_read_is_restored_and_goes_on(where: str) -> None:
    context = {"orchestrator_context": [{"kind": "compacted", "content": "we spoke of pears"}]}
    which = {
        "an entry of an ended turn": "seq = 1 AND sub = 0",
        "the end of a turn": "seq = (SELECT max(seq) FROM journal) AND sub = 0",
        "a private entry": "sub = 1",
        "an open turn": "seq = (SELECT max(seq) FROM journal) AND sub = 0",
    }[where]

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "hi")
        await watcher.end(turn)
        if where == "an open turn":
            turn = await place.say(chat, "slow")
            await watcher.until(lambda event: event["type"] == "agent.text.delta" and event["turn_id"] == turn)
            await place.service.turns._supervisor.close()
        damage = f"UPDATE journal SET body = CAST('{{\"type\":' AS BLOB) WHERE {which}"  # no input of anybody
        await place.service.database.write(lambda tx: tx.connection.execute(damage))
        await place.reopen()
        assert (await place.post(chat, "messages", {"message": "hi"})).status == 503
        assert (await place.post(chat, "restore", context)).status == 200
        for _ in range(2):
            after = len(watcher.events) + (where == "an open turn")
            events = await place.watch(chat, after)
            end = await events.end(await place.say(chat, "what was it?"))
            assert end["type"] == "turn.completed"
            known = where in ("an entry of an ended turn", "a private entry")
            assert end["data"]["chat_cost"] == (0.0 if known else None)
            await place.reopen()
        path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/completions/{turn}"
        found = (await place.call("GET", path, headers=THREE)).data
        assert found["status"] == ("failed" if where == "an open turn" else "succeeded")

    play(SPEAKS, work, clean=where != "an open turn")


@requirement("T-REC-2")
def test_an_open_turn_that_cannot_be_read_keeps_the_server_from_nothing() -> None:
    async def work(place: Theatre) -> None:
        broken = await place.chat()
        await place.say(broken, "slow")
        await place.service.database.write(
            lambda tx: tx.connection.execute("UPDATE journal SET body = ? WHERE seq = 2", (b"{}",))
        )
        await place.reopen()
        assert place.log.errors and place.log.errors[0][1]["at"] == "resume"
        assert (await place.post(broken, "messages", {"message": "hi"})).status == 503
        assert (await place.post(await place.chat(), "messages", {"message": "hi"})).status == 202

    play(SPEAKS, work, clean=False)


@requirement("T-DRN-1")
def test_a_drain_opens_no_turn_and_lets_everything_else_go_on() -> None:
    async def work(place: Theatre) -> None:
        await place.call("POST", "/api/v1/tools", {"name": "phone", "parameters": {"type": "object"}})
        busy, waiting, idle = await place.chat(), await place.chat(), await place.chat()
        speaking, asking = await place.watch(busy), await place.watch(waiting)
        await place.say(busy, "slow")
        await place.say(waiting, "ask")
        call = (await asking.until("agent.tool.request"))["data"]["call_id"]
        place.service.gateway.drain(8)
        place.service.turns.drain(8)
        for version in (2, 3):
            refused = await place.post(idle, "messages", {"message": "hi"}, version=version)
            assert (refused.status, refused.json["error"]["code"]) == (503, "gateway_draining")
            assert refused.json["error"]["type"] == "server_error"
        assert (await place.call("GET", "/api/v1/capabilities")).status == 200
        assert (await place.call("GET", "/api/v1/up")).status == 200
        late = await place.watch(idle)
        await late.pinged()
        assert (await place.post(waiting, "tool-output", {"call_id": call, "output": "x"})).status == 204
        assert (await asking.end())["type"] == "turn.completed"
        assert (await speaking.end())["type"] == "turn.completed"
        await over(speaking)
        await over(late)

    play(SPEAKS, work, agents={"main": {"external_tools_enabled": tool("phone")}})


async def over(watcher: Watcher) -> None:
    async with asyncio.timeout(5):
        while not watcher.ended:
            watcher._news.clear()
            await watcher._news.wait()


@requirement("T-DRN-1")
def test_what_a_drain_cuts_goes_on_in_the_next_process() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "slow")
        await watcher.until("agent.text.delta")
        place.service.gateway.drain(0)
        place.service.turns.drain(0)
        await over(watcher)
        assert not [kind for kind in watcher.types if kind.startswith("turn.") and kind != "turn.started"]
        await place.reopen()
        watcher = await place.watch(chat)
        assert (await watcher.end(turn))["type"] == "turn.completed"

    play(SPEAKS, work)


@requirement("T-REC-1")
def test_an_agent_that_left_the_team_meanwhile_fails_in_plain_words() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "never")
        await watcher.until(lambda event: event["type"] == "agent.started" and event["agent"]["role"] == "member")
        listed = (await place.call("GET", "/api/v1/agents")).data
        which = next(item["id"] for item in listed if item["name"] == "sleeper")
        assert (await place.call("DELETE", f"/api/v1/agents/{which}")).status == 204
        await place.reopen()
        watcher = await place.watch(chat)
        assert (await watcher.end(turn))["type"] == "turn.completed"
        assert watcher.all("agent.failed")[0]["data"]["code"] == "agent_unavailable"
        check_order(watcher)

    play(TEAM, work)


@requirement("T-REC-1")
def test_a_fault_of_our_own_ends_the_turn_and_says_so() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)

        def broken(*_: Any) -> None:
            raise RuntimeError("private words")

        place.service.gateway.open_model = broken  # type: ignore[method-assign,assignment]
        turn = await place.say(chat, "hi")
        end = await watcher.end(turn)
        assert (end["type"], end["data"]["code"]) == ("turn.failed", "internal")
        assert {fields["error"] for _, fields in place.log.errors} == {"RuntimeError"}
        assert "private" not in str(place.log.errors) + bytes(watcher.raw).decode()
        check_order(watcher)

    play(SPEAKS, work, clean=False)
