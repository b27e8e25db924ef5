"""What an operator says of a Model Context Protocol server."""

from __future__ import annotations

import msgspec


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """command: starts it, and speaks over its standard streams; else `url`. headers, env: sent along.

    allow: the only tools that agents may have; None: all. idempotent: those that may run again after a crash.
    """

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    allow: tuple[str, ...] | None = None
    idempotent: tuple[str, ...] = ()
    start_seconds: float = 20.0

    def __repr__(self) -> str:
        return f"McpServer(url={self.url!r})"
