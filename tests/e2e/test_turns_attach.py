"""Two hundred readers come at random moments to a busy chat, some of them slow: all see everything once, in order."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from .breeder import Breeder
from .turns_rig import THREE, Rig, seeded

Record = Callable[[str, object], None]
SEQ = re.compile(rb'"seq":(\d+),')
MOMENT = re.compile(rb'"ts":"([^"]+)"')
READERS, SLOW, MEMBERS, WORDS = 200, 20, 60, 200
# Every word an event of its own: 60 speakers, 30 ms between the words of each, are 2,000 events a second.
SPEECH = {"text": "word " * WORDS, "every_ms": 30}


def declaration() -> dict[str, Any]:
    delegations = [
        {"tool": "delegate_task", "arguments": {"agent": "speaker", "task": f"speak {n}", "mode": "background"}}
        for n in range(MEMBERS)
    ]
    scripts = {
        "lead": [{"when": {"nth": 1}, "say": [{"text": "go"}, *delegations]}, {"say": [{"text": "."}]}],
        "speaker": [{"say": [SPEECH]}],
    }
    return {
        "engines": [{"name": f"e-{name}", "kind": "scripted", "script": script} for name, script in scripts.items()],
        "models": [{"name": f"m-{name}", "engine": f"e-{name}"} for name in scripts],
        "agents": [
            {"name": "lead", "mode": "primary", "model": "m-lead"},
            {"name": "speaker", "mode": "subagent", "model": "m-speaker"},
        ],
        "teams": [{"name": "choir", "orchestrator": "lead", "members": ["speaker"]}],
    }


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_everybody_who_comes_sees_everything_once_and_nobody_is_sent_away(
    tmp_path: Path, breeder: Breeder, record_testsuite_property: Record
) -> None:
    (tmp_path / "crocevia.toml").write_text("[turns]\nchildren = 64\nrounds = 60\n", encoding="utf-8")
    asyncio.run(crowd(tmp_path, breeder, record_testsuite_property))


async def crowd(home: Path, breeder: Breeder, record_testsuite_property: Record) -> None:
    rig, chance = Rig(home, declaration(), breeder), seeded()
    rig.start()
    try:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as client:
            await rig.up(client)
            chat = await rig.chat(client, "choir")
            moments = [chance.uniform(0, 5) for _ in range(READERS)]
            end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            readers = [
                asyncio.create_task(read(rig, client, chat, moment, index < SLOW, end))
                for index, moment in enumerate(moments)
            ]
            await rig.call(client, "POST", f"/atp/v3/chats/{chat}/messages", {"message": "sing"})
            seen = await asyncio.gather(*readers)
            rate = await busiest(rig, client, chat)

        total = end.result()
        record_testsuite_property("events", total)
        record_testsuite_property("events_per_second_in_the_busiest_two", round(rate))
        assert total > MEMBERS * WORDS // 4  # after a second, and on a busy machine, words are joined
        assert seen == [total] * READERS
    finally:
        rig.stop()


async def busiest(rig: Rig, client: aiohttp.ClientSession, chat: str) -> float:
    """Events a second in the busiest two seconds, by the moments that the events carry. It is for people to read."""
    url = f"{rig.url}/api/v1/atp/v3/chats/{chat}/events?after=0"
    moments: list[float] = []
    async with client.get(url, headers=rig.headers | THREE) as answer:
        async for line in answer.content:
            if b'"type":"ping"' in line:
                break
            moments += [datetime.fromisoformat(found.decode()).timestamp() for found in MOMENT.findall(line)]
    return max(bisect(moments, at + 2) - index for index, at in enumerate(moments)) / 2


async def read(
    rig: Rig, client: aiohttp.ClientSession, chat: str, moment: float, slow: bool, end: asyncio.Future[int]
) -> int:
    """The last seq, every one before it seen once and in order, on one connection."""
    await asyncio.sleep(moment)
    url = f"{rig.url}/api/v1/atp/v3/chats/{chat}/events?after=0"
    last, rest = 0, b""
    async with client.get(url, headers=rig.headers | THREE) as answer:
        assert answer.status == 200
        while not end.done() or last < end.result():
            data = await answer.content.read(2048) if slow else await answer.content.readany()
            assert data, "it was sent away"
            whole, _mark, rest = (rest + data).rpartition(b"\n\n")
            for found in SEQ.findall(whole):
                seq = int(found)
                if seq:
                    assert seq == last + 1, "a gap or a duplicate"
                    last = seq
            if b'"type":"turn.completed"' in whole and not end.done():
                end.set_result(last)
            if slow and not end.done():
                await asyncio.sleep(0.02)  # a reader that takes its time
    return last
