"""Operators: whoever holds the gateway's secret, comes through its proxy, or holds a user's API key."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.forwarding import Address
from crocevia.policy.lockout import Lockout, LockoutRules
from crocevia.policy.operators import (
    READ,
    WRITE,
    Credentials,
    Grant,
    Rules,
    by_proxy,
    by_secret,
    client,
    declared_scopes,
    forwarded,
    is_known_host,
    is_local,
    is_own_page,
)
from crocevia.policy.rate_limits import client_network
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control.api_keys import PREFIX
from crocevia.runtime.control.context import Control
from crocevia.storage import meta
from crocevia.storage.home import key_secret

__all__ = ["Credentials", "LockoutRules", "Operator", "Operators", "Rules"]

KEY_SCOPES: Final = frozenset({READ, WRITE})  # of an API key: it uses agents, it does not administer
_LOCAL: Final = "local"


class Operator(msgspec.Struct, frozen=True):
    """Who asks: as whom things are remembered, whose agents answer, what is allowed."""

    subject: str
    user_id: str
    grant: Grant


class Operators:
    """Recognises operators. One per server; belongs to one event loop."""

    def __init__(
        self,
        control: Control,
        rules: Rules,
        lockout: LockoutRules,
        *,
        user_id: str,
        token_digest: bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._control = control
        self._rules = rules
        self._lockout = Lockout(lockout)
        self._user_id = user_id
        self._token_digest = token_digest
        self._secret = key_secret(control.home)
        self._clock = clock
        self._known: dict[str, Operator] = {}  # by secret: one or two, since only right ones get in

    async def authenticate(self, credentials: Credentials) -> Operator:
        """Who is asking.

        Raises GatewayError: FORBIDDEN (a proxy is between and nobody says for whom), UNAUTHENTICATED, RATE_LIMITED
        after too many wrong secrets from there.
        """
        bearer = credentials.bearer
        known = self._known.get(bearer) if bearer is not None else None
        if known is not None and self._lockout.clear and not forwarded(credentials):
            return known
        return await self._prove(credentials, bearer)

    async def _prove(self, credentials: Credentials, bearer: str | None) -> Operator:
        address = client(credentials, self._rules)
        if bearer is not None and bearer.startswith(PREFIX):
            return await self._by_key(bearer, address)
        if self._rules.mode == "none":
            if not is_known_host(credentials, self._rules):
                raise GatewayError(Reason.HOST_UNKNOWN)
            if not is_own_page(credentials, self._rules):
                raise GatewayError(Reason.UNAUTHENTICATED)
            return self._operator("gateway-auth:none", declared_scopes(credentials))
        if self._rules.mode == "trusted-proxy":
            user = by_proxy(credentials, self._rules, _is_own)
            if user is not None:
                return self._operator(f"trusted-proxy:{user}", declared_scopes(credentials))
            if not (is_local(credentials) and self._rules.password is not None):
                raise GatewayError(Reason.UNAUTHENTICATED)
        return await self._by_secret(credentials, address)

    async def _by_secret(self, credentials: Credentials, address: Address | None) -> Operator:
        self._check_lockout(address)
        if credentials.bearer is not None and credentials.bearer not in self._known:
            self._check_total()
        found = by_secret(credentials, self._rules, self._is_token)
        if found is None:
            raise GatewayError(Reason.UNAUTHENTICATED)
        if not found:
            await self._fail(address)
        self._lockout.succeeded(_place(address))
        return self._remember(credentials.bearer or "")

    def _remember(self, secret: str) -> Operator:
        """The holder of the shared secret, which is proved once: digests are not cheap."""
        shown = hashlib.sha256(secret.encode()).hexdigest()[:16]
        operator = self._known[secret] = Operator(f"bearer:{shown}", self._user_id, Grant(f"bearer:{shown}"))
        return operator

    async def _by_key(self, token: str, address: Address | None) -> Operator:
        self._check_lockout(address)
        try:
            principal = await self._control.keys.authenticate(token)
        except GatewayError:
            await self._fail(address)
            raise
        self._lockout.succeeded(_place(address))
        subject = f"user:{principal.user_id}"
        return Operator(subject, principal.user_id, Grant(subject, KEY_SCOPES))

    def _operator(self, subject: str, scopes: frozenset[str]) -> Operator:
        return Operator(subject, self._user_id, Grant(subject, scopes))

    def _check_lockout(self, address: Address | None) -> None:
        wait = self._lockout.wait(_place(address), self._clock())
        if wait:
            raise GatewayError(Reason.AUTH_ATTEMPTS, retry_after=wait)

    def _check_total(self) -> None:
        wait = self._lockout.wait_for_all(self._clock())
        if wait:
            raise GatewayError(Reason.AUTH_ATTEMPTS, retry_after=wait)

    async def _fail(self, address: Address | None) -> None:
        loopback = address is None or address.is_loopback
        delay = self._lockout.failed(_place(address), self._clock(), loopback=loopback)
        await asyncio.sleep(delay)
        raise GatewayError(Reason.UNAUTHENTICATED)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(digest(self._secret, given.encode()), self._token_digest)


async def open_operators(control: Control, rules: Rules, lockout: LockoutRules) -> Operators:
    """Raises GatewayError(UNAVAILABLE) if the home was never initialised."""
    user_id, token = await control.database.read(
        lambda tx: (meta.get(tx, meta.OPERATOR), meta.get(tx, meta.OPERATOR_TOKEN))
    )
    if user_id is None or token is None:
        raise GatewayError(Reason.HOME_NOT_INITIALISED, code=Code.UNAVAILABLE)
    return Operators(control, rules, lockout, user_id=user_id, token_digest=bytes.fromhex(token))


def _place(address: Address | None) -> str:
    return _LOCAL if address is None else client_network(str(address))


@lru_cache(maxsize=256)
def _is_own(address: Address) -> bool:
    """Whether the address is one of this host's: only those can be bound."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
