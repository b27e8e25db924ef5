from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trustme

from crocevia.core.errors import Code, GatewayError
from crocevia.engines.upstream import sockets
from crocevia.engines.upstream.http import HttpClient, HttpResponse, Timeouts
from tests.aio import run
from tests.fakes.provider import CUT, RESET, Play, Provider, Step, answer, play, silence


async def send(http: HttpClient, url: str, body: bytes = b"{}", seconds: float = 5) -> HttpResponse:
    deadline = asyncio.get_running_loop().time() + seconds
    return await http.open("POST", url, {"Content-Type": "application/json", "X-Key": "k"}, body, deadline=deadline)


def with_provider(*plays: Play, timeouts: Timeouts | None = None) -> Callable[..., None]:
    """Run a test body against a client and a provider, and see that neither leaves anything open."""

    def decorate(body: Callable[[HttpClient, Provider], Awaitable[None]]) -> None:
        async def work() -> None:
            async with Provider(*plays) as provider:
                http = HttpClient(timeouts)
                try:
                    await body(http, provider)
                finally:
                    await http.close()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left

        run(work())

    return decorate


def test_a_body_arrives_as_it_was_sent_and_the_request_says_what_it_should() -> None:
    @with_provider(play(b"one", b"two"))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url + "/v1/x?a=b", b'{"a": 1}')
        assert response.status == 200
        assert response.header("content-type") == "text/event-stream"
        assert await response.read() == b"onetwo"
        request = provider.requests[0]
        assert (request.method, request.path, request.body) == ("POST", "/v1/x?a=b", b'{"a": 1}')
        assert request.headers["accept-encoding"] == "identity"
        assert request.headers["x-key"] == "k"


def test_a_body_of_many_megabytes_is_sent_whole_and_without_a_warning() -> None:
    @with_provider(answer(200, b"ok"))
    async def _(http: HttpClient, provider: Provider) -> None:
        body = b"x" * (12 * 2**20)
        assert await (await send(http, provider.url, body)).read() == b"ok"
        assert provider.requests[0].body == body


def test_each_read_gives_what_is_there_without_waiting_for_more() -> None:
    gate = asyncio.Event()

    @with_provider(play(b"first", gate, b"second"))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert await response.chunk() == b"first"
        gate.set()
        assert await response.chunk() == b"second"
        assert await response.chunk() == b""


def test_a_finished_exchange_leaves_its_connection_for_the_next() -> None:
    gate = asyncio.Event()

    @with_provider(play(b"all", gate))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert await response.chunk() == b"all"
        response.finish()  # the end has not arrived yet
        gate.set()
        await provider.requests[0].ended.wait()
        while not http._kept:  # the tail is on its way to us; the run is bounded
            await asyncio.sleep(0.001)
        assert await (await send(http, provider.url)).read() == b"all"
        assert provider.open == 1


def test_fifty_abandoned_streams_do_not_drain_the_pool() -> None:
    gate = asyncio.Event()

    @with_provider(*[play(b"first", gate)] * 50, answer(200, b"ok"))
    async def _(http: HttpClient, provider: Provider) -> None:
        for _ in range(50):
            response = await send(http, provider.url)
            await response.chunk()
            response.close()
        async with asyncio.timeout(1):
            for request in provider.requests:
                await request.ended.wait()
                assert request.aborted
            assert await (await send(http, provider.url)).read() == b"ok"
        assert provider.open == 1


@pytest.mark.parametrize("when", ["before the status", "before the first byte", "in the middle"])
def test_cancelling_the_reader_closes_the_connection_at_once(when: str) -> None:
    gate = asyncio.Event()
    plays = {
        "before the status": silence(gate),
        "before the first byte": play(gate),
        "in the middle": play(b"first", gate),
    }

    @with_provider(plays[when])
    async def _(http: HttpClient, provider: Provider) -> None:
        async def consume() -> None:
            response = await send(http, provider.url)
            try:
                while await response.chunk():
                    reading.set()
            finally:
                response.close()

        reading = asyncio.Event()
        task = asyncio.create_task(consume())
        request = await provider.request(0)
        if when == "in the middle":
            await reading.wait()
        task.cancel()
        async with asyncio.timeout(1):
            await request.ended.wait()
        assert request.aborted
        await asyncio.wait([task])
        assert task.cancelled()


