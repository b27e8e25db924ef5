"""Which addresses and host names a caller may make us reach. Pure: no look-ups, no sockets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# An own table instead of `is_global`: what the standard library calls global changes between its versions.
_CLOSED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata lives here
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent on a public-looking address
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_OPEN_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # Teredo, ORCHID, benchmarking
        "2001:db8::/32",
        "2002::/16",  # 6to4: the inner IPv4 address decides where it goes
        "3fff::/20",
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")

_CLOSED_NAMES = frozenset({"localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "arpa"})


def is_public(address: str) -> bool:
    """Whether a numeric address, in its canonical spelling, is on the open internet. Never raises."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return _is_public_v4(parsed)
    return _is_public_v6(parsed)


def is_closed_name(host: str) -> bool:
    """Whether a lower-case name without trailing dot can only mean the inside: `localhost`, `*.internal`, one label."""
    labels = host.split(".")
    return len(labels) < 2 or labels[-1] in _CLOSED_NAMES


def is_numeric(host: str) -> bool:
    """Whether a host would be read as an IPv4 address by somebody: its last label is a number, decimal or hex."""
    last = host.rpartition(".")[2].lower()
    if last.startswith("0x"):
        return all(digit in "0123456789abcdef" for digit in last[2:])
    return last.isdigit()


def matches(host: str, patterns: tuple[str, ...]) -> bool:
    """Whether a host is on a list of names. `*.a.example` covers what is below `a.example`, not itself."""
    return any(
        host.endswith(pattern[1:].lower()) and len(host) >= len(pattern)
        if pattern.startswith("*.")
        else host == pattern.lower().rstrip(".")
        for pattern in patterns
    )


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in block for block in _CLOSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return False
    if address in _MAPPED or address in _NAT64:
        return _is_public_v4(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _OPEN_V6 and not any(address in block for block in _CLOSED_V6)
