"""Where a URL leads, how its request begins, and a new connection to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from crocevia.engines.upstream import sockets
from crocevia.engines.upstream.addresses import Address
from crocevia.engines.upstream.connection import Connection

_SECOND_FAMILY_SECONDS: Final = 0.25  # head start of the first address family (RFC 8305)


class Origin(NamedTuple):
    host: str
    port: int
    tls: bool

    @property
    def authority(self) -> str:
        """For the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@lru_cache(maxsize=1024)
def target(url: str) -> tuple[Origin, str]:
    """The origin and the path with its query. Raises ValueError for anything but an http(s) URL with a host."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("not an http address")
    tls = parts.scheme == "https"
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    path = parts.path or "/"
    return Origin(host, parts.port or (443 if tls else 80), tls), f"{path}?{parts.query}" if parts.query else path


def request_head(method: str, origin: Origin, path: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The request line and headers. Raises ValueError if a part of them would break out of its line."""
    head = _spelled(method, origin, path, tuple(headers.items()))
    return head + (b"\r\n" if body is None else b"Content-Length: %d\r\n\r\n" % len(body))


@lru_cache(maxsize=64)
def _spelled(method: str, origin: Origin, path: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Cached: an engine asks the same address with the same headers every time."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {origin.authority}",
        "Accept-Encoding: identity",
        "User-Agent: crocevia",
        *[f"{name}: {value}" for name, value in headers],
    ]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text or " " in path:
        raise ValueError("a line break inside a header")
    return (text + "\r\n").encode("latin-1")


async def connect(
    origin: Origin, addresses: list[Address], tls: ssl.SSLContext | None, gone: Callable[[Connection], None]
) -> Connection:
    """A new connection to the quickest of these. Raises OSError (ssl.SSLError too); cancelling leaves nothing."""
    loop = asyncio.get_running_loop()
    secure: dict[str, Any] = {"ssl": tls, "server_hostname": origin.host} if origin.tls else {}
    peer = await _reached(addresses)
    try:
        sockets.prepare(peer)
        return (await loop.create_connection(lambda: Connection(peer, gone), sock=peer, **secure))[1]
    except BaseException:
        peer.close()
        raise


async def _reached(addresses: list[Address]) -> socket.socket:
    if len(addresses) > 1:
        import aiohappyeyeballs  # only a host of several addresses needs it

        return await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=_SECOND_FAMILY_SECONDS)
    family, kind, protocol, _, address = addresses[0]
    peer = socket.socket(family, kind, protocol)
    try:
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_connect(peer, address)
    except BaseException:
        peer.close()
        raise
    return peer
