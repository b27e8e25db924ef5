"""A message and the turn that it opens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.core.catalogue import UserSpec
from crocevia.storage import users
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import THREE, Theatre, Watcher, play

HELLO: dict[str, Any] = {
    "main": [
        {"when": {"contains": "slow"}, "say": [{"delay_ms": 30_000}, {"text": "late"}]},
        {"say": [{"reasoning": "Let me see. "}, {"text": "Hello to you."}]},
    ]
}
ORDER = [
    "turn.started",
    "agent.started",
    "chat.title.updated",
    "agent.reasoning.delta",
    "agent.text.delta",
    "agent.reasoning.done",
    "agent.text.done",
    "agent.done",
    "turn.completed",
]


def first_of_each(watcher: Watcher) -> list[str]:
    return list(dict.fromkeys(watcher.types))


@requirement("T-MSG-1", "T-EVT-1", "T-EVT-2")
@pytest.mark.parametrize("version", [2, 3])
def test_a_message_opens_a_turn_whose_events_come_in_order(version: int) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat, version=version)
        reply = await place.post(chat, "messages", {"message": "hi"}, version=version)
        assert reply.status == 202 and reply.json["status"] == "accepted"
        done = await watcher.end()
        assert sorted(first_of_each(watcher)) == sorted(ORDER)
        for earlier, later in (
            ("turn.started", "agent.started"),
            ("agent.started", "chat.title.updated"),
            ("chat.title.updated", "agent.text.delta"),
            ("agent.text.done", "agent.done"),
        ):
            assert watcher.types.index(earlier) < watcher.types.index(later)
        assert watcher.types[-2:] == ["agent.done", "turn.completed"]
        assert {event["turn_id"] for event in watcher.events} == {reply.json["turn_id"]}
        assert watcher.text("main") == watcher.all("agent.text.done")[0]["data"]["text"] == "Hello to you."
        usage = done["data"]["usage"]
        assert done["data"]["cost"] == usage["cost_usd"] == 0
        own = watcher.all("agent.done")[0]["data"]["usage"]
        assert usage["input_tokens"] > own["input_tokens"]  # the title's call is the turn's, not the agent's
        row = await completion(place, chat, reply.json["turn_id"])
        assert row["status"] == "succeeded" and row["finish_reason"] == "stop"
        assert row["terminal_snapshot"]["event_id"] == done["id"]
        assert row["terminal_snapshot"]["data"]["usage"]["input_tokens"] == usage["input_tokens"]
        assert row["model_orchestrator"] == "m-main"

    play(HELLO, work)


async def completion(place: Theatre, chat: str, turn_id: str) -> dict[str, Any]:
    path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/completions/{turn_id}"
    reply = await place.call("GET", path, headers=THREE)
    assert reply.status == 200, reply.raw
    found: dict[str, Any] = reply.data
    return found


@requirement("T-EVT-3", "T-SSE-2")
def test_the_stream_stays_open_and_the_chats_totals_leave_the_time_between_turns_out() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        ends = [(await watcher.end(await place.say(chat, "hi")))["data"] for _ in range(3)]
        for key in ("input_tokens", "output_tokens", "duration_ms"):
            assert ends[-1]["chat_usage"][key] == sum(end["usage"][key] for end in ends)
        assert watcher.types.count("chat.title.updated") == 1
        assert [event["seq"] for event in watcher.events] == list(range(1, len(watcher.events) + 1))

    play(HELLO, work)


@requirement("T-MSG-2")
def test_one_turn_at_a_time_per_chat_and_any_number_of_chats() -> None:
    async def work(place: Theatre) -> None:
        chat, other = await place.chat(), await place.chat()
        turn = await place.say(chat, "slow")
        for version in (2, 3):
            refused = await place.post(chat, "messages", {"message": "hi"}, version=version)
            assert refused.status == 409
            assert refused.json["error"]["code"] == "turn_in_progress"
            assert refused.json["error"]["details"] == {"turn_id": turn, "waiting_for": "nothing"}
        watcher = await place.watch(other)
        await watcher.end(await place.say(other, "hi"))
        accepted = await asyncio.gather(*(place.post(other, "messages", {"message": "hi"}) for _ in range(8)))
        assert sorted(reply.status for reply in accepted)[:2] == [202, 409]

    play(HELLO, work)


@requirement("T-MSG-3")
def test_the_same_key_gives_the_same_turn_at_any_time() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        ask = {"message": "slow", "attachment_ids": []}
        first = await place.post(chat, "messages", ask, Idempotency_Key="k1")
        again = await place.post(chat, "messages", ask, Idempotency_Key="k1")
        assert first.status == again.status == 202 and first.json == again.json
        other = await place.post(chat, "messages", {"message": "another"}, Idempotency_Key="k1")
        assert (other.status, other.json["error"]["code"]) == (409, "idempotency_conflict")
        await place.post(chat, "cancel")
        await watcher.end(first.json["turn_id"])
        await place.reopen()
        later = await place.post(chat, "messages", ask, Idempotency_Key="k1")
        assert later.json == first.json
        other = await place.post(chat, "messages", {"message": "another"}, Idempotency_Key="k1")
        assert (other.status, other.json["error"]["code"]) == (409, "idempotency_conflict")
        fresh = await place.post(chat, "messages", {"message": "hi"}, Idempotency_Key="k2")
        assert fresh.status == 202 and fresh.json["turn_id"] != first.json["turn_id"]
        both = await place.post(await place.chat(), "messages", ask, Idempotency_Key="k1")
        assert both.status == 202 and both.json["turn_id"] != first.json["turn_id"]  # a key is its chat's

    play(HELLO, work)


@requirement("T-MSG-3")
def test_a_flood_of_one_key_opens_one_turn() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        replies = await asyncio.gather(
            *(place.post(chat, "messages", {"message": "slow"}, Idempotency_Key="k") for _ in range(20))
        )
        assert {reply.status for reply in replies} == {202}
        assert len({reply.json["turn_id"] for reply in replies}) == 1

    play(HELLO, work)


@requirement("T-MSG-1")
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({}, {}, 422),
        ({"message": ""}, {}, 422),
        ({"message": 1}, {}, 422),
        ({"message": "a", "attachment_ids": ["x", "x"]}, {}, 422),
        ({"message": "a", "attachment_ids": ["x"]}, {}, 422),
        ({"message": "a", "attachment_ids": ["x"]}, {"Idempotency_Key": "k"}, 422),
        ({"message": "a", "attachment_ids": [str(n) for n in range(11)]}, {}, 422),
        ({"message": "a"}, {"Idempotency_Key": "k" * 256}, 422),
        ({"message": "a"}, {"Idempotency_Key": "with space"}, 422),
        (b"{", {}, 422),
        (b"\xff", {}, 422),
        (b"[]", {}, 422),
    ],
)
def test_what_is_no_message_opens_no_turn(body: Any, headers: dict[str, str], status: int) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        refused = await place.post(chat, "messages", body, **headers)
        assert refused.status == status, refused.raw
        watcher = await place.watch(chat)
        await watcher.pinged()
        assert watcher.events == []

    play(HELLO, work)


@requirement("T-MSG-4")
def test_a_chat_whose_team_is_gone_says_so() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()

        def hide(tx: Any) -> None:
            tx.connection.execute(
                "INSERT INTO users (id, name, role, created_at, updated_at)"
                " SELECT 'usr_x', name, role, created_at, updated_at FROM users LIMIT 1"
            )
            tx.connection.execute("UPDATE teams SET user_id = 'usr_x' WHERE name = 'cast'")

        await place.service.database.write(hide)
        refused = await place.post(chat, "messages", {"message": "hi"})
        assert (refused.status, refused.json["error"]["code"]) == (409, "team_unavailable")
        watcher = await place.watch(chat)
        await watcher.pinged()
        assert watcher.events == []

    play(HELLO, work)


@requirement("T-MSG-1")
@pytest.mark.parametrize("why", ["hourly limit", "provider"])
def test_what_is_known_to_fail_until_much_later_fails_at_once(why: str) -> None:
    refusing = {"main": [{"say": [{"error": "overloaded", "retry_after": 3600}]}]}

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        if why == "hourly limit":
            bounds = UserSpec(name="operator", hourly_limit=1)
            await place.service.database.write(lambda tx: users.set_allowance(tx, place.made.user_id, bounds, 0.0))
            await place.reopen()
        watcher = await place.watch(chat)
        first = await watcher.end(await place.say(chat, "hi"))  # it tried again after 20 seconds
        if why == "hourly limit":
            assert first["type"] == "turn.completed"
            first = await watcher.end(await place.say(chat, "hi"))  # it tried again after 20 seconds
        assert first["type"] == "turn.failed"
        assert watcher.types.count("agent.started") == watcher.types.count("turn.started")

    play(HELLO if why == "hourly limit" else refusing, work, timeout=60)
