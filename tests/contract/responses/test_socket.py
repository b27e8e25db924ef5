"""WebSocket on `/v1/responses`, through a real client on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from crocevia.app.protocol import Protocol
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House, house, text_of
from tests.fakes.provider import Play, play

from .schema import check_event
from .upstream import chunk, sent, spoken, upstream

TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")


@asynccontextmanager
async def served(home: House) -> AsyncIterator[str]:
    """The address of the home's sockets, under the real protocol."""
    site: Any = home.service.site
    config = uvicorn.Config(site, port=0, http=Protocol, ws="websockets-sansio", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    server.capture_signals = _no_signals  # type: ignore[method-assign]
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/responses"
    finally:
        server.should_exit = True
        await task


def _no_signals() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@asynccontextmanager
async def socket(home: House, url: str, token: str | None = None) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {token or home.secrets.operator_token}"}
    async with connect(url, additional_headers=headers, proxy=None) as connection:
        yield connection


async def create(connection: ClientConnection, input: Any, **fields: Any) -> list[dict[str, Any]]:
    """One turn: every event up to its last."""
    await connection.send(json.dumps({"type": "response.create", "model": "openclaw", "input": input, **fields}))
    return await turn(connection)


async def turn(connection: ClientConnection) -> list[dict[str, Any]]:
    found = []
    while not found or found[-1]["type"] not in TERMINAL:
        event = json.loads(await connection.recv())
        if event["type"] != "error":
            check_event(event)
        found.append(event)
    return found


@requirement("R-WS-1", "R-WS-2")
def test_a_socket_answers_and_remembers_without_a_store(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, spoken("b")) as (home, provider), served(home) as url:
            async with socket(home, url) as connection:
                first = await create(connection, "a", store=False)
                assert first[0]["type"] == "response.created" and first[-1]["type"] == "response.completed"
                assert text_of(first[-1]["response"]) == "b"
                last = first[-1]["response"]["id"]
                second = await create(connection, "c", store=False, previous_response_id=last)
                third = second[-1]["response"]["id"]
                await create(connection, "d", store=False, previous_response_id=third)
                said = [one["content"] for one in sent(provider)["messages"] if one["role"] == "user"]
                assert said == ["a", "c", "d"]
            async with socket(home, url) as other:
                lost = await create(other, "x", store=False, previous_response_id=last)
                assert lost[-1]["status"] == 400
                assert lost[-1]["error"]["code"] == "previous_response_not_found"
                assert lost[-1]["error"]["param"] == "previous_response_id"
                assert (await create(other, "x"))[-1]["type"] == "response.completed"

    run(scene(), timeout=20)


@requirement("R-WS-3")
def test_a_failed_turn_forgets_its_previous_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home, served(home) as url, socket(home, url) as connection:
            first = (await create(connection, "a", store=False))[-1]["response"]["id"]
            orphan = [{"type": "function_call_output", "call_id": "missing", "output": "x"}]
            failed = await create(connection, orphan, store=False, previous_response_id=first)
            assert failed[-1]["type"] == "error" and failed[-1]["status"] == 400
            assert failed[-1]["error"]["code"] == "invalid_request_error"
            gone = await create(connection, "b", store=False, previous_response_id=first)
            assert gone[-1]["error"]["code"] == "previous_response_not_found"

    run(scene(), timeout=20)


@requirement("R-WS-4")
def test_messages_are_answered_one_after_the_other(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home, served(home) as url, socket(home, url) as connection:
            for text in ("1", "2", "3"):
                await connection.send(json.dumps({"type": "response.create", "model": "openclaw", "input": text}))
            for text in ("1", "2", "3"):
                assert text_of((await turn(connection))[-1]["response"]) == f"You said: {text}"
            for nonsense in ("{", "[]", '{"type": "x"}', '{"type": "response.create"}', "\x00"):
                await connection.send(nonsense)
                assert (await turn(connection))[-1]["status"] == 400
            assert (await create(connection, "still here"))[-1]["type"] == "response.completed"

    run(scene(), timeout=20)


@requirement("R-WS-1")
@pytest.mark.parametrize("script", [play(chunk({"content": "half"}), "cut"), play(b'data: {"error":{"type":"x"}}\n\n')])
def test_an_upstream_failure_ends_the_turn_once(script: Play, tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, script) as (home, _), served(home) as url, socket(home, url) as connection:
            found = await create(connection, "a")
            assert found[-1]["type"] in ("response.failed", "error")
            await connection.send("{")
            assert (await turn(connection))[0]["status"] == 400  # nothing of the failure is left over

    run(scene(), timeout=40)


@requirement("R-WS-1")
def test_a_client_that_leaves_ends_the_call(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        half = play(chunk({"content": "half"}), gate)
        async with upstream(tmp_path, half) as (home, provider), served(home) as url:
            async with socket(home, url) as connection:
                await connection.send(json.dumps({"type": "response.create", "model": "openclaw", "input": "a"}))
                request = await provider.request(0)
                await connection.recv()
            await request.ended.wait()
            assert request.aborted
            while home.service.gateway.active:
                await asyncio.sleep(0.01)

    run(scene(), timeout=20)


@requirement("R-WS-5")
def test_a_wrong_secret_is_refused_at_the_handshake(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home, served(home) as url:
            with pytest.raises(InvalidStatus) as refused:
                async with socket(home, url, token="wrong"):
                    pass
            assert refused.value.response.status_code == 401
            for path in ("/v1/nothing", "/agent"):
                with pytest.raises(InvalidStatus):
                    async with socket(home, url.replace("/v1/responses", path)):
                        pass

    run(scene(), timeout=20)
