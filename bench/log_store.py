"""The log in this process: appends of many chats, and a store full of chats for a server to start on."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from crocevia.core.turn import AgentCard, Plan, Totals
from crocevia.core.turn import entries as e
from crocevia.log import Fence, Hub, SqliteLog
from crocevia.log.sqlite import create_log
from crocevia.storage import chats
from crocevia.storage.database import Database, Transaction
from crocevia.storage.migrate import ensure

AGENT = e.Speaker("ag_01j00000000000000000000000", "lead", "orchestrator", None, "m-lead")
_TURN = "cmpl_01j00000000000000000000000"
_TEXT = "a few words of text "


@dataclass
class Appends:
    """waits: seconds of each append, from the call to its return. cpu: of this process, all threads."""

    rows: int
    seconds: float
    cpu: float
    waits: list[float]


def deltas(count: int, at: int = 1_764_500_000_000) -> list[e.Entry]:
    return [e.AgentTextDelta(turn=_TURN, at=at + i, agent=AGENT, delta=_TEXT) for i in range(count)]


async def append(folder: Path, chats_: int, per_append: int, seconds: float) -> Appends:
    """`chats_` chats, each appending `per_append` deltas, one append after the other."""
    path = folder / f"append-{time.time_ns()}.db"
    await asyncio.to_thread(ensure, path)
    database = Database(path)
    log = SqliteLog(database, Hub())
    owners = await asyncio.gather(*[_owned(log, f"c{i}") for i in range(chats_)])
    batch = deltas(per_append)
    waits: list[float] = []

    async def write(fence: Fence, end: float) -> None:
        while (began := time.perf_counter()) < end:
            await log.append(fence, batch)
            waits.append(time.perf_counter() - began)

    await asyncio.gather(*[write(fence, time.perf_counter() + min(1.0, seconds / 4)) for fence in owners])
    waits.clear()
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[write(fence, began + seconds) for fence in owners])
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    await database.close()
    for left in folder.glob(f"{path.name}*"):
        left.unlink()
    return Appends(len(waits) * per_append, took, cpu, waits)


async def _owned(log: SqliteLog, chat: str) -> Fence:
    await log.create(chat)
    fence = await log.acquire(chat, "bench", 10**9, 0)
    assert fence is not None
    return fence


async def long_chat(database: Path, chat: str, events: int) -> None:
    """Give a chat that has no turn yet `events` public events, as one that has ended."""
    store = Database(database)
    log = SqliteLog(store, Hub())
    fence = await _owned(log, chat)
    whole = _turn(_TURN, events - 5)
    for at in range(0, len(whole), 500):
        await log.append(fence, whole[at : at + 500])
    await log.release(fence)
    await store.close()


async def many_chats(database: Path, user: str, workspace: str, team: str, count: int, open_: int) -> None:
    """`count` chats with one ended turn each; `open_` of them have begun another, which is to be gone on with."""
    store = Database(database)
    log = SqliteLog(store, Hub())

    def make(tx: Transaction) -> list[str]:
        ids = [chats.add(tx, user, workspace, team, time.time()).id for _ in range(count)]
        for chat in ids:
            create_log(tx, chat)
        return ids

    ids = await store.write(make)
    for at in range(0, count, 500):
        await asyncio.gather(*[_fill(log, chat, at + i < open_) for i, chat in enumerate(ids[at : at + 500])])
    await store.close()


async def _fill(log: SqliteLog, chat: str, goes_on: bool) -> None:
    fence = await log.acquire(chat, "bench", 10**9, 0)
    assert fence is not None
    await log.append(fence, _turn(f"{_TURN}1", 20))
    if goes_on:
        await log.append(fence, _opening(f"{_TURN}2"))
    await log.release(fence)


def _opening(turn: str) -> list[e.Entry]:
    plan = Plan(agents=(AgentCard(name="lead", model="m-lead", free=True),))
    return [
        e.TurnOpened(turn=turn, at=1, plan=plan),
        e.TurnStarted(turn=turn, at=1, input="hello"),
        e.AgentStarted(turn=turn, at=1, agent=AGENT),
    ]


def _turn(turn: str, words: int) -> list[e.Entry]:
    said, totals = _TEXT * words, Totals(input_tokens=1)
    spoken = [e.AgentTextDelta(turn=turn, at=2 + i * 10, agent=AGENT, delta=_TEXT) for i in range(words)]
    at = 2 + words * 10
    return [
        *_opening(turn),
        e.ModelStarted(turn=turn, at=1, instance=AGENT.instance_id, step=0, attempt=1),
        *spoken,
        e.ModelAnswered(turn=turn, at=at, instance=AGENT.instance_id, step=0, attempt=1, text=said),
        e.TurnClosing(turn=turn, at=at),
        e.TextDone(turn=turn, at=at, agent=AGENT, text=said),
        e.AgentDone(turn=turn, at=at, agent=AGENT, status="completed", summary="", usage=totals),
        e.TurnCompleted(turn=turn, at=at, usage=totals, chat_usage=totals, finish_reason="stop"),
    ]
