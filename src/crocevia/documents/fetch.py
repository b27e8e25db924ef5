"""The one way out to an address that a caller gave: documents, photos, webhooks.

Strategy: the text of the URL is checked first; its name is resolved once, every answer must be open to us, and
the connection goes to those very addresses (the socket checks again, because an IP literal never reaches a
resolver). Redirects are followed here, hop by hop, through the same checks. What a refusal says depends on the
URL's text and on our own limits only: a closed address, an unknown name, a dead port and an error page all
read the same, so that nobody can map a network with it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl as tls
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import msgspec
from yarl import URL

from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.addresses import is_closed_name, is_numeric, is_public, matches

if TYPE_CHECKING:  # a fifth of a second and ten megabytes, which servers that fetch nothing never need
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

Resolve = Callable[[str, int], Awaitable[list[str]]]

_MAX_URL = 8192
_MAX_ADDRESSES = 32
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNTYPED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_HEADERS = {"User-Agent": "Crocevia", "Accept": "*/*", "Accept-Encoding": "identity"}


class FetchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of caller may fetch. Times are in seconds."""

    schemes: tuple[str, ...] = ("https",)
    allowed_hosts: tuple[str, ...] = ()
    """Exact names or `*.below.it`; empty means any; they never open a closed address."""
    ports: tuple[int, ...] = ()
    """Empty means 80, 443 and everything from 1024."""
    accepted_types: tuple[str, ...] = ()
    """Of the Content-Type header, empty means any (an untyped answer always passes; types are sniffed later)."""
    max_bytes: int = 10 * 1024 * 1024
    max_redirects: int = 3
    connect_timeout: float = 5.0
    timeout: float = 10.0


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A body, and what its server called it: `content_type` as sent (or empty), `name` from the last path segment."""

    data: bytes
    content_type: str
    name: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How a webhook went. Never the body: it would let a caller read what an address answers."""

    status: int
    seconds: float


