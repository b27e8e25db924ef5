import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render
from crocevia.documents.fetch import Fetched, Fetcher, FetchPolicy, parse
from tests.aio import run
from tests.documents.hostile_urls import TABLE
from tests.documents.servers import INNER, OUTER, Handler, Names, Server, outside, reply, secret, serving

ANY = FetchPolicy(schemes=("http", "https"), timeout=5)


def names() -> Names:
    return Names(
        {
            "files.example": [[OUTER]],
            "inner.example": [[INNER]],
            "mixed.example": [["1.1.1.1", INNER]],
            "six.example": [["::1"]],
            "nat64.example": [["64:ff9b::7f00:1"]],
            "none.example": [[]],
            "rebinding.example": [[OUTER], [INNER]],
        }
    )


async def refused(work: Awaitable[Any]) -> str:
    with pytest.raises(GatewayError) as caught:
        await work
    assert caught.value.code is Code.INVALID_REQUEST
    for language in ("en", "it"):
        assert "{" not in render(caught.value.message, language)  # type: ignore[arg-type]
    return caught.value.message.reason


def scenario(handle: Handler, work: Callable[[Fetcher, Server, Server], Awaitable[None]]) -> None:
    """Run `work` between an open server and an inner one; the inner one must never be touched."""

    async def play() -> None:
        async with serving(handle, OUTER) as server, serving(secret, INNER) as inner:
            fetcher = Fetcher(resolve=names(), is_open=outside)
            try:
                await work(fetcher, server, inner)
            finally:
                await fetcher.close()
            assert inner.hits == 0

    run(play())


def answering(*pieces: bytes, pause: float = 0) -> Handler:
    async def handle(_: str, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return handle


def outcome(handle: Handler, policy: FetchPolicy = ANY, path: str = "/x") -> str | Fetched:
    """What fetching from a server that answers like this comes to: the body, or the key of the refusal."""
    result: list[str | Fetched] = []

    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        fetching = fetcher.fetch(f"http://files.example:{server.port}{path}", policy)
        try:
            result.append(await fetching)
        except GatewayError as error:
            assert error.code is Code.INVALID_REQUEST
            result.append(error.message.reason)

    scenario(handle, work)
    return result[0]


@pytest.mark.parametrize(("url", "key"), TABLE, ids=[repr(url)[:60] for url, _ in TABLE])
def test_a_hostile_address_is_refused_the_same_way_by_fetch_check_and_deliver(url: str, key: str) -> None:
    async def work() -> None:
        fetcher = Fetcher(resolve=names())
        try:
            assert await refused(fetcher.fetch(url, ANY)) == key
            assert await refused(fetcher.check(url, ANY)) == key
            assert await refused(fetcher.deliver(url, b"{}", {}, ANY)) == key
        finally:
            await fetcher.close()

    run(work())


def test_every_spelling_of_the_inner_server_misses_it() -> None:
    spellings = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:127.0.0.1]", "①②⑦.0.0.1"]
    spellings += ["localhost", "inner.example", "INNER.example.", "mixed.example", "127.0.0.1.", "[::ffff:7f00:1]"]

    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        for spelling in spellings:
            await refused(fetcher.fetch(f"http://{spelling}:{inner.port}/", ANY))
            await refused(
                fetcher.fetch(
                    f"http://{spelling}:{inner.port}/", FetchPolicy(schemes=("http",), allowed_hosts=(spelling,))
                )
            )

    scenario(answering(reply()), work)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_inside_is_refused_at_its_hop(status: int) -> None:
    targets = [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://inner.example:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
    ]
    targets += [
        "http://2130706433:{port}/",
        "file:///etc/passwd",
        "http://u@files.example:{port}/",
        "\\\\127.0.0.1:{port}\\x",
    ]

    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        for target in targets:
            location = target.format(port=inner.port)
            server.handle = answering(reply(status=f"{status} Moved", headers=f"Location: {location}\r\n"))
            await refused(fetcher.fetch(f"http://files.example:{server.port}/", ANY))

    scenario(answering(reply()), work)


def test_a_name_that_answers_differently_the_second_time_is_asked_once_per_connection() -> None:
    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        server.handle = answering(reply(b"first"))
        got = await fetcher.fetch(f"http://rebinding.example:{server.port}/", ANY)
        assert got.data == b"first"
        assert await refused(fetcher.fetch(f"http://rebinding.example:{inner.port}/", ANY)) == "fetch_failed"

    scenario(answering(reply()), work)


