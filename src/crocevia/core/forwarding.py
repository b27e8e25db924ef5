"""Who is behind a proxy: the one reader of forwarding headers. They are believed from trusted proxies only. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Headers: TypeAlias = Callable[[str], str | None]
"""The value of a header by its name in lower case; None: it is not there."""

_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_SCHEMES: Final = frozenset({"http", "https"})


def networks(spelled: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks; what cannot be read stands for nobody."""
    found = []
    for text in spelled:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError:
            continue
    return tuple(found)


def address(text: str | None) -> Address | None:
    """An address with or without port, brackets and quotes; None for anything else."""
    if not text:
        return None
    bare = text.strip().strip('"')
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def within(found: Address | None, known: tuple[Network, ...]) -> bool:
    """Whether the address is in one of the networks; False if there is none."""
    return found is not None and any(found in network for network in known)


def client_of(peer: str | None, headers: Headers, proxies: tuple[Network, ...]) -> Address | None:
    """Who asks: the peer, or whom the trusted proxies between name. None: a local socket, or nobody can say."""
    near = address(peer)
    if not within(near, proxies):
        return near
    named = hops(headers)
    return forwarded_client(named, proxies) if named else near


def forwarded_client(hops: list[str], proxies: tuple[Network, ...]) -> Address | None:
    """The last address that no trusted proxy has; None: it cannot be read, or there is none."""
    for text in reversed(hops):
        hop = address(text)
        if hop is None:
            return None
        if not within(hop, proxies):
            return None if hop.is_loopback else hop
    return None


def origin_of(scheme: str, peer: str | None, headers: Headers, proxies: tuple[Network, ...]) -> str:
    """The scheme and host by which the caller reached us, such as `https://example.org:8443`."""
    host = headers("host") or ""
    if within(address(peer), proxies):
        host = _first(headers("x-forwarded-host")) or host
        told = _first(headers("x-forwarded-proto"))
        scheme = told if told in _SCHEMES else scheme
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}"


def _first(value: str | None) -> str:
    return (value or "").partition(",")[0].strip()


def hops(headers: Headers) -> list[str]:
    """Addresses that the request went through, the first one first."""
    if (listed := headers("x-forwarded-for")) is not None:
        return [hop.strip() for hop in listed.split(",")]
    if (told := headers("forwarded")) is not None:
        pairs = (pair for hop in told.split(",") for pair in hop.split(";"))
        return [value for name, _, value in (pair.partition("=") for pair in pairs) if name.strip().lower() == "for"]
    near = headers("x-real-ip")
    return [] if near is None else [near]