QUICK = Timeouts(connect=5, first_byte=0.05, idle=0.05)


@pytest.mark.parametrize("kind", ["first byte", "idle", "deadline before", "deadline within"])
def test_silence_is_a_timeout_and_closes_the_connection(kind: str) -> None:
    gate = asyncio.Event()
    timeouts = QUICK if kind in ("first byte", "idle") else None
    seconds = 0.05 if kind.startswith("deadline") else 5

    @with_provider(silence(gate) if kind in ("first byte", "deadline before") else play(b"a", gate), timeouts=timeouts)
    async def _(http: HttpClient, provider: Provider) -> None:
        with pytest.raises(GatewayError) as failure:
            response = await send(http, provider.url, seconds=seconds)
            while await response.chunk():
                pass
        assert failure.value.code is Code.UPSTREAM_TIMEOUT
        assert not failure.value.retryable
        await provider.requests[0].ended.wait()
        assert provider.requests[0].aborted


def test_idle_time_counts_only_while_someone_reads() -> None:
    gate = asyncio.Event()

    @with_provider(play(b"a", gate, b"b"), timeouts=Timeouts(idle=0.1))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert await response.chunk() == b"a"
        await asyncio.sleep(0.25)  # longer than `idle`: a slow reader is not a silent provider
        gate.set()
        assert await response.read() == b"b"


@pytest.mark.parametrize("step", [CUT, RESET])
@pytest.mark.parametrize("before", [(), (b"a",)])
def test_a_cut_is_one_failure(step: str, before: tuple[bytes, ...]) -> None:
    @with_provider(play(*before, step))  # type: ignore[arg-type]  # a parametrized literal is a str
    async def _(http: HttpClient, provider: Provider) -> None:
        with pytest.raises(GatewayError) as failure:
            await (await send(http, provider.url)).read()
        assert failure.value.code is Code.UPSTREAM_FAILED


def test_a_refused_connection_may_be_tried_again() -> None:
    @with_provider(answer(200, b""))
    async def _(http: HttpClient, provider: Provider) -> None:
        with pytest.raises(GatewayError) as failure:
            await send(http, "http://127.0.0.1:1")
        assert failure.value.code is Code.UPSTREAM_FAILED
        assert failure.value.retryable


def shut(transport: asyncio.Transport) -> None:
    """Close the other side of a connection now, in the middle of a step of the loop."""
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as theirs:
        theirs.shutdown(socket.SHUT_RDWR)


def test_a_kept_connection_that_was_closed_unnoticed_is_replaced() -> None:
    @with_provider(answer(200, b"1"), answer(200, b"2"))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"1"
        for connection in tuple(provider.connections):
            shut(connection.transport)  # in this step of the loop: the client cannot have heard of it
        assert await (await send(http, provider.url)).read() == b"2"
        assert len(provider.requests) == 2


@pytest.mark.parametrize("gates", [0, 1])
def test_a_request_that_a_kept_connection_delivered_is_not_sent_again(gates: int) -> None:
    opened = [asyncio.Event() for _ in range(gates)]

    @with_provider(answer(200, b"1"), silence(*opened), answer(200, b"2"))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"1"
        for gate in opened:
            asyncio.get_running_loop().call_later(0.1, gate.set)
        with pytest.raises(GatewayError) as failure:
            await send(http, provider.url)
        assert failure.value.code is Code.UPSTREAM_FAILED
        assert len(provider.requests) == 2


@pytest.mark.parametrize(("after", "requests"), [(0.0, 3), (0.3, 2)])
def test_a_request_that_cannot_have_been_read_is_sent_again_within_a_round_trip(
    monkeypatch: pytest.MonkeyPatch, after: float, requests: int
) -> None:
    """On loopback every byte is confirmed at once, so that the system is made to say that it was not."""
    monkeypatch.setattr(sockets, "traffic", lambda sock: sockets.Traffic(100, 0.01))
    gate = asyncio.Event()

    @with_provider(answer(200, b"1"), silence(gate), answer(200, b"2"))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"1"
        asyncio.get_running_loop().call_later(after, gate.set)
        if requests == 3:
            assert await (await send(http, provider.url)).read() == b"2"
        else:
            with pytest.raises(GatewayError):
                await send(http, provider.url)
        assert len(provider.requests) == requests


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not tell of its connections")
def test_the_system_tells_what_the_other_side_confirmed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        with theirs:
            before = sockets.traffic(ours)
            ours.sendall(b"x" * 1000)
            assert theirs.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
            after = sockets.traffic(ours)
            assert before is not None and after is not None
            assert after.acked - before.acked == 1000
            assert 0 < after.round_trip < 1
            assert not sockets.hung_up(ours)
            theirs.shutdown(socket.SHUT_WR)
            assert sockets.hung_up(ours)


