"""Money over real sockets: a burst against a real provider, a correction while serving, a crash, the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.runtime.control import spending
from crocevia.runtime.control.audit import Actor, entries
from crocevia.storage.database import Database, immediate
from crocevia.storage.home import Home
from crocevia.storage.record_queries import CallFilter, page
from tests.aio import run
from tests.app.serving import Place, declare, request, serving
from tests.app.test_process import open_stream, started
from tests.doors.pepper.house import HELLO
from tests.fakes.provider import Provider, answer, play

ONE = 0.002  # 1000 in, 100 out at 1 and 10 USD per million
PRICES = Prices(input=1, output=10)
MODEL = ModelSpec(name="Pepper 7", engine="real", upstream="brain", prices=PRICES)
WHOLE = {
    "choices": [{"message": {"role": "assistant", "content": "Ciao."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
}
STREAM = (
    b'data: {"choices":[{"delta":{"content":"Ciao."}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}\n\n'
    b"data: [DONE]\n\n"
)


async def spent(place: Place) -> int:
    project = place.service.catalogue.current.projects["casa"]
    return place.service.gateway.spend.status(project).spent


def test_twenty_parallel_calls_against_money_for_one_reach_the_provider_at_most_twice() -> None:
    async def work() -> None:
        for plays, stream in ((answer(200, json.dumps(WHOLE).encode()), False), (play(STREAM), True)):
            async with Provider(plays) as provider:
                engine = EngineSpec(name="real", kind="openai-chat", base_url=f"{provider.url}/v1")
                async with serving(engine=engine, model=MODEL, daily_budget_usd=1.2 * ONE) as place:
                    body = HELLO | {"stream": stream}
                    answers = await asyncio.gather(*(place.post("/agent", body) for _ in range(20)))
                    statuses = [status for status, _, _ in answers]
                    assert 1 <= len(provider.requests) <= 2
                    assert statuses.count(200) == len(provider.requests)
                    for status, headers, text in answers:
                        if status != 200:
                            assert (status, json.loads(text)["error"]["code"]) == (429, "budget_esaurito")
                            assert int(headers["retry-after"]) >= 1
                        assert "x-pepper-budget-remaining" in headers
                    assert await spent(place) == len(provider.requests) * 2_000_000
                    assert place.service.gateway.spend.ledger.reserved() == 0

    run(work(), timeout=30)


def test_a_correction_is_effective_in_a_running_server_within_a_second() -> None:
    async def work() -> None:
        async with Provider(answer(200, json.dumps(WHOLE).encode())) as provider:
            engine = EngineSpec(name="real", kind="openai-chat", base_url=f"{provider.url}/v1")
            async with serving(engine=engine, model=MODEL, daily_budget_usd=ONE) as place:
                assert (await place.post("/agent", HELLO))[0] == 200
                assert (await place.post("/agent", HELLO))[0] == 429
                await place.record()
                before = time.monotonic()
                await asyncio.to_thread(correct, place.service.home, "-0.002")
                while (await place.post("/agent", HELLO))[0] != 200:
                    assert time.monotonic() - before < 1.5
                    await asyncio.sleep(0.05)
                audited = await place.service.database.read(lambda tx: entries(tx))
                assert [(line.action, line.name, line.account) for line in audited] == [("corrected", "casa", "cli:x")]
                assert audited[0].changes["reason"] == (None, "prezzo sbagliato")

    run(work(), timeout=20)


def correct(home: Home, amount: str) -> None:
    with immediate(home.database) as tx:
        spending.correct(tx, Actor("cli:x", "local"), "casa", amount, "prezzo sbagliato", time.time())


SLOW = EngineSpec(name="scripted", kind="scripted", script=[{"say": [{"text": "uno"}, {"delay_ms": 60_000}]}])
PRICED = ModelSpec(name="Pepper 7", engine="scripted", prices=Prices(input=1000, output=1000))


def test_a_crash_settles_what_was_open_at_its_estimate_and_the_next_life_remembers(tmp_path: Path) -> None:
    home = Home(tmp_path)
    declare(home, (SLOW,), (PRICED,), daily_budget_usd=10.0)

    with process_of(home) as (server, port), closing(open_stream(port)):
        run(opened(home), timeout=10)
        os.kill(server.pid, signal.SIGKILL)
        server.wait(timeout=10)
    with process_of(home) as (_, port), closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as sock:
        sock.sendall(request("/agent", json.dumps(HELLO | {"stream": True, "max_tokens": 256}).encode()))
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(65536)
        remaining = float(head.decode().lower().split("x-pepper-budget-remaining: ")[1].split("\r\n")[0])
        # Gone: the estimate of the call that the crash cut (4096 tokens), and what this one holds (256).
        assert b" 200 " in head
        assert remaining < 10 - 4.096 - 0.256
    row = run(first(home), timeout=10)
    assert (row.outcome, row.ended_by, row.partial) == ("interrupted", "restart", 1)
    assert row.cost_usd == row.reserved_usd > 4.096


@contextmanager
def process_of(home: Home) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A serving process and its port."""
    child = started(home.path)
    try:
        assert child.stderr is not None
        for line in child.stderr:  # a warning about the interrupted call may come first
            if "url" in (told := json.loads(line)):
                yield child, int(told["url"].rpartition(":")[2])
                break
    finally:
        child.kill()
        child.communicate(timeout=10)


async def opened(home: Home) -> None:
    while not await first(home):
        await asyncio.sleep(0.01)


async def first(home: Home) -> Any:
    database = Database(home.database)
    try:
        rows = await database.read(lambda tx: page(tx, CallFilter(), 10))
        return rows[-1] if rows else None
    finally:
        await database.close()
