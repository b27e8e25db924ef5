"""Who may come in: a password set through a link that works once, sessions kept as digests, attempts counted."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from typing import TYPE_CHECKING, Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.panel.attempts import bucket
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control import audit
from crocevia.storage import meta, panel
from crocevia.storage.database import Transaction

if TYPE_CHECKING:
    from argon2 import PasswordHasher

    from crocevia.panel.web import Ask, Session

ACCOUNT: Final = "operator"
COOKIE: Final = "crocevia_session"
SESSION_SECONDS: Final = 7 * 86_400
PASSWORD: Final = "panel_password"  # noqa: S105  # the name of the row that holds its argon2 hash
SHORTEST: Final = 10
LONGEST: Final = 1000


def hasher() -> PasswordHasher:
    """Argon2id with 19 MiB, two passes: what a small server can bear, as its authors recommend at least."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


async def is_set_up(ask: Ask) -> bool:
    """Whether a password was chosen."""
    return await ask.services.database.read(lambda tx: meta.get(tx, PASSWORD)) is not None


async def holds(ask: Ask, token: str) -> bool:
    """Whether `token` is the one of the unused setup link."""
    wanted = await ask.services.database.read(lambda tx: meta.get(tx, meta.SETUP_TOKEN))
    return wanted is not None and hmac.compare_digest(wanted, _digest(ask, token))


async def set_up(ask: Ask, token: str, password: str) -> str:
    """Choose the password with the link; the new session's cookie. Raises GatewayError UNAUTHENTICATED."""
    count(ask)
    if not await holds(ask, token):
        raise GatewayError(Reason.SETUP_LINK_USED)
    hashed = await _hash(ask, password)
    cookie, now = secrets.token_urlsafe(32), time.time()
    wanted = _digest(ask, token)

    def work(tx: Transaction) -> bool:
        if meta.get(tx, meta.SETUP_TOKEN) != wanted:
            return False  # somebody was faster
        meta.drop(tx, meta.SETUP_TOKEN)
        meta.put(tx, PASSWORD, hashed)
        panel.drop_other_sessions(tx, ACCOUNT, "")  # of the password before, if there was one
        panel.add_session(tx, _digest(ask, cookie), ACCOUNT, ask.address, now, now + SESSION_SECONDS)
        audit.note(tx, audit.Actor(ACCOUNT, ask.address), "set", "password", ACCOUNT)
        return True

    if not await ask.services.database.write(work):
        raise GatewayError(Reason.SETUP_LINK_USED)
    ask.state.by_address.clear(bucket(ask.address))
    return cookie


async def sign_in(ask: Ask, password: str) -> str:
    """The new session's cookie. Raises GatewayError UNAUTHENTICATED, or as `count`."""
    count(ask)
    hashed = await ask.services.database.read(lambda tx: meta.get(tx, PASSWORD))
    if hashed is None or not await _verify(ask, hashed, password):
        raise GatewayError(Reason.PASSWORD_WRONG)
    ask.state.by_address.clear(bucket(ask.address))
    ask.state.by_account.clear(ACCOUNT)
    cookie, now = secrets.token_urlsafe(32), time.time()

    def work(tx: Transaction) -> None:
        panel.add_session(tx, _digest(ask, cookie), ACCOUNT, ask.address, now, now + SESSION_SECONDS)
        audit.note(tx, audit.Actor(ACCOUNT, ask.address), "signed_in", "session", ACCOUNT)

    await ask.services.database.write(work)
    return cookie


async def change_password(ask: Ask, old: str, new: str) -> None:
    """Another password; every other session ends. Raises GatewayError UNAUTHENTICATED, or as `count`."""
    count(ask)
    hashed = await ask.services.database.read(lambda tx: meta.get(tx, PASSWORD))
    if hashed is None or not await _verify(ask, hashed, old):
        raise GatewayError(Reason.PASSWORD_WRONG)
    ask.state.by_address.clear(bucket(ask.address))
    ask.state.by_account.clear(ACCOUNT)
    changed = await _hash(ask, new)
    session = ask.session
    assert session is not None

    def work(tx: Transaction) -> None:
        meta.put(tx, PASSWORD, changed)
        panel.drop_other_sessions(tx, session.account, session.digest)
        audit.note(tx, ask.actor, "changed", "password", ACCOUNT)

    await ask.services.database.write(work)


async def find_session(ask: Ask) -> Session | None:
    """Whose cookie this is."""
    from crocevia.panel.web import Session

    cookie = ask.request.cookies.get(COOKIE)
    if not cookie:
        return None
    hashed, now = _digest(ask, cookie), time.time()
    row = await ask.services.database.read(lambda tx: panel.find_session(tx, hashed, now))
    return None if row is None else Session(row.account, row.digest)


async def sign_out(ask: Ask) -> None:
    """End the session."""
    session = ask.session
    if session is not None:
        await ask.services.database.write(lambda tx: panel.drop_session(tx, session.digest))


def count(ask: Ask) -> None:
    """Count an attempt of this address and of the account. Raises GatewayError(RATE_LIMITED) with `retry_after`."""
    now, address = time.monotonic(), bucket(ask.address)
    seconds = max(ask.state.by_address.wait(address, now), ask.state.by_account.wait(ACCOUNT, now))
    if seconds:
        raise GatewayError(Reason.ATTEMPTS_MANY, retry_after=seconds, seconds=seconds)
    ask.state.by_address.add(address, now)
    ask.state.by_account.add(ACCOUNT, now)


async def _hash(ask: Ask, password: str) -> str:
    async with ask.state.hashing:
        return await asyncio.to_thread(hasher().hash, password)


async def _verify(ask: Ask, hashed: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        async with ask.state.hashing:
            return await asyncio.to_thread(hasher().verify, hashed, password)
    except (Argon2Error, InvalidHashError):
        return False


def _digest(ask: Ask, token: str) -> str:
    return digest(ask.services.catalogue.current.secret, token.encode()).hex()
