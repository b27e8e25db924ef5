"""What the system knows of a connection to a provider, and what it is told about it."""

from __future__ import annotations

import select
import socket
import struct
from typing import Final, NamedTuple

KEEPALIVE_SECONDS: Final = 60
"""Of silence, after which the other side is asked for a sign: models think for minutes, and routers forget sooner."""
_PROBE_SECONDS: Final = 15
_PROBES: Final = 4

_HUNG_UP: Final = getattr(select, "POLLRDHUP", 0)  # and what is told unasked: POLLHUP, POLLERR, POLLNVAL
_TCP_INFO: Final[int | None] = getattr(socket, "TCP_INFO", None)
# Of Linux's `struct tcp_info`: tcpi_rtt and tcpi_rttvar, in microseconds, and tcpi_bytes_acked.
_TCP_INFO_FIELDS: Final = struct.Struct("=68xII44xQ")


class Traffic(NamedTuple):
    """acked: bytes that the other side's system has confirmed. round_trip: seconds, at the worst."""

    acked: int
    round_trip: float


def prepare(sock: socket.socket) -> None:
    """Have the system send at once, and ask for signs of life."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle = getattr(socket, "TCP_KEEPIDLE", getattr(socket, "TCP_KEEPALIVE", None))  # the second is macOS's
    if idle is not None:
        sock.setsockopt(socket.IPPROTO_TCP, idle, KEEPALIVE_SECONDS)
    for name, value in (("TCP_KEEPINTVL", _PROBE_SECONDS), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def hung_up(sock: socket.socket) -> bool:
    """Whether the other side has closed it, though the event loop may not have heard of it yet."""
    poll = select.poll()
    poll.register(sock.fileno(), _HUNG_UP)
    return bool(poll.poll(0))


def traffic(sock: socket.socket) -> Traffic | None:
    """None where the system does not tell."""
    if _TCP_INFO is None:
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_FIELDS.size)
    except OSError:
        return None
    if len(raw) < _TCP_INFO_FIELDS.size:
        return None
    trip, variance, acked = _TCP_INFO_FIELDS.unpack(raw)
    return Traffic(acked, (trip + 4 * variance) / 1e6)
