"""What was accepted is done: a turn is stopped at each of its moments in turn, told something, and let go again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crocevia.log import SqliteLog
from crocevia.runtime.turns.driver import Driver

from .theatre import TERMINALS, Event, Theatre, play, tool

PAIRED = ("agent.started", "agent.done")


def delegate(agent: str, mode: str) -> dict[str, Any]:
    return {"tool": "delegate_task", "arguments": {"agent": agent, "task": "go", "mode": mode}}


TEAM: dict[str, Any] = {
    "main": [
        {"when": {"contains": "left"}, "say": [{"text": "Left, then."}]},
        {"when": {"after_tool": "list"}, "say": [{"text": "That is all."}]},
        {"when": {"after_tool": "delegate_task"}, "say": [{"tool": "list", "arguments": {}}]},
        {"when": {"contains": "completed"}, "say": [{"text": "Good."}]},
        {"say": [{"text": "So."}, delegate("finder", "foreground"), delegate("writer", "background")]},
    ],
    "finder": [{"say": [{"text": "Found."}]}],
    "writer": [{"say": [{"text": "Written."}]}],
}


class Moments:
    """Counts the moments of a turn; at the chosen one, `act` is done before anything else happens in it."""

    def __init__(self) -> None:
        self.count = 0
        self.act: Callable[[], Awaitable[None]] | None = None
        self.chosen = -1

    def choose(self, moment: int, act: Callable[[], Awaitable[None]]) -> None:
        self.count, self.chosen, self.act = 0, moment, act

    async def pass_by(self) -> None:
        moment, self.count = self.count, self.count + 1
        if moment == self.chosen and self.act is not None:
            act, self.act = self.act, None
            await act()


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    """Three for each commit: facts lie in the inbox; entries are applied and not written; written and not known."""
    moments, append, take = Moments(), SqliteLog.append, Driver._apply_inbox

    async def appending(log: SqliteLog, *given: Any, **named: Any) -> Any:
        await moments.pass_by()
        done = await append(log, *given, **named)
        await moments.pass_by()
        return done

    async def taking(driver: Driver) -> None:
        await moments.pass_by()
        await take(driver)

    monkeypatch.setattr(SqliteLog, "append", appending)
    monkeypatch.setattr(Driver, "_apply_inbox", taking)
    return moments


async def each_moment(
    place: Theatre, moments: Moments, what: str, body: Any, judge: Callable[[list[Event], bool], None]
) -> int:
    """How many moments there were. The answer must be 202 exactly while the turn is open in the log."""
    log: SqliteLog = place.service.turns._log
    chat = await place.chat()
    watcher = await place.watch(chat)
    await watcher.end(await place.say(chat, "go"))  # the first turn names the chat, which takes its time
    for moment in range(1_000):
        taken: list[bool] = []

        async def act(moment: int = moment, taken: list[bool] = taken) -> None:
            opened = (await log.bounds(chat)).turn
            reply = await place.post(chat, what, body)
            code = reply.json.get("error", {}).get("code")
            expected = (409, "no_turn_in_progress") if opened is None else (202, None)
            assert (reply.status, code) == expected, moment
            taken.append(reply.status == 202)

        moments.choose(moment, act)
        turn = await place.say(chat, "go")
        await watcher.end(turn)
        if not taken:
            return moment
        events = [event for event in watcher.events if event["turn_id"] == turn]
        assert [event["type"] in TERMINALS for event in events].index(True) == len(events) - 1
        judge(events, taken[0])
    raise AssertionError("it goes on for ever")


def cancelled(events: list[Event], taken: bool) -> None:
    assert events[-1]["type"] == ("turn.cancelled" if taken else "turn.completed")
    who = {kind: sorted(e["agent"]["instance_id"] for e in events if e["type"] == kind) for kind in PAIRED}
    assert who["agent.started"] == who["agent.done"]


def heard(events: list[Event], taken: bool) -> None:
    assert events[-1]["type"] == "turn.completed"
    for kind in ("turn.steered", "turn.steer.applied"):
        assert len([event for event in events if event["type"] == kind]) == taken


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("what", "body", "judge"),
    [("cancel", None, cancelled), ("steer", {"text": "left"}, heard)],
    ids=["cancel", "steer"],
)
def test_what_is_accepted_at_any_moment_is_done(moments: Moments, what: str, body: Any, judge: Any) -> None:
    async def work(place: Theatre) -> None:
        assert await each_moment(place, moments, what, body, judge) > 30

    play(TEAM, work, timeout=170, agents={"main": {"tools_enabled": tool("list")}})
