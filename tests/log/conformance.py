"""What every backend of the log promises. A backend's test module subclasses `LogPromises` and gives `open_log`.

The fixture `open_log` is a function that opens the backend's store as an async context manager; opening it twice
is a restart. Nothing in here knows SQLite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.core.messages import user
from crocevia.core.turn import AgentCard, Plan, Totals, hydrate
from crocevia.core.turn import entries as e
from crocevia.log import Appended, Closed, Created, Duplicate, Fence, Fenced, Log, Repeated, TurnOpen, Unread, once
from tests.aio import run

Opener = Callable[[], AbstractAsyncContextManager[Log]]
AGENT = e.Speaker("ag_1", "main", "orchestrator", None, "m")
CARD = AgentCard(name="main", model="m")


def delta(text: str, turn: str = "t1") -> e.AgentTextDelta:
    return e.AgentTextDelta(turn=turn, at=1, agent=AGENT, delta=text)


def secret(turn: str = "t1") -> e.ModelStarted:
    return e.ModelStarted(turn=turn, at=1, instance="ag_1", step=0, attempt=1)


def opening(turn: str = "t1") -> list[e.Entry]:
    return [
        e.TurnOpened(turn=turn, at=1, plan=Plan(agents=(CARD,))),
        e.TurnStarted(turn=turn, at=1, input=f"hello {turn}"),
        e.AgentStarted(turn=turn, at=1, agent=AGENT),
    ]


def whole_turn(turn: str) -> list[e.Entry]:
    totals = Totals(input_tokens=1)
    return [
        *opening(turn),
        secret(turn),
        e.ModelAnswered(turn=turn, at=2, instance="ag_1", step=0, attempt=1, text=f"answer {turn}"),
        e.TurnClosing(turn=turn, at=3),
        e.TextDone(turn=turn, at=3, agent=AGENT, text=f"answer {turn}"),
        e.AgentDone(turn=turn, at=3, agent=AGENT, status="completed", summary="", usage=totals),
        e.TurnCompleted(turn=turn, at=3, usage=totals, chat_usage=totals, finish_reason="stop"),
    ]


def terminal(turn: str = "t1") -> e.TurnCancelled:
    return e.TurnCancelled(turn=turn, at=9, usage=Totals(), chat_usage=Totals(), reason="user")


def request(call_id: str, deadline: int = 1_000) -> e.ToolRequest:
    return e.ToolRequest(
        turn="t1",
        at=1,
        agent=AGENT,
        call_id=call_id,
        tool_name="email",
        args=msgspec.Raw(b"{}"),
        signature=e.Signature("k", "s"),
        deadline=deadline,
    )


async def owned(log: Log, chat: str = "c1", node: str = "a") -> Fence:
    await log.create(chat)
    fence = await log.acquire(chat, node, 1_000, 0)
    assert fence is not None
    return fence


class LogPromises:
    def test_public_entries_are_numbered_without_holes_across_restarts_and_private_ones_not_at_all(
        self, open_log: Opener
    ) -> None:
        async def scenario() -> None:
            for restart in range(3):
                async with open_log() as log:
                    fence = await owned(log)
                    done = await log.append(fence, [secret(), delta("a"), secret(), secret(), delta("b"), secret()])
                    assert done[:2] == (2 * restart + 1, 2 * restart + 2)
            async with open_log() as log:
                rows = await log.read("c1", 0)
                assert [row.seq for row in rows] == [1, 2, 3, 4, 5, 6]
                assert [e.decode(row.body) for row in rows] == [delta("a"), delta("b")] * 3
                assert [type(entry).__name__ for entry in await log.replay("c1")] == [
                    "ModelStarted", "AgentTextDelta", "ModelStarted", "ModelStarted", "AgentTextDelta", "ModelStarted",
                ] * 3  # fmt: skip
                assert (await log.bounds("c1")).head == 6

        run(scenario())

    def test_reading_is_strictly_after_the_cursor_within_the_limit_and_within_the_chat(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                one, two = await owned(log, "c1"), await owned(log, "c2")
                for i in range(10):
                    await log.append(one, [delta(f"one {i}")])
                    await log.append(two, [delta(f"two {i}")])
                assert [row.seq for row in await log.read("c1", 4, 3)] == [5, 6, 7]
                assert all(b"one" in row.body for row in await log.read("c1", 0))
                assert await log.read("c1", 10) == []
                assert await log.read("nobody", 0) == []

        run(scenario())

    def test_an_append_of_private_entries_alone_has_no_seq(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                done = await log.append(fence, [secret()])
                assert done == Appended(1, 0, done.epoch)
                assert (await log.append(fence, [])).last == 0

        run(scenario())

    def test_the_epoch_is_fixed_at_birth_and_another_for_every_chat(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                first = await log.create("c1")
                assert (await log.create("c2")).epoch != first.epoch
            async with open_log() as log:
                assert await log.create("c1") == first
                assert (first.first, first.head, first.turn) == (1, 0, None)
                with pytest.raises(GatewayError) as error:
                    await log.bounds("nobody")
                assert error.value.code is Code.NOT_FOUND

        run(scenario())

    def test_only_the_newest_owner_writes(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                old = await owned(log, node="a")
                assert await log.acquire("c1", "b", 1_000, 999) is None
                new = await log.acquire("c1", "b", 1_000, 1_000)
                assert new is not None
                with pytest.raises(Fenced):
                    await log.append(old, [delta("zombie")])
                assert not await log.renew(old, 1_000, 1_100)
                await log.release(old)
                assert await log.acquire("c1", "a", 1_000, 1_500) is None
                await log.append(new, [delta("mine")])
                assert await log.renew(new, 5_000, 1_500)
                assert await log.acquire("c1", "a", 1_000, 6_000) is None
                await log.release(new)
                assert await log.acquire("c1", "a", 1_000, 1_500) is not None
                assert [e.decode(row.body) for row in await log.read("c1", 0)] == [delta("mine")]

        run(scenario())

    def test_a_node_takes_over_from_its_own_former_self_at_once(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                old = await owned(log, node="a")
            async with open_log() as log:
                new = await log.acquire("c1", "a", 1_000, 1)
                assert new is not None
                assert new.token > old.token
                with pytest.raises(Fenced):
                    await log.append(old, [delta("zombie")])

        run(scenario())

    def test_effects_commit_with_their_entries_or_not_at_all(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                seen: list[Appended] = []
                await log.append(fence, [delta("a"), delta("b")], [lambda tx, done: seen.append(done)])
                assert seen[0][:2] == (1, 2)

                def fail(tx: Any, done: Appended) -> None:
                    raise KeyError("no")

                with pytest.raises(KeyError):
                    await log.append(fence, [delta("lost")], [fail])
                assert (await log.append(fence, [delta("c")])).first == 3
                assert len(await log.read("c1", 0)) == 3

        run(scenario())

    def test_one_turn_is_open_at_a_time_and_start_up_finds_it(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await owned(log, "idle")
                await log.append(fence, opening("t1"))
                with pytest.raises(TurnOpen):
                    await log.append(fence, opening("t2"))
            async with open_log() as log:
                assert await log.open_turns() == ["c1"]
                fence = await owned(log)
                assert (await log.bounds("c1")).turn == "t1"
                await log.append(fence, [terminal("t1")])
                assert await log.open_turns() == []
                await log.append(fence, opening("t2"))

        run(scenario())

    def test_appends_of_one_chat_keep_the_order_of_their_calls(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                done = await asyncio.gather(*[log.append(fence, [delta(str(i))]) for i in range(200)])
                assert [item.first for item in done] == list(range(1, 201))
                texts = [e.decode(row.body) for row in await log.read("c1", 0)]
                assert texts == [delta(str(i)) for i in range(200)]

        run(scenario())

    # --- commands

    def test_a_command_is_created_once_and_a_repetition_is_told_from_a_conflict(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                await owned(log)
                first = await log.put_command("c1", "message", "key", b"{}", 1)
                assert isinstance(first, Created)
            async with open_log() as log:
                again = await log.put_command("c1", "message", "key", b"{}", 2)
                other = await log.put_command("c1", "message", "key", b"other", 3)
                assert isinstance(again, Duplicate)
                assert isinstance(other, Duplicate)
                assert (again.same, other.same, again.earlier.id, again.earlier.at) == (True, False, first.id, 1)
                await log.create("c2")
                assert isinstance(await log.put_command("c2", "message", "key", b"{}", 4), Created)
                assert isinstance(await log.put_command("c1", "steer", "key", b"{}", 5), Created)
                kinds = [command.kind for command in await log.commands("c1")]
                assert kinds == ["message", "steer"]
                assert [command.kind for command in await log.commands("c1", first.id)] == ["steer"]
                found = await log.find("c1", "message", "key")
                assert found is not None and (found.id, found.payload) == (first.id, b"{}")
                for chat, kind, key in (("c3", "message", "key"), ("c1", "cancel", "key"), ("c1", "message", "k")):
                    assert await log.find(chat, kind, key) is None

        run(scenario())

    def test_of_many_equal_commands_at_once_one_is_created(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                await owned(log)
                done = await asyncio.gather(
                    *[log.put_command("c1", "message", "key", b"%d" % (i % 2), 1) for i in range(20)]
                )
                assert sum(isinstance(item, Created) for item in done) == 1

        run(scenario())

    def test_a_command_for_a_turn_is_closed_unless_that_turn_is_open(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                assert await log.put_command("c1", "steer", "s0", b"", 1, turn="t1") == Closed("turn_closed")
                await log.append(fence, opening("t1"))
                assert isinstance(await log.put_command("c1", "steer", "s1", b"", 1, turn="t1"), Created)
                assert await log.put_command("c1", "steer", "s2", b"", 1, turn="t0") == Closed("turn_closed")
                await log.append(fence, [terminal("t1")])
                assert await log.put_command("c1", "cancel", "t1", b"", 1, turn="t1") == Closed("turn_closed")

        run(scenario())

    @pytest.mark.parametrize("kind", ["cancel", "steer"])
    def test_a_turn_does_not_end_over_a_cancel_or_a_steer_that_its_owner_has_not_read(
        self, open_log: Opener, kind: Any
    ) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, opening("t1"))
                created = await log.put_command("c1", kind, "k", b"", 1, turn="t1")
                assert isinstance(created, Created)
                with pytest.raises(Unread):
                    await log.append(fence, [delta("x"), terminal("t1")], read_upto=created.id - 1)
                assert (await log.bounds("c1"))[2:] == (2, "t1")
                await log.append(fence, [terminal("t1")], read_upto=created.id)

        run(scenario())

    def test_a_tool_output_is_taken_once_while_it_is_waited_for_and_not_after(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, [*opening("t1"), request("tc_1"), request("tc_2"), request("tc_3")])

                async def put(call: str, body: bytes, at: int = 10) -> Any:
                    return await log.put_command("c1", "tool_output", call, body, at, turn="t1")

                assert await put("tc_0", b"x") == Closed("unknown")
                assert isinstance(await put("tc_1", b"x"), Created)
                again, other = await put("tc_1", b"x"), await put("tc_1", b"y")
                assert (again.same, other.same) == (True, False)
                assert await put("tc_2", b"x", 1_000) == Closed("expired")
                result = e.ToolResult(turn="t1", at=1_000, agent=AGENT, call_id="tc_2", output="", timed_out=True)
                settled = e.ToolResult(turn="t1", at=1_000, agent=AGENT, call_id="tc_3", output="")
                await log.append(fence, [result, settled])
                assert await put("tc_2", b"x", 1) == Closed("expired")
                assert await put("tc_3", b"x", 1) == Closed("resolved")
                await log.append(fence, [terminal("t1")])
                assert await put("tc_1", b"x") == Closed("turn_closed")

        run(scenario())

    def test_of_two_runners_one_has_the_claim(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, [*opening("t1"), request("tc_1"), request("tc_10")])
                done = await asyncio.gather(
                    *[log.put_command("c1", "claim", f"tc_1:{who}", b"", 1, turn="t1") for who in "abc"]
                )
                assert [type(item).__name__ for item in done] == ["Created", "Duplicate", "Duplicate"]
                assert done[1].earlier.key == "tc_1:a"
                mine = await log.put_command("c1", "claim", "tc_1:a", b"", 1, turn="t1")
                assert isinstance(mine, Duplicate)
                assert mine.same
                assert isinstance(await log.put_command("c1", "claim", "tc_10:b", b"", 1, turn="t1"), Created)
                assert await log.put_command("c1", "claim", "tc_9:b", b"", 1, turn="t1") == Closed("unknown")

        run(scenario())

    def test_an_approval_is_answered_before_its_deadline_or_not_at_all(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                ask = e.ApprovalRequest(
                    turn="t1", at=1, agent=AGENT, approval_id="apr_1", call_id="tc_1", origin_agent_id="ag_1",
                    tool_name="rm", args=msgspec.Raw(b"{}"), reason="", deadline=500, digest="d",
                )  # fmt: skip
                await log.append(fence, [*opening("t1"), ask])
                assert await log.put_command("c1", "approval", "apr_1", b"", 500, turn="t1") == Closed("expired")
                assert isinstance(await log.put_command("c1", "approval", "apr_1", b"", 499, turn="t1"), Created)
                assert isinstance(await log.put_command("c1", "approval", "apr_1", b"n", 499, turn="t1"), Duplicate)
                expired = e.ApprovalExpired(turn="t1", at=501, agent=AGENT, approval_id="apr_1")
                with pytest.raises(Unread):
                    await log.append(fence, [expired], read_upto=0)

        run(scenario())

    def test_a_wait_for_an_output_does_not_time_out_over_one_that_came_in_time(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, [*opening("t1"), request("tc_1"), request("tc_2")])
                created = await log.put_command("c1", "tool_output", "tc_1", b"x", 10, turn="t1")
                assert isinstance(created, Created)
                late = [
                    e.ToolResult(turn="t1", at=1_001, agent=AGENT, call_id=call, output="", timed_out=True)
                    for call in ("tc_1", "tc_2")
                ]
                await log.append(fence, late[1:], read_upto=0)
                with pytest.raises(Unread):
                    await log.append(fence, late[:1], read_upto=created.id - 1)
                await log.append(fence, late[:1], read_upto=created.id)

        run(scenario())

    def test_a_message_and_its_key_are_written_together_once(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, opening("t1"), [once("c1", "message", "key", b"hello", 1)])
                for body, same in ((b"hello", True), (b"other", False)):
                    with pytest.raises(Repeated) as error:
                        await log.append(fence, opening("t2"), [once("c1", "message", "key", body, 2)])
                    assert error.value.duplicate.same is same
                assert (await log.bounds("c1"))[2:] == (2, "t1")
                with pytest.raises(TurnOpen):
                    await log.append(fence, opening("t2"), [once("c1", "message", "another", b"hello", 2)])
                await log.append(fence, [terminal("t1")])
                await log.append(fence, opening("t2"), [once("c1", "message", "another", b"hello", 2)])

        run(scenario())

    # --- the rest

    def test_trimming_forgets_whole_turns_and_keeps_what_the_next_one_needs(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                memory = e.ContextReplaced(turn="", at=0, items=(user("restored"),))
                await log.append(fence, [memory, *whole_turn("t1")])
                await log.append(fence, whole_turn("t2"))
                await log.append(fence, whole_turn("t3"))
                before = hydrate(await log.replay("c1"))
                starts = [row.seq for row in await log.read("c1", 0) if b"turn.started" in row.body]
                assert await log.trim("c1", starts[1] - 1) == 1
                assert await log.trim("c1", starts[2] + 1) == starts[2]
                bounds = await log.bounds("c1")
                assert (bounds.first, bounds.head) == (starts[2], 3 * starts[1] - 3)
                assert (await log.read("c1", 0))[0].seq == starts[2]
                after = hydrate(await log.replay("c1"))
                assert (after.history, after.totals) == (before.history, before.totals)
                assert (await log.append(fence, whole_turn("t4"))).first == bounds.head + 1
                assert await log.trim("c1", 10_000) == bounds.head + 1
                assert len(hydrate(await log.replay("c1")).history) == 9

        run(scenario())

    def test_an_open_turn_is_never_trimmed(self, open_log: Opener) -> None:
        async def scenario() -> None:
            async with open_log() as log:
                fence = await owned(log)
                await log.append(fence, whole_turn("t1"))
                await log.append(fence, opening("t2"))
                assert await log.trim("c1", 100) == 1

        run(scenario())
