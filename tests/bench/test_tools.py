"""The load tools count right; what they measure is nobody's assertion."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from bench.bars import Bar, verdict
from bench.figures import Result
from bench.load import Client, Measured, Request, Tally, load
from bench.processes import cpu_seconds, pss_mib, running, tree, wait_for
from bench.report import page
from bench.servers import Target, openai_body
from bench.upstream import TOKEN, listen

from tests.aio import run

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
PATHS = ["/v1/chat/completions", "/v1/messages"]


class Wire:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def abort(self) -> None:
        pass


async def exchange(request: Request) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", request.port)
    writer.write(request.spelled())
    received = b""
    while not complete(received):
        received += await reader.read(65536)
    writer.close()
    await writer.wait_closed()
    return received


def complete(received: bytes) -> bool:
    head, found, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    return bool(found) and (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n"))


async def ask_mock(path: str, *, stream: bool, tokens: int = 5) -> bytes:
    server = await listen(0, tokens=tokens, spacing=0.001)
    async with server:
        return await exchange(Request(server.sockets[0].getsockname()[1], path, openai_body(stream)))


@pytest.mark.parametrize("path", PATHS)
def test_the_mock_answers_a_whole_call_with_json(path: str) -> None:
    body = run(ask_mock(path, stream=False)).partition(b"\r\n\r\n")[2]
    assert TOKEN in str(msgspec.json.decode(body))


@pytest.mark.parametrize("path", PATHS)
def test_the_mock_streams_events_with_one_token_each(path: str) -> None:
    received = run(ask_mock(path, stream=True, tokens=7)).decode()
    events = re.findall(r"^data: (\{.*\})$", received, re.MULTILINE)
    assert sum(TOKEN in event for event in events) == 7
    assert all(isinstance(msgspec.json.decode(event), dict) for event in events)


def hear(pieces: list[bytes]) -> tuple[Tally, Wire]:
    async def feed() -> tuple[Tally, Wire]:
        tally, wire = Tally(), Wire()
        client = Client(b"again", lambda: tally, 0)
        client.connection_made(cast(asyncio.BaseTransport, wire))
        for piece in pieces:
            client.data_received(piece)
        return tally, wire

    return run(feed())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 64])
@pytest.mark.parametrize("path", PATHS)
def test_tokens_are_counted_however_the_stream_is_cut(path: str, size: int) -> None:
    answer = run(ask_mock(path, stream=True, tokens=9))
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    tally, wire = hear(pieces + pieces)
    assert (tally.done, tally.failed, tally.tokens, len(tally.first_tokens)) == (2, 0, 18, 2)
    assert wire.sent == [b"again"] * 3


@pytest.mark.parametrize("name", [b"done", b"response.output_text.done"])
def test_text_repeated_in_the_closing_event_is_not_counted_again(name: bytes) -> None:
    stream = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nevent: delta\ndata: {"text":"zyx "}\n\n'
    closing = b"event: " + name + b'\ndata: {"text":"zyx "}\n\n\r\n0\r\n\r\n'
    assert hear([stream, closing])[0].tokens == 1
    assert hear([stream + closing])[0].tokens == 1
    assert hear([stream + closing[:20], closing[20:]])[0].tokens == 1


def test_an_answer_that_is_not_200_counts_as_failed() -> None:
    tally, _ = hear([b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\n", b"busy"])
    assert (tally.done, tally.failed) == (0, 1)
    assert "503" in tally.failure


def test_an_announced_close_is_no_failure_and_the_client_connects_again() -> None:
    async def measure() -> Tally:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}]")
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            request = Request(server.sockets[0].getsockname()[1], PATHS[0], openai_body(False))
            return (await load(request, 2, seconds=0.3, warm_up=0.05, clock=lambda: 0.0)).tally

    tally = run(measure())
    assert tally.done > 2 and not tally.failed


def test_load_holds_connections_busy_and_counts_every_token() -> None:
    async def measure(stream: bool) -> Measured:
        server = await listen(0, tokens=4, spacing=0.001)
        async with server:
            request = Request(server.sockets[0].getsockname()[1], PATHS[0], openai_body(stream))
            return await load(request, 3, seconds=0.3, warm_up=0.05, clock=lambda: 0.0)

    whole, streamed = run(measure(False)).tally, run(measure(True)).tally
    assert whole.done == len(whole.latencies) > 3
    assert not whole.failed and not streamed.failed
    # Streams open at the window's edges belong to it with some of their tokens only.
    assert abs(streamed.tokens - 4 * streamed.done) <= 2 * 3 * 4


@linux
def test_cpu_and_memory_are_those_of_the_whole_tree(tmp_path: Path) -> None:
    burn = "sum(range(10**8))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); import time; time.sleep(60)"
    with running([sys.executable, "-c", parent], cpus=os.sched_getaffinity(0), log=tmp_path / "log") as process:
        wait_for(lambda: len(tree(process.pid)) == 2, seconds=10)
        assert pss_mib(process.pid) > pss_mib(tree(process.pid)[1]) > 0
        wait_for(lambda: cpu_seconds(process.pid) > 0.2, seconds=20)
    assert process.poll() is not None


def test_the_page_compares_every_server_with_the_floor() -> None:
    def result(name: str, cpu: float, alone: bool = False) -> Result:
        measured = Measured(1, 1.0, cpu, Tally(done=100, tokens=1000, latencies=[0.001] * 9, first_tokens=[0.002] * 9))
        counts = (1,) if alone else (1, 64)
        rows = dict.fromkeys(counts, measured)
        target = Target(name, "1.0", 1, cast(Any, None), door="/agent" if name == "ours" else "")
        return Result(target, whole=rows, streamed=dict(rows), idle_mib=10)

    text = page([result("direct", 0, True), result("floor", 0.01), result("ours", 0.08)], floor="floor", settings="x")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ours")]
    assert [row[0] for row in rows] == ["ours 1.0"] * 3
    assert rows[0][1:4] == ["800", "800", "8.0"]
    assert rows[1][1:3] == ["80.0", "8.0"]
    bars = [
        [cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if line.startswith("| `/agent`")
    ]
    assert bars[0] == ["us CPU/request, 64 at a time", "800", "350", "173", "missed"]
    assert bars[1] == ["× nginx, 64 at a time", "8.0", "-", "8", "goal"]


@pytest.mark.parametrize(("measured", "word"), [(None, "-"), (0.4, "goal"), (0.5, "bar"), (1, "bar"), (1.1, "missed")])
def test_a_figure_reaches_its_goal_or_its_bar_or_misses_both(measured: float | None, word: str) -> None:
    bar = Bar("ms", "/agent", 1, 0.4, lambda _: measured)
    assert verdict(bar, measured) == word
    assert verdict(bar._replace(first=None), 0.5) == "not yet"


@linux
@pytest.mark.slow
def test_the_bench_runs_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--only-peers", "--seconds", "0.2", "--tokens", "4"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    written = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert len(written) == 1 and "# Benchmark" in written[0]
    assert "failed" not in written[0]