def test_a_relative_redirect_is_followed_and_the_cap_holds() -> None:
    async def handle(path: str, writer: asyncio.StreamWriter) -> None:
        hop = int(path.rpartition("/")[2])
        writer.write(reply(b"end") if hop == 0 else reply(status="302 Found", headers=f"Location: /{hop - 1}\r\n"))
        await writer.drain()

    got = outcome(handle, path="/3")
    assert isinstance(got, Fetched)
    assert got.data == b"end"
    assert outcome(handle, path="/4") == "fetch_redirects"
    assert outcome(handle, FetchPolicy(schemes=("http",), max_redirects=0), path="/1") == "fetch_redirects"


def test_the_list_of_hosts_holds_at_every_hop() -> None:
    policy = FetchPolicy(schemes=("http",), allowed_hosts=("files.example",))

    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        server.handle = answering(
            reply(status="302 Found", headers=f"Location: http://rebinding.example:{server.port}/\r\n")
        )
        assert await refused(fetcher.fetch(f"http://files.example:{server.port}/", policy)) == "fetch_host"
        assert server.hits == 1

    scenario(answering(reply()), work)


def test_https_only_refuses_a_redirect_to_http() -> None:
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("files.example").configure_cert(theirs)
    authority.configure_trust(ours)

    async def handle(path: str, writer: asyncio.StreamWriter) -> None:
        down = reply(status="302 Found", headers="Location: http://files.example:9999/\r\n")
        writer.write(down if path == "/down" else reply(b"over tls"))
        await writer.drain()

    async def work() -> None:
        table = Names({"files.example": [[OUTER]], "other.example": [[OUTER]]})
        fetcher = Fetcher(resolve=table, is_open=outside, tls_context=ours)
        try:
            async with serving(handle, OUTER, theirs) as server:
                address = f"https://files.example:{server.port}"
                assert (await fetcher.fetch(f"{address}/ok", FetchPolicy())).data == b"over tls"
                assert await refused(fetcher.fetch(f"{address}/down", FetchPolicy())) == "fetch_scheme"
                other = f"https://other.example:{server.port}/"
                assert await refused(fetcher.fetch(other, FetchPolicy())) == "fetch_failed"
        finally:
            await fetcher.close()

    run(work())


