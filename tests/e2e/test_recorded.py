"""Whoever was answered is recorded, whenever the server dies: no provider is asked before the call's row is durable."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.catalogue import EngineSpec
from crocevia.storage.database import Database
from crocevia.storage.home import Home
from crocevia.storage.record_queries import CallFilter, page
from tests.app.serving import declare, read_answer, request
from tests.doors.pepper.house import HELLO
from tests.fakes.provider import Provider, answer

from .test_budget import MODEL, ONE, WHOLE, process_of

BODY = json.dumps(HELLO | {"max_tokens": 200}).encode()
AT_ONCE = 32


async def load(port: int, answered: list[int]) -> None:
    """One call after the other until the server is gone; what came back whole is counted."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        try:
            writer.write(request("/agent", BODY))
            status, _, _ = await read_answer(reader)
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError):
            return
        finally:
            writer.transport.abort()
        answered.append(status)


async def rows_of(home: Home) -> list[Any]:
    database = Database(home.database)
    try:
        return await database.read(lambda tx: page(tx, CallFilter(), 1_000_000))
    finally:
        await database.close()


async def one_life(home: Home, provider: Provider, dice: random.Random, answered: list[int]) -> None:
    """Serve under load, and die at a random moment after the first answers."""
    already = len(answered)
    server = process_of(home)
    child, port = await asyncio.to_thread(server.__enter__)
    try:
        clients = [asyncio.create_task(load(port, answered)) for _ in range(AT_ONCE)]
        while len(answered) < already + AT_ONCE:
            await asyncio.sleep(0.005)
        await asyncio.sleep(dice.uniform(0, 0.2))  # how long it lives is what is tested
        child.kill()
        await asyncio.wait_for(asyncio.gather(*clients), 20)
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def die_and_count(path: Path, lives: int, **project: Any) -> None:
    home, dice, answered = Home(path), random.Random(7), list[int]()
    async with Provider(answer(200, json.dumps(WHOLE).encode())) as provider:
        engine = EngineSpec(name="real", kind="openai-chat", base_url=f"{provider.url}/v1")
        await asyncio.to_thread(declare, home, (engine,), (MODEL,), **project)
        for _ in range(lives):
            await one_life(home, provider, dice, answered)
            rows = await rows_of(home)
            assert set(answered) == {200}
            assert len(answered) <= len(provider.requests) <= len(rows), "somebody was answered and nobody knows"
        server = process_of(home)
        await asyncio.to_thread(server.__enter__)  # which counts what was open at its estimate
        await asyncio.to_thread(server.__exit__, None, None, None)
        rows = await rows_of(home)
        assert {row.outcome for row in rows} <= {"ok", "interrupted"}
        lost = sum(row.outcome == "interrupted" for row in rows)
        sys.stdout.write(
            f"{lives} kills: {len(answered)} answers, {len(provider.requests)} asked of the provider, "
            f"{len(rows)} records, {lost} of them at their estimate\n"
        )
        assert sum(row.cost_usd for row in rows) >= len(provider.requests) * ONE * (1 - 1e-9)


BUDGETS = pytest.mark.parametrize("project", [{}, {"daily_budget_usd": 10_000.0}], ids=["unbounded", "budget"])


@pytest.mark.timeout(120)
@BUDGETS
def test_whoever_was_answered_before_a_kill_is_recorded_and_paid(tmp_path: Path, project: dict[str, Any]) -> None:
    asyncio.run(die_and_count(tmp_path, 1, **project))


@pytest.mark.torture
@pytest.mark.timeout(600)
@BUDGETS
def test_whoever_was_answered_before_any_of_twenty_kills_is_recorded_and_paid(
    tmp_path: Path, project: dict[str, Any]
) -> None:
    asyncio.run(die_and_count(tmp_path, 20, **project))
