"""Streams over real sockets: clients that leave, stall or wait, and a server that is told to stop."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from crocevia.config import Calls
from crocevia.core.catalogue import EngineSpec, ModelSpec
from tests.aio import run
from tests.app.serving import FastStall, Place, read_answer, request, serving
from tests.doors.pepper.house import HELLO
from tests.fakes.provider import Provider, Step, play

STREAM = json.dumps(HELLO | {"stream": True}).encode()
BRAIN = ModelSpec(name="Pepper 7", engine="remote", upstream="brain-1")


def chunk(text: str) -> bytes:
    delta = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


END = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
)


@asynccontextmanager
async def remote(*steps: Step, **how: Any) -> AsyncIterator[tuple[Provider, Place]]:
    """A provider that plays `steps` to every request, and a server in front of it."""
    async with Provider(play(*steps)) as provider:
        engine = EngineSpec(name="remote", kind="openai-chat", base_url=f"{provider.url}/v1")
        async with serving(engine=engine, model=BRAIN, **how) as place:
            yield provider, place


def test_a_hang_up_is_seen_behind_requests_that_wait_for_their_turn() -> None:
    async def work() -> None:
        async with remote(chunk("12345678"), asyncio.Event()) as (provider, place), place.open() as (reader, writer):
            writer.write(request("/agent", STREAM) + request("/agent", STREAM) * 2 + b"POST /half")
            await reader.readuntil(b"12345678")
            writer.close()
            asked = await provider.request(0)
            await asyncio.wait_for(asked.ended.wait(), 1)
            row = await place.record()
            assert (row.outcome, row.ended_by) == ("cancelled", "client")
            assert place.service.gateway.active == 0 and len(provider.requests) == 1

    run(work(), timeout=20)


def test_a_reader_that_is_slow_but_reads_gets_everything() -> None:
    """A big answer in one piece over a thin line takes longer than a stalled reader is waited for."""
    message = {"role": "assistant", "content": "x" * 8_000_000}
    whole = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()

    async def work() -> None:
        async with remote(whole, protocol=FastStall) as (_, place):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, ("127.0.0.1", place.port))
            await loop.sock_sendall(sock, request("/agent", json.dumps(HELLO).encode(), connection="close"))
            size, began = 0, loop.time()
            while data := await loop.sock_recv(sock, 300_000):
                size += len(data)
                await asyncio.sleep(len(data) / 4_000_000)
            sock.close()
            assert size > 8_000_000, data
            assert loop.time() - began > 3 * FastStall.stall_seconds

    run(work(), timeout=40)


def test_killing_the_client_closes_the_upstream_and_the_record_knows() -> None:
    async def work() -> None:
        steps = [*[chunk("12345678")] * 4, asyncio.Event()]
        async with remote(*steps) as (provider, place), place.open() as (reader, writer):
            writer.write(request("/agent", STREAM))
            await reader.readuntil(b"12345678")
            sock: socket.socket = writer.get_extra_info("socket")
            killed = time.monotonic()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            writer.transport.abort()
            asked = await provider.request(0)
            await asyncio.wait_for(asked.ended.wait(), 2)
            assert asked.aborted
            assert time.monotonic() - killed < 2
            row = await place.record()
            assert (row.outcome, row.ended_by, row.partial) == ("cancelled", "client", 1)
            assert row.output_tokens and row.input_tokens and row.estimated
            assert provider.open == 0
            assert place.service.gateway.admission.running() == 0

    run(work(), timeout=20)


def test_a_client_that_leaves_before_the_first_byte_closes_the_upstream_too() -> None:
    async def work() -> None:
        async with remote(asyncio.Event()) as (provider, place), place.open() as (_, writer):
            writer.write(request("/agent", STREAM))
            asked = await provider.request(0)
            writer.transport.abort()
            await asyncio.wait_for(asked.ended.wait(), 2)
            assert asked.aborted
            assert (await place.record()).ended_by == "client"

    run(work(), timeout=20)


def test_pings_keep_a_silent_stream_alive() -> None:
    async def work() -> None:
        gate = asyncio.Event()
        calls = Calls(ping_seconds=0.1)
        async with remote(gate, chunk("ecco"), END, calls=calls) as (_, place), place.open() as (reader, writer):
            writer.write(request("/agent", STREAM))
            for _ in range(3):
                await reader.readuntil(b": ping\n\n")
            gate.set()
            await reader.readuntil(b"event: done")
            await reader.readuntil(b"0\r\n\r\n")

    run(work(), timeout=20)


def test_a_stalled_reader_holds_back_the_provider_and_is_given_up() -> None:
    async def work() -> None:
        many = [chunk("x" * 30_000)] * 2000  # 60 MB, if anybody read them
        async with remote(*many, END, protocol=FastStall) as (provider, place), place.open() as (_, writer):
            writer.transport.pause_reading()
            writer.write(request("/agent", STREAM))
            row = await asyncio.wait_for(place.record(), 10)
            assert (row.outcome, row.ended_by) == ("cancelled", "client")
            assert row.bytes_out < 20_000_000  # what sockets hold; the rest was never read from the provider
            assert provider.open == 0

    run(work(), timeout=30)


def test_stopping_ends_open_streams_in_time_with_an_error_event() -> None:
    async def work() -> None:
        async with (
            remote(chunk("uno"), asyncio.Event(), calls=Calls(drain_seconds=0.3)) as (_, place),
            AsyncExitStack() as opened,
        ):
            streams = [await opened.enter_async_context(place.open()) for _ in range(20)]
            for reader, writer in streams:
                writer.write(request("/agent", STREAM))
                await reader.readuntil(b"uno")
            began = time.monotonic()
            place.server.stop()
            for reader, _ in streams:
                assert b"servizio_non_disponibile" in await reader.read()
            while place.server.server_state.connections:
                await asyncio.sleep(0.01)
            assert time.monotonic() - began < 3

    run(work(), timeout=30)


def test_answers_on_one_connection_follow_each_other() -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            for _ in range(3):
                writer.write(request("/agent", json.dumps(HELLO).encode()))
                assert (await read_answer(reader))[0] == 200
                writer.write(request("/agent", STREAM))
                status, headers, body = await read_answer(reader)
                assert (status, headers["x-accel-buffering"]) == (200, "no")
                assert body.count(b"event: done") == 1

    run(work(), timeout=20)
