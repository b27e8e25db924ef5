"""What only a real socket shows: where a stream ends, and that whoever was answered can ask again at once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crocevia.storage.record_queries import CallFilter, page
from crocevia.storage.records import notes_of
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House, again, house, text_of
from tests.fakes.provider import play

from .test_socket import served
from .upstream import DONE, chunk, upstream, whole


async def exchange(url: str, home: House, method: str, path: str, body: Any = None) -> tuple[bytes, bytes]:
    """Everything up to where the server closes the connection, head and rest; the client never asks it to."""
    host, _, port = url.removeprefix("ws://").partition("/")[0].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {home.secrets.operator_token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n\r\n")[0], answer.partition(b"\r\n\r\n")[2]


@requirement("R-SSE-12")
@pytest.mark.parametrize("model", ["openclaw", "Pepper mini"])
def test_the_connection_is_closed_after_the_last_event(model: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home, served(home) as url:
            body = {"model": model, "input": "hi", "stream": True}
            head, rest = await exchange(url, home, "POST", "/v1/responses", body)
            assert head.startswith(b"HTTP/1.1 200") and b"connection: close" in head.lower()
            assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
            made = rest.split(b'"id":"', 1)[1].split(b'"', 1)[0].decode()
            head, rest = await exchange(url, home, "GET", f"/v1/responses/{made}?stream=true")
            assert b"connection: close" in head.lower() and b"data: [DONE]\n\n" in rest
            background = {**body, "background": True}
            _, rest = await exchange(url, home, "POST", "/v1/responses", background)
            assert b"response.queued" in rest and b"data: [DONE]\n\n" in rest

    run(scene(), timeout=20)


@requirement("R-STORE-5")
@pytest.mark.parametrize("model", ["openclaw", "Pepper mini"])
def test_whoever_was_answered_reads_the_answer_at_once_and_it_is_on_disk(model: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            store = sqlite3.connect(home.service.home.database)

            async def once(stream: bool) -> None:
                made = await home.ask("/v1/responses", {"model": model, "input": "hi", "stream": stream})
                resource = made.events()[-1]["response"] if stream else made.json()
                kept = store.execute("SELECT status FROM responses WHERE id = ?", (resource["id"],)).fetchall()
                assert kept == [("completed",)]
                found = await home.get(f"/v1/responses/{resource['id']}")
                assert (found.status, found.json()) == (200, resource)

            await asyncio.gather(*(once(bool(n % 2)) for n in range(40)))
            queued = await home.respond("hi", model=model, background=True)
            kept = store.execute("SELECT id FROM responses WHERE id = ?", (queued["id"],)).fetchall()
            assert kept == [(queued["id"],)]
            assert (await home.get(f"/v1/responses/{queued['id']}")).status == 200
            store.close()

    run(scene(), timeout=20)


@requirement("R-STORE-5")
def test_the_answer_of_a_turn_is_on_disk_with_its_chat_before_anybody_is_told_its_id(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        plays = play(chunk({"content": "half"}), gate, chunk({}, "stop"), DONE)
        async with upstream(tmp_path, plays) as (home, _):
            store = sqlite3.connect(home.service.home.database)
            body = {"model": "openclaw", "user": "ann", "input": "hi", "stream": True}
            exchange, task = home.start("/v1/responses", body)
            await exchange.until(lambda: b"half" in exchange.body)
            told = json.loads(exchange.body.split(b"data: ")[1].split(b"\n")[0])["response"]["id"]
            ((status, chat),) = store.execute("SELECT status, chat FROM responses WHERE id = ?", (told,)).fetchall()
            assert status == "in_progress" and chat is not None
            store.close()
            gate.set()
            await task

    run(scene(), timeout=20)


@requirement("R-STORE-5")
def test_an_answer_whose_row_does_not_know_its_turn_yet_is_found_in_the_next_process(tmp_path: Path) -> None:
    """The process died an instant after the turn had begun."""

    async def scene() -> None:
        async with upstream(tmp_path) as (home, _):
            made = await home.respond("hi", user="ann", background=True)
            while (known := (await home.get(f"/v1/responses/{made['id']}")).json())["status"] != "completed":
                await asyncio.sleep(0.005)
            database = home.service.home.database
        with closing(sqlite3.connect(database)) as store:
            store.execute("UPDATE responses SET status = 'queued', chat = NULL")
            store.commit()
        async with again(tmp_path) as home:
            while (now := (await home.get(f"/v1/responses/{made['id']}")).json())["status"] in (
                "queued",
                "in_progress",
            ):
                await asyncio.sleep(0.005)
            assert now["status"] == "completed" and text_of(now) == text_of(known)

    run(scene(), timeout=20)


@requirement("R-STORE-5")
def test_an_answer_is_there_although_the_store_takes_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        late = play(gate, chunk({"content": "late"}), chunk({}, "stop"), DONE)
        async with upstream(tmp_path, whole(), late) as (home, provider):
            blocker = sqlite3.connect(home.service.home.database, isolation_level=None)
            made = await home.respond("hi")
            answering = asyncio.create_task(home.respond("again"))
            await provider.request(1)  # its call is recorded: without that it would not be made
            blocker.execute("BEGIN EXCLUSIVE")
            gate.set()
            stuck = await answering  # waits a moment for the store, not for ever
            kept = await home.get(f"/v1/responses/{stuck['id']}")
            assert kept.json() == stuck
            blocker.execute("ROLLBACK")
            blocker.close()
            assert (await home.get(f"/v1/responses/{made['id']}")).json() == made

    run(scene(), timeout=30)


@requirement("R-STORE-5")
def test_a_call_is_made_although_another_process_holds_the_store(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            blocker = sqlite3.connect(home.service.home.database, isolation_level=None)
            blocker.execute("BEGIN EXCLUSIVE")
            made = await home.respond("hi")
            blocker.execute("ROLLBACK")
            blocker.close()
            assert (await home.get(f"/v1/responses/{made['id']}")).json() == made
            row = None
            while row is None or row.settled_at is None:
                rows = await home.service.database.read(lambda tx: page(tx, CallFilter(), 1))
                row = rows[0] if rows else None
            assert (row.outcome, notes_of(row.notes)["recorded_late"]) == ("ok", True)

    run(scene(), timeout=30)