@pytest.mark.skipif(shutil.which("ss") is None, reason="no ss to look with")
def test_silent_connections_to_providers_are_kept_alive() -> None:
    gate = asyncio.Event()

    @with_provider(silence(gate))
    async def _(http: HttpClient, provider: Provider) -> None:
        asking = asyncio.ensure_future(send(http, provider.url))
        await provider.request(0)
        port = provider.url.rpartition(":")[2]
        seen = await asyncio.to_thread(
            subprocess.run, ["ss", "-tnoH", f"dport = :{port}"], capture_output=True, text=True, check=True
        )
        gate.set()
        with pytest.raises(GatewayError):
            await asking
        timer = re.search(r"timer:\(keepalive,(\d+)(sec|min)", seen.stdout)
        assert timer is not None, seen.stdout
        assert (timer[2], int(timer[1])) == ("min", 1) or (timer[2] == "sec" and 50 <= int(timer[1]) <= 60)


def test_a_new_connection_that_hangs_up_is_not_tried_again() -> None:
    @with_provider(silence())
    async def _(http: HttpClient, provider: Provider) -> None:
        with pytest.raises(GatewayError) as failure:
            await send(http, provider.url)
        assert not failure.value.retryable
        assert len(provider.requests) == 1


def test_a_stale_connection_that_began_to_answer_is_not_tried_again() -> None:
    half = Play((b"HTTP/1.1 200 OK\r\nX-", CUT), chunked=False, head=False)

    @with_provider(answer(200, b"1"), half, answer(200, b"2"))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"1"
        with pytest.raises(GatewayError):
            await send(http, provider.url)
        assert len(provider.requests) == 2


def test_a_body_beyond_its_bound_is_refused() -> None:
    @with_provider(answer(200, b"x" * 100))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        with pytest.raises(GatewayError) as failure:
            await response.read(50)
        response.close()
        assert failure.value.code is Code.UPSTREAM_FAILED


def test_redirects_are_not_followed_and_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    @with_provider(answer(307, b"", Location="/elsewhere"))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert response.status == 307
        response.close()
        assert len(provider.requests) == 1


def test_closing_twice_and_closing_an_unused_client_are_fine() -> None:
    async def work() -> None:
        http = HttpClient()
        await http.close()
        await http.close()

    run(work())


