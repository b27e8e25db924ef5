"""Appends that share a work: each has its own fate, every chat its order, and the readers see what is in the log."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.core.turn import entries as e
from crocevia.log import Appended, Effect, Fence, Fenced, Hub, SqliteLog, TurnOpen
from crocevia.storage.database import Database
from tests.aio import run

from .conformance import delta, opening, owned, secret, terminal
from .conftest import Opener

CHATS = 4
POISON = (
    "CREATE TRIGGER poison BEFORE INSERT ON journal WHEN instr(NEW.body, 'poison')"
    " BEGIN SELECT RAISE(ABORT, 'poison'); END"
)


def fail(tx: Any, done: Appended) -> None:
    raise KeyError("no")


def clash(tx: Any, done: Appended) -> None:
    tx.connection.execute("INSERT INTO chat_logs (id, chat, epoch) VALUES (1, 'x', 'x')")


def nothing(tx: Any, done: Appended) -> None:
    pass


class Want:
    """What one append must come to. entries: what it writes if it may; error: what it raises whatever is before it."""

    def __init__(
        self, entries: list[e.Entry], effects: Sequence[Effect] = (), error: type[BaseException] | None = None
    ):
        self.entries, self.effects, self.error = entries, effects, error


WANTS = {
    "plain": lambda text: Want([delta(text)]),
    "many": lambda text: Want([secret(), delta(text), delta(text + "'"), secret()]),
    "private": lambda text: Want([secret()]),
    "effect": lambda text: Want([delta(text)], [nothing]),
    "opening": lambda text: Want(opening("t1")),
    "terminal": lambda text: Want([delta(text), terminal("t1")]),
    "failing": lambda text: Want([delta(text)], [fail], KeyError),
    "clashing": lambda text: Want([delta(text)], [clash], sqlite3.IntegrityError),
    "poison": lambda text: Want([delta(text), delta("poison")], (), sqlite3.IntegrityError),
    "zombie": lambda text: Want([delta(text)], (), Fenced),
}
volleys = st.lists(
    st.lists(st.tuples(st.integers(0, CHATS - 1), st.sampled_from(sorted(WANTS)), st.booleans()), max_size=30),
    min_size=1,
    max_size=4,
)


class Model:
    """A chat as it must be."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.open = False

    def take(self, want: Want) -> type[BaseException] | tuple[int, int]:
        if want.error is not None:
            return want.error
        kinds = {type(entry) for entry in want.entries}
        if e.TurnOpened in kinds and self.open:
            return TurnOpen
        self.open = e.TurnOpened in kinds or (self.open and e.TurnCancelled not in kinds)
        first = len(self.bodies) + 1
        self.bodies += [e.encode(entry) for entry in want.entries if type(entry) in e.PUBLIC]
        return first, len(self.bodies)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory, empty_store: bytes) -> Path:
    """A store that will not take one kind of body."""
    store = tmp_path_factory.mktemp("appends") / "crocevia.db"
    store.write_bytes(empty_store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(POISON)
    return store


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(volleys)
def test_every_append_has_its_own_fate_and_every_chat_its_order(
    poisoned: Path, script: list[list[tuple[int, str, bool]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "crocevia.db"
        store.write_bytes(poisoned.read_bytes())
        run(volley(store, script), timeout=50)


async def volley(store: Path, script: list[list[tuple[int, str, bool]]]) -> None:
    database, hub = Database(store), Hub()
    try:
        log = SqliteLog(database, hub)
        fences = [await owned(log, f"c{i}") for i in range(CHATS)]
        models = [Model() for _ in range(CHATS)]
        for number, calls in enumerate(script):
            await fire(log, fences, models, number, calls)
        for fence, model in zip(fences, models, strict=True):
            rows = await log.read(fence.chat, 0, 10_000)
            assert [row.body for row in rows] == model.bodies
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            assert hub.head(fence.chat) == len(rows)
            assert (await log.bounds(fence.chat)).turn == ("t1" if model.open else None)
    finally:
        await database.close()


async def fire(
    log: SqliteLog, fences: list[Fence], models: list[Model], number: int, calls: list[tuple[int, str, bool]]
) -> None:
    expected, tasks = [], []
    for index, (chat, kind, leaves) in enumerate(calls):
        want = WANTS[kind](f"{number}.{index}")
        expected.append(asyncio.CancelledError if leaves else None)
        fate = models[chat].take(want)
        expected[-1] = expected[-1] or fate
        fence = fences[chat]._replace(token=99) if want.error is Fenced else fences[chat]
        tasks.append(asyncio.ensure_future(log.append(fence, want.entries, want.effects)))
    await asyncio.sleep(0)  # all of them are queued
    for task, (_, _, leaves) in zip(tasks, calls, strict=True):
        if leaves:
            task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    await log.renew(fences[0], 1, 0)  # written after them, those that nobody waits for included
    assert [type(one) if isinstance(one, BaseException) else one[:2] for one in found] == expected


def test_a_plain_append_that_cannot_be_written_takes_no_neighbour_along(open_log: Opener, store: Path) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fences = [await owned(log, f"c{i}") for i in range(3)]
            with closing(sqlite3.connect(store)) as connection:
                connection.execute(POISON)
            texts = ("a", "poison", "b")
            found = await asyncio.gather(
                *[log.append(fence, [delta(text)]) for fence, text in zip(fences, texts, strict=True)],
                return_exceptions=True,
            )
            assert [type(one) for one in found] == [Appended, sqlite3.IntegrityError, Appended]
            assert [len(await log.read(f"c{i}", 0)) for i in range(3)] == [1, 0, 1]

    run(scenario())


def test_what_is_written_by_another_process_is_not_overlooked(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log, open_log() as other:
            mine = await owned(log)
            await log.append(mine, [delta("a")])
            theirs = await owned(other)
            await other.append(theirs, [delta("b")])
            with pytest.raises(Fenced):
                await log.append(mine, [delta("c")])
            again = await owned(log)
            assert (await log.append(again, [delta("d")])).first == 3

    run(scenario())


def test_an_append_after_a_command_is_written_after_it(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            await log.append(fence, opening("t1"))
            first = asyncio.ensure_future(log.append(fence, [delta("before")]))
            command = asyncio.ensure_future(log.put_command("c1", "cancel", "t1", b"", 1, turn="t1"))
            last = asyncio.ensure_future(log.append(fence, [delta("x"), terminal("t1")]))
            await asyncio.gather(first, command, last)
            assert type(command.result()).__name__ == "Created"

    run(scenario())


def test_a_closed_store_refuses_appends(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
        for _ in range(2):
            with pytest.raises(GatewayError) as caught:
                await log.append(fence, [delta("late")])
            assert caught.value.code is Code.UNAVAILABLE

    run(scenario())
