"""What an operator says of a Model Context Protocol server."""

from __future__ import annotations

import msgspec


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server of the Model Context Protocol."""

    command: tuple[str, ...] = ()
    """Starts the server, which then speaks over its standard streams; else `url`."""
    env: dict[str, str] = {}
    """Variables for `command`."""
    url: str | None = None
    """Where the server is reached over HTTP."""
    headers: dict[str, str] = {}
    """Sent to `url` with each request."""
    allow: tuple[str, ...] | None = None
    """The only tools that agents may have; none: all."""
    idempotent: tuple[str, ...] = ()
    """Tools that may run again after a crash."""
    start_seconds: float = 20.0
    """How long the server may take to answer at first."""

    def __repr__(self) -> str:
        return f"McpServer(url={self.url!r})"
