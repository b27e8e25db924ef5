"""API keys of the Envai surface: `envai_sk_<ulid><jwt>`, signed with the home's own key, kept as a digest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.runtime.catalogue import digest
from crocevia.runtime.signing_keys import Signer, signer_of
from crocevia.storage import api_keys as rows
from crocevia.storage.api_keys import ApiKey
from crocevia.storage.database import Database, Transaction
from crocevia.storage.home import Home, key_secret

__all__ = ["LIFETIMES", "SCOPES", "ApiKey", "ApiKeys", "Lifetime", "Minted", "Principal", "mint"]

SCOPES: Final = ("completions:write",)
PREFIX: Final = "envai_sk_"
MAX_LIVE: Final = 200  # keys of one user that are not revoked
LISTED: Final = 1000
_REMEMBERED: Final = 10_000  # verified tokens in memory
_LONGEST_WAIT: Final = 3600.0

Lifetime = Literal["30d", "90d", "1y", "never"]
_DAY: Final = 86_400.0
LIFETIMES: Final[dict[Lifetime, float | None]] = {"30d": 30 * _DAY, "90d": 90 * _DAY, "1y": 365 * _DAY, "never": None}


class Minted(msgspec.Struct, frozen=True):
    """A new key. `token` is shown now and never again."""

    id: str
    token: str

    def __repr__(self) -> str:
        return f"Minted(id={self.id!r})"


class Principal(msgspec.Struct, frozen=True):
    """Who is asking: a user, by a key."""

    user_id: str
    key_id: str
    scopes: tuple[str, ...]
    expires_at: float | None
    """Unix seconds."""
    signed_by: str
    """The home's key that signed it: it ends with that one, too."""


def mint(
    tx: Transaction,
    home: Home,
    user_id: str,
    name: str,
    *,
    scopes: Sequence[str] = SCOPES,
    expires_at: float | None = None,
    now: float | None = None,
    signer: Signer | None = None,
) -> Minted:
    """A new API key for the user; its id and digest are stored in `tx`. Times are Unix seconds.

    Claims: `sub` (user), `jti` (key id), `iat`, `scopes`, and `exp` unless it never expires.
    """
    now = time.time() if now is None else now
    key_id = new_id("key")
    claims: dict[str, object] = {"sub": user_id, "jti": key_id, "iat": int(now), "scopes": list(scopes)}
    if expires_at is not None:
        claims["exp"] = int(expires_at)
    signed = (signer or Signer(home)).sign_jwt(claims)
    token = f"{PREFIX}{key_id.removeprefix('key_')}{signed}"
    hashed = digest(key_secret(home), token.encode()).hex()
    rows.add(tx, key_id, user_id, name, hashed, list(scopes), expires_at, now)
    return Minted(key_id, token)


class ApiKeys:
    """Mints, recognises and revokes keys. One per server; belongs to one event loop.

    A key that was recognised is remembered, so that a request costs no read; revoking forgets it at once.
    """

    def __init__(
        self, database: Database, home: Home, signer: Signer, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._home = home
        self._signer = signer
        self._clock = clock
        self._known: dict[str, Principal] = {}
        self._generation = 0  # of what is remembered: what was read before a change is not remembered after it
        self._looks: set[asyncio.Event] = set()  # of open streams that must look at their key again

    async def authenticate(self, token: str) -> Principal:
        """Whose key this is. Raises GatewayError(UNAUTHENTICATED), the same for every reason."""
        known = self._known.get(token)
        if known is None:
            known = await self._recognise(token)
        if known.expires_at is not None and known.expires_at <= self._clock():
            self._known.pop(token, None)
            raise GatewayError(Reason.API_KEY_INVALID)
        return known

    async def create(
        self, user_id: str, name: str, lifetime: Lifetime, scopes: Sequence[str] = SCOPES
    ) -> tuple[ApiKey, str]:
        """A new key and its token, which nobody can see again. Raises GatewayError(INVALID_REQUEST) at MAX_LIVE."""
        now = self._clock()
        seconds = LIFETIMES[lifetime]
        expires_at = None if seconds is None else float(int(now + seconds))

        def work(tx: Transaction) -> tuple[ApiKey, str]:
            if rows.count_live(tx, user_id) >= MAX_LIVE:
                raise GatewayError(Reason.LIMIT_REACHED, param="name", limit=MAX_LIVE)
            minted = mint(
                tx, self._home, user_id, name, scopes=scopes, expires_at=expires_at, now=now, signer=self._signer
            )
            made = rows.find(tx, minted.id)
            assert made is not None
            return made, minted.token

        return await self._database.write(work)

    async def listed(self, user_id: str) -> list[ApiKey]:
        """The user's keys, revoked ones too, newest first."""
        return await self._database.read(lambda tx: rows.listed(tx, user_id, LISTED))

    async def revoke(self, user_id: str, key_id: str) -> None:
        """End the key now, on open streams too. Raises GatewayError(NOT_FOUND)."""
        now = self._clock()
        if not await self._database.write(lambda tx: rows.revoke(tx, user_id, key_id, now)):
            raise GatewayError(Reason.OBJECT_MISSING, kind="API key")
        self._forget({token for token, known in self._known.items() if known.key_id == key_id})

    def look_again(self) -> None:
        """A key may have been revoked: remember none, and let every open stream look at its own."""
        self._forget(set(self._known))

    def _forget(self, tokens: set[str]) -> None:
        for token in tokens:
            del self._known[token]
        self._generation += 1
        for look in self._looks:
            look.set()

    async def ended(self, principal: Principal) -> None:
        """Return once the principal's key has been revoked, has expired or has lost the key that signed it."""
        look = asyncio.Event()
        self._looks.add(look)
        try:
            while True:
                look.clear()  # before looking: what happens meanwhile sets it again
                if not await self._holds(principal):
                    return
                left = _LONGEST_WAIT if principal.expires_at is None else principal.expires_at - self._clock()
                try:
                    async with asyncio.timeout(min(max(left, 0.0) + 0.01, _LONGEST_WAIT)):
                        await look.wait()
                except TimeoutError:
                    continue
        finally:
            self._looks.discard(look)

    async def _holds(self, principal: Principal) -> bool:
        found = await self._database.read(lambda tx: rows.find(tx, principal.key_id))
        return found is not None and found.holds(self._clock()) and self._signer.has(principal.signed_by)

    async def _recognise(self, token: str) -> Principal:
        head, jwt = token[: len(PREFIX) + 26], token[len(PREFIX) + 26 :]
        claims = self._signer.verify_jwt(jwt) if token.startswith(PREFIX) else None
        if claims is not None and claims.get("jti") == f"key_{head[len(PREFIX) :]}":
            hashed = digest(key_secret(self._home), token.encode()).hex()
            generation = self._generation
            found = await self._database.read(lambda tx: rows.find_by_digest(tx, hashed))
            if found is not None and found.holds(self._clock()):
                principal = Principal(found.user_id, found.id, found.scopes, found.expires_at, signer_of(jwt))
                if generation == self._generation:
                    self._remember(token, principal)
                return principal
        raise GatewayError(Reason.API_KEY_INVALID)

    def _remember(self, token: str, principal: Principal) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[token] = principal
