"""Steps of the system's clock, restarts between two attempts, and answers that no client takes in one event."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from typing import Any

import pytest

from crocevia.core.turn import entries as e
from crocevia.runtime.turns import chat_sessions
from tests.contract.atp.test_turns_team import SLOW
from tests.runtime.turns.theatre import Theatre, play, tool

HOUR = 3600
SPEAKS: dict[str, Any] = {
    "main": [
        {"when": {"contains": "slow"}, "say": [SLOW]},
        {"when": {"contains": "busy"}, "say": [{"error": "overloaded", "retry_after": 1}]},
        {"when": {"after_tool": True}, "say": [{"text": "{tool_result}"}]},
        {"say": [{"tool": "phone"}]},
    ]
}


class Clock:
    """The system's clock, set wrong by `seconds`; its steady one is what it is."""

    seconds = 0
    monotonic_ns = staticmethod(time.monotonic_ns)

    def time_ns(self) -> int:
        return time.time_ns() + self.seconds * 1_000_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(chat_sessions, "time", clock)
    return clock


async def phone(place: Theatre) -> None:
    body = {"name": "phone", "parameters": {"type": "object"}, "timeout_seconds": 1}
    assert (await place.call("POST", "/api/v1/tools", body)).status == 201


@pytest.mark.parametrize("hours", [2, -1, 24 * 365])
def test_a_step_of_the_clock_in_a_turn_is_no_time(hours: int, clock: Clock) -> None:
    async def work(place: Theatre) -> None:
        await phone(place)
        talking, asking = await place.chat(), await place.chat()
        speech, question = await place.watch(talking), await place.watch(asking)
        await place.say(talking, "slow")
        await place.say(asking, "ask")
        await speech.until("agent.text.delta")
        await question.until("agent.tool.request")
        clock.seconds = hours * HOUR
        assert (await speech.end())["type"] == "turn.completed"
        assert (await question.end(timeout=6))["data"]["usage"]["duration_ms"] < 6000
        assert question.all("agent.tool.result")[0]["data"]["is_error"]  # it was given its second, and no more
        await speech.end(await place.say(talking, "slow"))  # of the new time, and never before what was said
        first, second = (datetime.fromisoformat(event["ts"]) for event in speech.all("turn.started"))
        assert (second - first).total_seconds() // HOUR == max(hours, 0)

    play(SPEAKS, work, agents={"main": {"external_tools_enabled": tool("phone")}})


def test_a_clock_that_is_set_back_over_a_restart_gives_a_tool_no_more_than_its_time(clock: Clock) -> None:
    async def work(place: Theatre) -> None:
        await phone(place)
        chat = await place.chat()
        watcher = await place.watch(chat)
        await place.say(chat, "ask")
        await watcher.until("agent.tool.request")
        clock.seconds = -HOUR
        await place.reopen()
        watcher = await place.watch(chat)
        assert (await watcher.end(timeout=6))["type"] == "turn.completed"
        assert watcher.all("agent.tool.result")[0]["data"]["is_error"]

    play(SPEAKS, work, agents={"main": {"external_tools_enabled": tool("phone")}})


def test_how_long_a_provider_asked_to_be_left_alone_outlives_the_process() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        await place.say(chat, "busy")
        failed: list[e.ModelFailed] = []
        async with asyncio.timeout(5):
            while not failed:
                entries = await place.service.turns._log.replay(chat)
                failed = [entry for entry in entries if isinstance(entry, e.ModelFailed)]
                await asyncio.sleep(0.01)  # a private entry: nobody is told
        await place.reopen()
        watcher = await place.watch(chat)
        assert (await watcher.end())["type"] == "turn.failed"
        entries = await place.service.turns._log.replay(chat)
        again = [entry for entry in entries if isinstance(entry, e.ModelStarted)][-1]
        assert again.attempt == 2 and again.at - failed[0].at >= 990

    play(SPEAKS, work)


LARGE = [("x", 2_100_000, False), ("\u20ac", 800_000, False), ("x", 1_000_000, True)]


@pytest.mark.parametrize(("sign", "count", "whole"), LARGE)
def test_no_event_is_larger_than_clients_take(sign: str, count: int, whole: bool) -> None:
    text = sign * count
    script = {"main": [{"say": [{"text": text, "chars": count}]}]}

    async def work(place: Theatre) -> None:
        watcher = await place.play("go", timeout=60)
        assert watcher.text("main") == text
        assert max(len(json.dumps(event, ensure_ascii=False).encode()) for event in watcher.events) < 2 * 1024 * 1024
        done = [event["data"]["text"] for event in watcher.all("agent.text.done")]
        assert done == ([text] if whole else [])

    play(script, work, timeout=80)
