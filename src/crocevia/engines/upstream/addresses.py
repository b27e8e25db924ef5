"""The addresses of hosts, asked once for all who want them at the same time, and kept for a little while."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

KEEP_SECONDS: Final = 10.0

Address: TypeAlias = tuple[Any, ...]
"""As `getaddrinfo` gives it: family, type, protocol, name, (address, port, …)."""


class Addresses:
    """Belongs to one event loop. What failed is asked again the next time."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, asyncio.Future[list[Address]]]] = {}

    async def of(self, host: str, port: int) -> list[Address]:
        """At least one address. Raises OSError."""
        if is_literal(host):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
        loop = asyncio.get_running_loop()
        asked, answer = self._known.get((host, port), (0.0, None))
        if answer is None or loop.time() - asked > KEEP_SECONDS:
            answer = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            self._known[host, port] = (loop.time(), answer)
        try:
            return await asyncio.shield(answer)  # others wait for it, too
        except OSError:
            self.forget(host, port)
            raise
        except UnicodeError:  # what no name can be: an empty part, or one of more than 63 bytes
            self.forget(host, port)
            raise OSError("no name of a host") from None

    def forget(self, host: str, port: int) -> None:
        """Nobody answers there: ask again."""
        self._known.pop((host, port), None)


def is_literal(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