def test_a_certificate_that_nobody_signed_is_not_trusted() -> None:
    async def work() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        async with Provider(answer(200, b"ok"), tls=context) as provider:
            http = HttpClient()
            try:
                with pytest.raises(GatewayError) as failure:
                    await send(http, provider.url)
                assert failure.value.message.reason == "upstream_untrusted"
                assert not failure.value.retryable
                assert provider.requests == []
            finally:
                await http.close()

    run(work())


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
def test_a_large_request_that_nobody_reads_is_given_up_at_once() -> None:
    import fcntl
    import termios

    class Deaf(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            cast("asyncio.Transport", transport).pause_reading()
            accepted.append(cast("asyncio.Transport", transport))
            came.set()

    accepted: list[asyncio.Transport] = []
    came = asyncio.Event()

    def unread(transport: asyncio.Transport) -> int:
        waiting = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
        return int.from_bytes(waiting, sys.byteorder)

    async def work() -> None:
        server = await asyncio.get_running_loop().create_server(Deaf, "127.0.0.1", 0)
        http = HttpClient()
        port = server.sockets[0].getsockname()[1]
        before = len(os.listdir("/proc/self/fd"))
        task = asyncio.create_task(send(http, f"http://127.0.0.1:{port}", b"x" * (32 * 2**20)))
        await came.wait()
        while not unread(accepted[0]):  # the request is under way
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(1):
            while (left := len(os.listdir("/proc/self/fd")) - before) > 1:
                await asyncio.sleep(0.001)
        accepted[0].abort()
        await http.close()
        server.close()
        await server.wait_closed()
        assert left <= 1  # the deaf side's

    run(work())


def raw(*pieces: Step) -> Play:
    """An answer written as it stands, status line and all."""
    return Play(pieces, chunked=False, head=False)


def test_an_interim_answer_is_not_the_answer() -> None:
    @with_provider(raw(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert (response.status, await response.read()) == (200, b"ok")


def test_a_body_without_a_length_ends_where_the_connection_does() -> None:
    @with_provider(Play((b"HTTP/1.1 200 OK\r\n\r\none", b"two", CUT), chunked=False, head=False))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"onetwo"


def test_a_body_without_a_length_that_stalls_is_a_timeout_and_not_complete() -> None:
    @with_provider(raw(b"HTTP/1.1 200 OK\r\n\r\none", asyncio.Event()), timeouts=Timeouts(idle=0.05))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert await response.chunk() == b"one"
        with pytest.raises(GatewayError) as failure:
            await response.chunk()
        assert failure.value.code is Code.UPSTREAM_TIMEOUT


@pytest.mark.parametrize("status", [204, 304, 400, 429, 500])
def test_a_connection_serves_again_after_any_status_that_was_read_to_its_end(status: int) -> None:
    empty = raw(b"HTTP/1.1 %d X\r\n\r\n" % status) if status in (204, 304) else answer(status, b"{}")

    @with_provider(empty, answer(200, b"ok"))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url)
        assert response.status == status
        await response.read()
        assert await (await send(http, provider.url)).read() == b"ok"
        assert provider.open == 1


def test_a_provider_that_hangs_up_on_every_connection_is_remembered_by_none() -> None:
    class Rude(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            cast("asyncio.Transport", transport).abort()

    async def work() -> None:
        server = await asyncio.get_running_loop().create_server(Rude, "127.0.0.1", 0)
        http = HttpClient()
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for _ in range(50):
            with pytest.raises(GatewayError) as failure:
                await send(http, url)
            assert failure.value.code is Code.UPSTREAM_FAILED
        await asyncio.sleep(0)
        assert not http._all
        await http.close()
        server.close()
        await server.wait_closed()

    run(work())


@pytest.mark.parametrize(
    "bytes_",
    [
        b"HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI",
        b"SMTP ready\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
        b"HTTP/9.9 abc\r\n\r\n",
    ],
)
def test_what_is_not_http_is_one_failure(bytes_: bytes) -> None:
    @with_provider(Play((bytes_, asyncio.Event()), chunked=False, head=False))
    async def _(http: HttpClient, provider: Provider) -> None:
        with pytest.raises(GatewayError) as failure:
            await send(http, provider.url)
        assert failure.value.code is Code.UPSTREAM_FAILED


def test_bytes_that_nobody_asked_for_are_never_taken_for_the_next_answer() -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"

    @with_provider(raw(ok + b"1" + ok + b"X"), raw(ok + b"2"))
    async def _(http: HttpClient, provider: Provider) -> None:
        assert await (await send(http, provider.url)).read() == b"1"
        assert await (await send(http, provider.url)).read() == b"2"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    @with_provider(answer(200, b""))
    async def _(http: HttpClient, provider: Provider) -> None:
        deadline = asyncio.get_running_loop().time() + 5
        with pytest.raises(GatewayError):
            await http.open("POST", provider.url, {"X": value}, b"", deadline=deadline)
        assert not provider.requests


def test_a_reader_that_stops_reading_makes_the_provider_wait() -> None:
    pieces = [b"x" * 65536] * 400  # 25 MiB, more than sockets hold

    @with_provider(play(*pieces))
    async def _(http: HttpClient, provider: Provider) -> None:
        response = await send(http, provider.url, seconds=20)
        first = await response.chunk()
        await asyncio.sleep(0.3)  # long enough for all of it, were nobody made to wait
        (connection,) = provider.connections
        assert connection.transport.get_write_buffer_size() > 10 * 2**20
        assert len(first) + len(await response.read(2**30)) == 65536 * 400