class Fetcher:
    """Fetches and delivers under a policy; one per server, closed with it.

    resolve, is_open and tls_context are for tests and unusual networks: how names become numeric addresses,
    which addresses may be reached, and who signs certificates.
    """

    def __init__(
        self,
        *,
        resolve: Resolve | None = None,
        is_open: Callable[[str], bool] = is_public,
        tls_context: tls.SSLContext | None = None,
        concurrency: int = 32,
    ) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._resolve = resolve or self._look_up
        self._is_open = is_open
        self._tls = tls_context
        self._slots = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, url: str, policy: FetchPolicy) -> Fetched:
        """The body at `url`. Raises GatewayError(INVALID_REQUEST) with a sentence that tells nothing of the target."""
        async with self._bounded(policy.timeout):
            target = self._checked(url, policy)
            for _ in range(policy.max_redirects + 1):
                async with self._request("GET", target, policy) as answer:
                    if answer.status not in _REDIRECTS:
                        return await _read(answer, target, policy)
                    target = self._checked(_next(target, answer), policy)
            raise GatewayError(Reason.FETCH_REDIRECTS, limit=policy.max_redirects)

    async def deliver(self, url: str, body: bytes, headers: Mapping[str, str], policy: FetchPolicy) -> Delivery:
        """POST a webhook once. Redirects are not followed: a 3xx is the status. Raises like `fetch`."""
        async with self._bounded(policy.timeout):
            target = self._checked(url, policy)
            started = time.monotonic()
            async with self._request("POST", target, policy, body=body, headers=headers) as answer:
                return Delivery(status=answer.status, seconds=time.monotonic() - started)

    async def check(self, url: str, policy: FetchPolicy) -> None:
        """Raise if `url` would be refused now: for the moment when an address is stored. Connects to nothing."""
        async with self._bounded(policy.timeout):
            target = self._checked(url, policy)
            host = target.raw_host or ""
            try:
                addresses = [host] if _is_literal(host) else await self._resolve(host, target.port or 443)
            except OSError:
                raise GatewayError(Reason.FETCH_FAILED) from None
            if not addresses or not all(map(self._is_open, addresses)):
                raise GatewayError(Reason.FETCH_FAILED)

    async def close(self) -> None:
        """Close sockets and threads. Idempotent."""
        if self._session is not None:
            await self._session.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _bounded(self, seconds: float) -> AsyncIterator[None]:
        from aiohttp import ClientError

        # The wait for a slot is inside the time: a flood of slow targets must not make callers wait unbounded.
        try:
            async with asyncio.timeout(seconds), self._slots:
                yield
        except ClientError:
            raise GatewayError(Reason.FETCH_FAILED) from None
        except TimeoutError:
            raise GatewayError(Reason.FETCH_SLOW, seconds=round(seconds, 1)) from None
        except (OSError, ValueError):
            raise GatewayError(Reason.FETCH_FAILED) from None

    def _checked(self, url: str, policy: FetchPolicy) -> URL:
        target = parse(url)
        if target.scheme not in policy.schemes:
            raise GatewayError(Reason.FETCH_SCHEME, schemes=", ".join(policy.schemes))
        host = target.raw_host or ""
        if policy.allowed_hosts and not matches(host, policy.allowed_hosts):
            raise GatewayError(Reason.FETCH_HOST)
        if not _port_allowed(target.port or 0, policy.ports):
            raise GatewayError(Reason.FETCH_PORT)
        closed = not self._is_open(host) if _is_literal(host) else is_closed_name(host)
        if closed:
            raise GatewayError(Reason.FETCH_FAILED)
        return target

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        target: URL,
        policy: FetchPolicy,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=policy.connect_timeout)
        answer = await self._client().request(
            method, target, data=body, headers={**_HEADERS, **(headers or {})}, timeout=timeout, allow_redirects=False
        )
        try:
            yield answer
        finally:
            answer.close()

    def _client(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=cast("AbstractResolver", _GuardedResolver(self._resolve, self._is_open)),
                socket_factory=self._open_socket,
                use_dns_cache=False,
                force_close=True,
                limit=0,
                ssl=self._tls or True,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
            )
        return self._session

    def _open_socket(self, address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, place = address
        if not self._is_open(place[0]):
            raise OSError("closed address")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    async def _look_up(self, host: str, port: int) -> list[str]:
        # Own threads: names that never answer must not use up the loop's shared pool.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(8, thread_name_prefix="fetch-names")
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return [str(place[0]) for *_, place in found]


class _GuardedResolver:
    """An `AbstractResolver`: names to addresses for the connector; one closed answer refuses the whole name."""

    def __init__(self, resolve: Resolve, is_open: Callable[[str], bool]) -> None:
        self._resolve = resolve
        self._is_open = is_open

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = list(dict.fromkeys(await self._resolve(host, port)))
        if not 0 < len(addresses) <= _MAX_ADDRESSES or not all(map(self._is_open, addresses)):
            raise OSError("closed name")
        return [_answer(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing of its own to close."""


def parse(url: str) -> URL:
    """A URL whose text leaves nothing to interpretation. Raises GatewayError(INVALID_REQUEST).

    Refused: control characters, blanks, backslashes, credentials, zone ids, percent signs in the host, numbers that
    only some readers take for an address. The host comes back in lower case, in ASCII, without a trailing dot.
    """
    if not url.isprintable() or len(url) > _MAX_URL or any(sign in url for sign in ' \\"<>'):
        raise GatewayError(Reason.FETCH_MALFORMED)
    scheme, separator, rest = url.partition("://")
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    if not separator or not scheme.isalpha() or not authority or "%" in authority:
        raise GatewayError(Reason.FETCH_MALFORMED)
    if "@" in authority:
        raise GatewayError(Reason.FETCH_CREDENTIALS)
    try:
        target = URL(url).with_fragment(None)
        host = (target.raw_host or "").lower().removesuffix(".")
        target = target.with_host(host)
    except (ValueError, TypeError, UnicodeError):
        raise GatewayError(Reason.FETCH_MALFORMED) from None
    if not _is_well_formed(host):
        raise GatewayError(Reason.FETCH_MALFORMED)
    return target


def _is_well_formed(host: str) -> bool:
    if _is_literal(host):
        return True
    labels = host.split(".")
    return (
        len(host) <= 253
        and host.isascii()
        and not is_numeric(host)
        and all(0 < len(label) <= 63 and label.replace("-", "").replace("_", "").isalnum() for label in labels)
    )


def _is_literal(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True


def _port_allowed(port: int, ports: tuple[int, ...]) -> bool:
    return port in ports if ports else port in (80, 443) or port >= 1024


def _answer(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return {"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": flags}


def _next(target: URL, answer: aiohttp.ClientResponse) -> str:
    location = answer.headers.get("Location", "")
    if not location or not location.isprintable() or len(location) > _MAX_URL or "\\" in location:
        raise GatewayError(Reason.FETCH_FAILED)
    return str(target.join(URL(location)))


async def _read(answer: aiohttp.ClientResponse, target: URL, policy: FetchPolicy) -> Fetched:
    if answer.status != 200 or answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise GatewayError(Reason.FETCH_FAILED)
    content_type = answer.headers.get("Content-Type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if policy.accepted_types and media_type not in _UNTYPED and media_type not in policy.accepted_types:
        raise GatewayError(Reason.FETCH_TYPE)
    if (answer.content_length or 0) > policy.max_bytes:
        raise GatewayError(Reason.FETCH_LARGE, limit=policy.max_bytes)
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > policy.max_bytes:
            raise GatewayError(Reason.FETCH_LARGE, limit=policy.max_bytes)
    return Fetched(data=bytes(body), content_type=content_type, name=unquote(target.raw_name))
