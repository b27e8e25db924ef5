"""The log's bench counts right and runs; what it measures is nobody's assertion."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from bench.log import main
from bench.log_store import append
from bench.readers import Counted, Reader, moment

from tests.aio import run

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
PING = b'data: {"type":"ping","ts":"2026-11-30T00:00:00.000Z"}\n\n'


def frame(seq: int) -> bytes:
    data = b'id: e:%d\ndata: {"seq":%d,"ts":"2026-11-30T00:00:00.250Z"}\n\n' % (seq, seq)
    return b"%x\r\n%b\r\n" % (len(data), data)


def heard(pieces: list[bytes]) -> Counted:
    async def feed() -> Counted:
        counted = Counted()
        greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reader = Reader(b"", counted, greeted)
        for piece in pieces:
            reader.data_received(piece)
        await greeted
        return counted

    return run(feed())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_events_after_the_first_ping_are_counted_however_they_are_cut(size: int) -> None:
    stream = b"".join(frame(seq) for seq in range(1, 8))
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert heard([HEAD + PING, *pieces]).events == 7


def test_a_later_ping_is_not_an_event_and_has_no_delay() -> None:
    counted = heard([HEAD + PING, PING, frame(1)])
    assert counted.events == 1
    assert len(counted.delays) == 1


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(ConnectionError, match="401"):
        heard([b"HTTP/1.1 401 Unauthorized\r\n\r\n"])


def test_moments_are_read_as_they_are_written() -> None:
    assert moment(b"1970-01-01T00:01:00.250Z") == 60.25


def test_appends_are_counted_in_rows(tmp_path: Path) -> None:
    began = time.perf_counter()
    found = run(append(tmp_path, 5, 3, 0.2), timeout=30)
    assert found.rows == 3 * len(found.waits)
    assert found.rows > 0
    assert 0.2 <= found.seconds < time.perf_counter() - began
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_section_against_a_server_runs(tmp_path: Path) -> None:
    words = ["message", "replay", "subscribers", "--runs", "1", "--seconds", "0.5", "--subscribers", "5"]
    page = main([*words, "--folder", str(tmp_path)])
    for name in ("first event p50", "replay of 10,000 events, cold", "5 subscribers: delay p99"):
        assert name in page
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(SystemExit, match="nonsense"):
        main(["nonsense"])
