"""A chat's stream: cursors, versions, what it says of itself, and when it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crocevia.core.catalogue import Prices
from crocevia.core.turn import entries as e
from crocevia.doors.atp.capabilities import CAPABILITIES_2, CAPABILITIES_3
from crocevia.doors.atp.events import DATA, EVENT_TYPES, NOT_EMITTED
from tests.contract.requirements import requirement
from tests.doors.atp.schema import check_event
from tests.runtime.turns.theatre import THREE, VERSION, Theatre, play, tool

HELLO: dict[str, Any] = {"main": [{"say": [{"text": "Hello to you."}]}]}


@requirement("T-SSE-1")
@pytest.mark.parametrize("version", [2, 3])
def test_a_stream_replays_pings_at_once_and_writes_one_data_line_per_event(version: int) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        empty = await place.watch(chat, version=version)
        await empty.pinged(timeout=1)
        assert empty.events == []
        await empty.end(await place.say(chat, "hi", version=version))
        late = await place.watch(chat, version=version)
        await late.pinged(timeout=1)
        assert late.events == empty.events
        for frame in bytes(late.raw).decode().split("\n\n")[:-1]:
            assert [line for line in frame.split("\n") if not line.startswith("id: ")] == [
                line for line in frame.split("\n") if line.startswith("data: {")
            ]
        assert "[DONE]" not in late.raw.decode()
        assert late.headers["content-type"].startswith("text/event-stream")
        assert late.headers["cache-control"] == "no-cache, no-transform"
        assert late.headers["x-accel-buffering"] == "no"
        assert late.headers[VERSION] == str(version)
        assert "content-encoding" not in late.headers

    play(HELLO, work)


@requirement("T-SSE-2")
def test_a_cursor_gives_exactly_what_follows() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        whole = await place.watch(chat)
        await whole.end(await place.say(chat, "hi"))
        epoch = whole.headers["x-envai-stream-epoch"]
        for after in range(len(whole.events) + 1):
            part = await place.watch(chat, after)
            await part.pinged()
            assert part.events == whole.events[after:]
        for last in (f"{epoch}:3", "3"):
            part = await place.watch(chat, None, headers={"last-event-id": last})
            await part.pinged()
            assert part.events == whole.events[3:]
        for after, last, begins in (
            (2, "5", 5),  # a browser that comes back repeats its first address
            (2, f"{epoch}:5", 5),
            (2, "0:5", 2),  # of another epoch
            (5, "2", 5),
            (2, "nonsense", 2),
        ):
            part = await place.watch(chat, after, headers={"last-event-id": last}, query=f"&epoch={epoch}")
            await part.pinged()
            assert part.events == whole.events[begins:]
        for odd in ("evt_01m8qv4ah59pqdw5wd8d1tv8nh", "nonsense", f"{epoch}:x", "-1"):
            refused = await place.watch(chat, None, headers={"last-event-id": odd})
            assert (refused.status, json.loads(refused.raw)["error"]["type"]) == (400, "invalid_request")
        await place.reopen()
        part = await place.watch(chat, 4, query=f"&epoch={epoch}")
        await part.pinged()
        assert part.events == whole.events[4:]  # numbering goes on through a restart
        assert part.headers["x-envai-stream-last-seq"] == str(len(whole.events))

    play(HELLO, work)


@requirement("T-SSE-3")
@pytest.mark.parametrize(
    ("after", "query", "reason"),
    [(99, "", "ahead"), (0, "&epoch=another", "epoch_changed"), (1, "&epoch=x", "epoch_changed")],
)
def test_a_cursor_that_cannot_be_resumed_is_a_conflict(after: int, query: str, reason: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        whole = await place.watch(chat)
        await whole.end(await place.say(chat, "hi"))
        refused = await place.watch(chat, after, query=query)
        error = json.loads(refused.raw)["error"]
        assert (refused.status, error["code"], error["details"]["reason"]) == (409, "cursor_expired", reason)
        assert error["details"]["epoch"] == whole.headers["x-envai-stream-epoch"]
        assert (error["details"]["first_seq"], error["details"]["last_seq"]) == (1, len(whole.events))

    play(HELLO, work)


@requirement("T-SSE-2")
@pytest.mark.parametrize("after", ["-1", "x", "", "1.0", "9" * 30, "%D9%A1"])
def test_a_cursor_that_is_no_number_is_an_invalid_request(after: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        for prefix, headers in (("/api/v1/atp/v3", THREE), ("/api/v1", {})):
            refused = await place.call("GET", f"{prefix}/chats/{chat}/events?after={after}", headers=headers)
            assert (refused.status, refused.json["error"]["type"]) == (400, "invalid_request")
        twice = await place.call("GET", f"/api/v1/chats/{chat}/events?after=1&after=2")
        assert twice.status == 400

    play(HELLO, work)


@requirement("T-SSE-4")
def test_both_versions_show_the_same_events_of_every_turn() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        two, three = await place.watch(chat, version=2), await place.watch(chat, version=3)
        for version in (2, 3):
            turn = await place.say(chat, "hi", version=version)
            await two.end(turn)
            await three.end(turn)
        assert two.types == three.types
        for left, right in zip(two.events, three.events, strict=True):
            assert {**left, "v": 3} == {**right, "data": {k: v for k, v in right["data"].items() if k != "billing"}}

    play(HELLO, work)


@requirement("T-SSE-5")
def test_the_header_selects_live_snapshot_or_upgrade_on_the_paths_of_version_2() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        whole = await place.watch(chat)
        await whole.end(await place.say(chat, "hi"))
        path = f"/api/v1/chats/{chat}/events"
        snapshot = await place.watch(chat, version=2, headers={VERSION: "2"})
        await snapshot.until("turn.completed")
        assert snapshot.headers[VERSION] == "2"
        while not snapshot.ended:
            await snapshot._news.wait()
            snapshot._news.clear()
        assert snapshot.pings == 0 and snapshot.types == whole.types
        rest = await place.watch(chat, len(whole.events), version=2, headers={VERSION: "2"})
        assert rest.status == 200 and rest.events == []
        upgrade = await place.call("GET", path, headers=THREE)
        assert (upgrade.status, upgrade.header("x-envai-required-contract-version")) == (426, "3")
        for headers, status in (({VERSION: "2"}, 426), (THREE, 426), ({VERSION: "4"}, 400)):
            for what in ("messages", "cancel", "steer", "tool-output", "approval", "fork", "restore"):
                refused = await place.call("POST", f"/api/v1/chats/{chat}/{what}", {"message": "x"}, headers)
                assert refused.status == status, what
        for headers, status in (({}, 426), ({VERSION: "2"}, 426), ({VERSION: "1"}, 400)):
            refused = await place.call("GET", f"/api/v1/atp/v3/chats/{chat}/events", headers=headers)
            assert refused.status == status
        again = await place.watch(chat)
        await again.pinged()
        assert again.types == whole.types  # nothing that was refused did anything

    play(HELLO, work)


@requirement("T-SSE-5")
def test_a_snapshot_with_a_cost_that_nobody_knows_is_refused_whole() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await watcher.end(await place.say(chat, "hi"))

        def unknown(tx: Any) -> None:
            rows = tx.connection.execute("SELECT seq, sub, body FROM journal").fetchall()
            for seq, sub, body in rows:
                entry = e.decode(body)
                if isinstance(entry, e.TurnCompleted):
                    spent = e.encode(entry).replace(b'"cost_usd":0.0', b'"cost_usd":null')
                    tx.connection.execute("UPDATE journal SET body = ? WHERE seq = ? AND sub = ?", (spent, seq, sub))

        await place.service.database.write(unknown)
        await place.reopen()
        live = await place.watch(chat, version=2)
        assert (await live.end())["data"]["cost"] is None
        refused = await place.watch(chat, version=2, headers={VERSION: "2"})
        assert refused.status == 426
        part = await place.watch(chat, len(live.events), version=2, headers={VERSION: "2"})
        assert part.status == 200

    play(HELLO, work)


@requirement("T-SSE-5")
def test_a_provider_that_refuses_has_cost_nothing_and_the_snapshot_says_so() -> None:
    known = ("overloaded", "failed", "refused", "rejected")
    script = {
        "main": [
            *({"when": {"contains": error}, "say": [{"error": error}]} for error in (*known, "timeout")),
            {"say": [{"text": "Hi."}]},
        ]
    }

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        for error in known:
            end = await watcher.end(await place.say(chat, error))
            assert (end["type"], end["data"]["cost"], end["data"]["chat_cost"]) == ("turn.failed", 0.0, 0.0), error
        end = await watcher.end(await place.say(chat, "hi"))
        assert end["data"]["cost"] > 0 and end["data"]["chat_cost"] == end["data"]["cost"]
        assert (await place.watch(chat, version=2, headers={VERSION: "2"})).status == 200
        end = await watcher.end(await place.say(chat, "timeout"))  # it may have answered, and nobody heard it
        assert end["data"]["cost"] is None
        assert (await place.watch(chat, version=2, headers={VERSION: "2"})).status == 426

    play(script, work, prices=Prices(input=1.0, output=1.0))


@requirement("T-SSE-5")
def test_a_snapshot_does_not_mind_what_tools_say_of_costs() -> None:
    said = {"cost": None, "usage": {"cost_usd": None}, "chat_usage": {"cost_usd": None}}
    script = {
        "main": [
            {"when": {"after_tool": True}, "say": [{"text": "ok"}]},
            {"say": [{"tool": "write", "arguments": said}]},
        ]
    }

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await watcher.end(await place.say(chat, 'what is "cost":null and "cost_usd":null?'))
        whole = await place.watch(chat, version=2, headers={VERSION: "2"})
        await whole.until("turn.completed")
        assert whole.status == 200 and b'"cost":null' in whole.raw

    play(script, work, agents={"main": {"tools_enabled": tool("write")}})


@requirement("T-CAP-1")
def test_capabilities_are_what_is_emitted_and_what_both_clients_take() -> None:
    async def work(place: Theatre) -> None:
        two = await place.call("GET", "/api/v1/capabilities")
        old = await place.call("GET", "/api/v1/capabilities", headers={VERSION: "2"})
        three = await place.call("GET", "/api/v1/atp/v3/capabilities", headers=THREE)
        assert two.json == old.json and two.header(VERSION) == "2" and three.header(VERSION) == "3"
        assert two.json["families"] == ["turn", "agent"] and two.json["protocol_version"] == 2
        assert three.json["families"] == ["turn", "agent", "chat"]
        assert three.json["supported_contract_versions"] == [2, 3]
        assert three.json["legacy_v2_mode"] == "historical_reads_replay_only"
        assert two.json["tool_kinds"] == three.json["tool_kinds"] == ["server", "client", "knowledge"]
        assert two.json["event_types"] == three.json["event_types"] == list(EVENT_TYPES)

    play(HELLO, work)
    assert set(DATA) == e.PUBLIC
    assert {e.type_of(kind) for kind in set(DATA) - set(NOT_EMITTED)} | {"ping"} == set(EVENT_TYPES)
    assert CAPABILITIES_2.event_types == CAPABILITIES_3.event_types


@requirement("T-KEY-1")
def test_a_revoked_key_ends_its_open_streams_and_no_others() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        made = await place.call("POST", "/api/v1/api-keys", {"name": "second"})
        mine = await place.watch(chat)
        theirs = await place.watch(chat, headers={"authorization": f"Bearer {made.data['token']}"})
        await theirs.pinged()
        await place.call("DELETE", f"/api/v1/api-keys/{made.data['id']}")
        while not theirs.ended:
            await theirs._news.wait()
            theirs._news.clear()
        await mine.end(await place.say(chat, "hi"))
        assert theirs.events == []

    play(HELLO, work)


@requirement("T-SSE-2")
def test_somebody_elses_chat_is_not_there() -> None:
    async def work(place: Theatre) -> None:
        chat = "cht_01j5abcdefghjkmnpqrstvwxyz"
        for version in (2, 3):
            refused = await place.watch(chat, version=version)
            assert refused.status == 404 and refused.headers[VERSION] == str(version)
            for what, body in (
                ("messages", {"message": "x"}),
                ("cancel", None),
                ("steer", {"text": "x"}),
                ("tool-output", {"call_id": "tc_x", "output": "x"}),
                ("tool-claim", {"call_id": "tc_x", "holder": "x"}),
                ("approval", {"approval_id": "apr_x", "approve": True}),
                ("fork", {"destination_chat_id": chat}),
                ("restore", {"orchestrator_context": [{"kind": "compacted", "content": "x"}]}),
            ):
                reply = await place.post(chat, what, body, version=version)
                assert (reply.status, reply.json["error"]["type"]) == (404, "not_found"), what
                assert reply.header(VERSION) == str(version)

    play(HELLO, work)


@requirement("T-SSE-1")
def test_the_schema_that_events_are_held_against_refuses_what_is_wrong() -> None:
    event = {
        "v": 3,
        "id": "evt_01j5abcdefghjkmnpqrstvwxyz",
        "seq": 0,
        "ts": "2026-08-17T14:00:00Z",
        "chat_id": "cht_01j5abcdefghjkmnpqrstvwxyz",
        "turn_id": None,
        "agent": None,
        "type": "ping",
        "data": {},
    }
    check_event(event, 3)
    for wrong in ({"data": {"x": 1}}, {"seq": -1}, {"type": "agent.done"}, {"v": 2}):
        with pytest.raises(AssertionError):
            check_event(event | wrong, 3)
