"""Who may use an operator's surface: what a request's address and headers prove, under which rules. Pure.

The order of the checks is a contract: the attribution of a proxied request, the address, the user, then the secret.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, TypeAlias
from unicodedata import normalize
from urllib.parse import urlsplit

import msgspec

from crocevia.core.detailed_errors import ScopeMissing
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.forwarding import Address, Network, address, forwarded_client, hops, within

Mode: TypeAlias = Literal["token", "password", "trusted-proxy", "none"]

ADMIN: Final = "operator.admin"
READ: Final = "operator.read"
WRITE: Final = "operator.write"
SCOPES: Final = frozenset(
    {
        ADMIN,
        "operator.approvals",
        "operator.pairing",
        READ,
        "operator.talk.secrets",
        WRITE,
    }
)
_IMPLIED: Final = {WRITE: {READ}}
_FORWARDING: Final = ("forwarded", "x-real-ip")
_FORWARDING_PREFIX: Final = "x-forwarded-"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`proxies`: whose forwarding headers are believed. Secrets None: there is none of that kind."""

    mode: Mode = "token"
    hosts: frozenset[str] = frozenset()
    """Names by which the server may be reached in mode `none`, besides those of the loopback."""
    origins: frozenset[str] = frozenset()
    """Origins of other servers whose pages may call where no secret protects, as browsers spell them."""
    only_loopback: bool = False
    """The server listens on the loopback alone."""
    token: str | None = None
    password: str | None = None
    proxies: tuple[Network, ...] = ()
    user_header: str | None = None
    required_headers: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    allow_loopback: bool = False

    def __repr__(self) -> str:
        return f"Rules(mode={self.mode!r})"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What came: the peer's address (None for a local socket) and the headers, names in lower case."""

    peer: str | None
    headers: Mapping[str, str]

    @property
    def bearer(self) -> str | None:
        """The secret of the Authorization header, if it is one, in one spelling: however its letters were encoded."""
        scheme, _, secret = self.headers.get("authorization", "").partition(" ")
        return _spelled(secret.strip(" \t")) or None if scheme.lower() == "bearer" else None


class Grant(msgspec.Struct, frozen=True):
    """subject: who it is, for what is remembered of them. scopes: what they may do."""

    subject: str
    scopes: frozenset[str] = SCOPES

    @property
    def owner(self) -> bool:
        return ADMIN in self.scopes

    def require(self, scope: str) -> None:
        """Raises GatewayError(FORBIDDEN) that names the scope."""
        if ADMIN in self.scopes or scope in self.scopes:
            return
        held = self.scopes.union(*(_IMPLIED.get(scope, ()) for scope in self.scopes))
        if scope not in held:
            raise ScopeMissing(scope)


def client(credentials: Credentials, rules: Rules) -> Address | None:
    """The address of whoever asks: the peer, or what trusted proxies say. None: a local socket.

    Raises GatewayError(FORBIDDEN) when a request was forwarded and nobody trustworthy says by whom.
    """
    if not forwarded(credentials):
        return address(credentials.peer)
    found = None
    if within(address(credentials.peer), rules.proxies):
        found = forwarded_client(hops(credentials.headers.get), rules.proxies)
    if found is None:
        raise GatewayError(Reason.PROXY_ATTRIBUTION)
    return found


def forwarded(credentials: Credentials) -> bool:
    """Whether a proxy had this request in its hands."""
    return any(name in _FORWARDING or name.startswith(_FORWARDING_PREFIX) for name in credentials.headers)


def by_secret(credentials: Credentials, rules: Rules, matches: Callable[[str], bool]) -> bool | None:
    """Whether the bearer is the shared secret; None if there is no bearer. matches: the operator's own token."""
    given = credentials.bearer
    if given is None:
        return None
    if rules.mode == "token":
        return _same(given, rules.token) if rules.token is not None else matches(given)
    return _same(given, rules.password)


def by_proxy(credentials: Credentials, rules: Rules, is_own: Callable[[Address], bool]) -> str | None:
    """The user that a trusted proxy vouches for; None for every reason there is. is_own: an address of this host."""
    peer = address(credentials.peer)
    if peer is None or not rules.user_header or not rules.proxies or not within(peer, rules.proxies):
        return None
    if peer.is_loopback:
        if not rules.allow_loopback:
            return None
    elif is_own(peer):
        return None
    if any(not credentials.headers.get(name.lower(), "").strip() for name in rules.required_headers):
        return None
    user = credentials.headers.get(rules.user_header.lower(), "").strip()
    if not user or (rules.allow_users and user not in rules.allow_users):
        return None
    return user if is_own_page(credentials, rules) else None


def is_local(credentials: Credentials) -> bool:
    """From this machine, with no proxy between."""
    peer = address(credentials.peer)
    return (peer is None or peer.is_loopback) and not forwarded(credentials)


def is_own_page(credentials: Credentials, rules: Rules) -> bool:
    """Whether a browser's page, if it is one, came from this very server or from an origin that the operator names."""
    origin = credentials.headers.get("origin")
    if origin is None or origin in rules.origins:
        return True
    return urlsplit(origin).netloc.lower() == credentials.headers.get("host", "").lower()


def is_known_host(credentials: Credentials, rules: Rules) -> bool:
    """Whether the request is for a name of ours: a foreign page can have any other name point at this machine."""
    host = credentials.headers.get("host", "").lower()
    found = address(host)
    if found is not None:  # no name, so nobody could point it elsewhere
        return found.is_loopback or str(found) in rules.hosts or not rules.only_loopback
    name = host.rpartition(":")[0] or host
    return name in rules.hosts or name == "localhost" or name.endswith(".localhost")


def declared_scopes(credentials: Credentials) -> frozenset[str]:
    """What a caller whose identity is carried narrows itself to; everything if it says nothing."""
    named = credentials.headers.get("x-openclaw-scopes")
    if named is None:
        return SCOPES
    return frozenset(scope for part in named.split(",") if (scope := part.strip()))


def _spelled(sent: str) -> str:
    """A header's text, which servers hand over as Latin-1: clients send UTF-8, composed or not, or Latin-1 itself."""
    if sent.isascii():
        return sent
    with suppress(UnicodeError):
        sent = sent.encode("latin-1").decode()
    return normalize("NFC", sent)


def _same(given: str, secret: str | None) -> bool:
    return secret is not None and hmac.compare_digest(given.encode(), normalize("NFC", secret).encode())