TINY = FetchPolicy(schemes=("http",), max_bytes=1000, timeout=0.5)
BODIES = {
    "exact": ([reply(b"x" * 1000)], None),
    "announced too large": ([reply(b"", length=1001)], "fetch_large"),
    "unannounced too large": ([reply(b"x" * 1001, length=-1)], "fetch_large"),
    "chunked too large": (
        [reply(length=-1, headers="Transfer-Encoding: chunked\r\n") + b"400\r\n" + b"x" * 1024 + b"\r\n0\r\n\r\n"],
        "fetch_large",
    ),
    "compressed": ([reply(gzip.compress(b"x" * 10**6), headers="Content-Encoding: gzip\r\n")], "fetch_failed"),
    "cut": ([reply(b"x" * 10, length=500)], "fetch_failed"),
    "error page": ([reply(b"x", status="404 Not Found")], "fetch_failed"),
    "partial": ([reply(b"x", status="206 Partial Content")], "fetch_failed"),
    "redirect to nowhere": ([reply(b"x", status="302 Found")], "fetch_failed"),
    "not http": ([b"SSH-2.0-OpenSSH\r\n\r\n"], "fetch_failed"),
    "huge header": ([b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n"], "fetch_failed"),
    "nothing": ([b""], "fetch_failed"),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_is_read_up_to_the_cap_whatever_its_headers_say(case: str) -> None:
    pieces, key = BODIES[case]
    got = outcome(answering(*pieces), TINY)
    assert (got.data if isinstance(got, Fetched) else got) == (key or b"x" * 1000)


def test_slow_bytes_end_at_the_total_time() -> None:
    assert outcome(answering(reply(length=900), *[b"x"] * 100, pause=0.05), TINY) == "fetch_slow"


def test_a_dead_port_reads_like_a_closed_address() -> None:
    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        dead = await asyncio.start_server(lambda *_: None, OUTER, 0)
        port = dead.sockets[0].getsockname()[1]
        dead.close()
        assert await refused(fetcher.fetch(f"http://files.example:{port}/", ANY)) == "fetch_failed"

    scenario(answering(reply()), work)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("image/png", None),
        ("IMAGE/PNG; q=1", None),
        ("application/octet-stream", None),
        ("", None),
        ("text/html", "fetch_type"),
    ],
)
def test_the_announced_type_must_be_accepted_or_unknown(sent: str, expected: str | None) -> None:
    policy = FetchPolicy(schemes=("http",), accepted_types=("image/png",))
    got = outcome(
        answering(reply(b"x", headers=f"Content-Type: {sent}\r\n" if sent else "")), policy, "/a/f%C3%A9.png?k=1"
    )
    assert got == (expected or Fetched(data=b"x", content_type=sent, name="fé.png"))


def test_a_request_carries_no_secret_and_asks_for_plain_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")

    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        server.handle = answering(reply(b"x", headers="Set-Cookie: a=b\r\n"))
        for _ in range(2):
            await fetcher.fetch(f"http://files.example:{server.port}/a#fragment", ANY)
        assert server.hits == 2
        for request in server.requests:
            assert request.startswith("GET /a HTTP/1.1\r\n")
            assert "Accept-Encoding: identity\r\n" in request
            assert not any(name in request.lower() for name in ("cookie", "authorization", "referer", "proxy"))

    scenario(answering(reply()), work)


def test_a_webhook_is_delivered_once_and_its_answer_stays_unread() -> None:
    async def work(fetcher: Fetcher, server: Server, inner: Server) -> None:
        server.handle = answering(reply(status="302 Found", headers=f"Location: http://127.0.0.1:{inner.port}/\r\n"))
        address = f"http://files.example:{server.port}/hook"
        delivery = await fetcher.deliver(address, b'{"a":1}', {"X-Signature": "s"}, ANY)
        assert delivery.status == 302
        assert server.hits == 1
        assert "POST /hook" in server.requests[0]
        assert "X-Signature: s" in server.requests[0]
        await fetcher.check(address, ANY)
        assert server.hits == 1

    scenario(answering(reply()), work)


def test_more_fetches_than_slots_wait_within_their_own_time() -> None:
    async def work() -> None:
        async with serving(answering(reply(length=10), pause=30), OUTER) as server:
            fetcher = Fetcher(resolve=names(), is_open=outside, concurrency=1)
            policy = FetchPolicy(schemes=("http",), timeout=0.3)
            try:
                fetching = [fetcher.fetch(f"http://files.example:{server.port}/", policy) for _ in range(3)]
                assert await asyncio.gather(*map(refused, fetching)) == ["fetch_slow"] * 3
            finally:
                await fetcher.close()
            assert server.hits <= 2

    run(work())


def test_the_machine_s_own_resolver_is_asked_off_the_loop_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def answer(host: str, port: int, **_: Any) -> list[Any]:
        asked.append((host, threading.current_thread().name))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (INNER if host == "in.example" else OUTER, port))]

    async def work() -> None:
        async with serving(answering(reply(b"x")), OUTER) as server, serving(secret, INNER) as inner:
            monkeypatch.setattr(socket, "getaddrinfo", answer)
            fetcher = Fetcher(is_open=outside)
            try:
                assert (await fetcher.fetch(f"http://out.example:{server.port}/", ANY)).data == b"x"
                assert await refused(fetcher.fetch(f"http://in.example:{inner.port}/", ANY)) == "fetch_failed"
            finally:
                await fetcher.close()
            assert inner.hits == 0
        assert [host for host, _ in asked] == ["out.example", "in.example"]
        assert all(thread.startswith("fetch-names") for _, thread in asked)

    run(work())


def test_an_ipv6_literal_is_reached_when_its_address_is_open() -> None:
    async def work() -> None:
        try:
            listener = await asyncio.start_server(lambda *_: None, "::1", 0)
        except OSError:
            pytest.skip("no IPv6 here")
        listener.close()
        async with serving(answering(reply(b"six")), "::1") as server:
            fetcher = Fetcher(is_open=lambda address: address == "::1")
            try:
                assert (await fetcher.fetch(f"http://[::1]:{server.port}/", ANY)).data == b"six"
            finally:
                await fetcher.close()

    run(work())


def test_the_socket_checks_again_what_the_resolver_let_through() -> None:
    async def work() -> None:
        verdicts = iter([True, False])
        async with serving(secret, INNER) as inner:
            fetcher = Fetcher(resolve=names(), is_open=lambda _: next(verdicts, False))
            try:
                url = f"http://inner.example:{inner.port}/"
                assert await refused(fetcher.fetch(url, ANY)) == "fetch_failed"
            finally:
                await fetcher.close()
            assert inner.hits == 0

    run(work())


@given(st.text(max_size=60))
def test_no_text_makes_parsing_fail_otherwise(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}/x", f"http://[{text}]/"):
        try:
            target = parse(url)
        except GatewayError:
            continue
        host = target.raw_host or ""
        assert host.isascii()
        assert host == host.lower()
        assert not set(host) & set("@/\\ %#?")
