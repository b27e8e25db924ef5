"""Signing in: a password set through a one-time link, sessions stored as digests, failed attempts counted."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from typing import TYPE_CHECKING, Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.panel.state import PER_ACCOUNT, PER_ADDRESS
from crocevia.panel.web import PageRequest, Session
from crocevia.policy.rate_limits import client_network
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control import audit
from crocevia.storage import meta, panel
from crocevia.storage.database import Transaction

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ACCOUNT: Final = "operator"
COOKIE: Final = "crocevia_session"
SESSION_SECONDS: Final = 7 * 86_400
BROWSER: Final = "crocevia_browser"
BROWSER_SECONDS: Final = 365 * 86_400
PASSWORD: Final = "panel_password"  # noqa: S105  # the name of the row that holds its argon2 hash
SHORTEST: Final = 10
LONGEST: Final = 1000


def hasher() -> PasswordHasher:
    """Argon2id with 19 MiB and two passes: the least that its authors recommend, and what a small server can bear."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


async def is_set_up(request: PageRequest) -> bool:
    """Whether a password was chosen."""
    return await request.services.database.read(lambda tx: meta.get(tx, PASSWORD)) is not None


async def is_setup_token(request: PageRequest, token: str) -> bool:
    """Whether `token` is that of the unused setup link."""
    wanted = await request.services.database.read(lambda tx: meta.get(tx, meta.SETUP_TOKEN))
    return wanted is not None and hmac.compare_digest(wanted, _digest(request, token))


async def set_up(request: PageRequest, token: str, password: str) -> str:
    """Set the password with the setup link; returns the new session's cookie. Raises GatewayError(UNAUTHENTICATED)."""
    if not await is_setup_token(request, token):  # a right link never counts, and strangers cannot shut it
        count_attempt(request)
        raise GatewayError(Reason.SETUP_LINK_USED)
    hashed = await _hash(request, password)
    cookie, now = secrets.token_urlsafe(32), time.time()
    wanted = _digest(request, token)

    def work(tx: Transaction) -> bool:
        if meta.get(tx, meta.SETUP_TOKEN) != wanted:
            return False  # another request was faster
        meta.drop(tx, meta.SETUP_TOKEN)
        meta.put(tx, PASSWORD, hashed)
        panel.drop_other_sessions(tx, ACCOUNT, "")  # of an earlier password
        panel.add_session(tx, _digest(request, cookie), ACCOUNT, request.address, now, now + SESSION_SECONDS)
        audit.note(tx, audit.Actor(ACCOUNT, request.address), "set", "password", ACCOUNT)
        return True

    if not await request.services.database.write(work):
        raise GatewayError(Reason.SETUP_LINK_USED)
    _forget_attempts(request)
    return cookie


async def sign_in(request: PageRequest, password: str) -> str:
    """Sign in; returns the new session's cookie. Raises GatewayError UNAUTHENTICATED, or as `count_attempt`."""
    count_attempt(request)
    hashed = await request.services.database.read(lambda tx: meta.get(tx, PASSWORD))
    if hashed is None or not await _verify(request, hashed, password):
        raise GatewayError(Reason.PASSWORD_WRONG)
    _forget_attempts(request)
    cookie, now = secrets.token_urlsafe(32), time.time()

    def work(tx: Transaction) -> None:
        panel.add_session(tx, _digest(request, cookie), ACCOUNT, request.address, now, now + SESSION_SECONDS)
        audit.note(tx, audit.Actor(ACCOUNT, request.address), "signed_in", "session", ACCOUNT)

    await request.services.database.write(work)
    return cookie


async def change_password(request: PageRequest, old: str, new: str) -> None:
    """Change the password and end every other session. Raises GatewayError UNAUTHENTICATED, or as `count_attempt`."""
    count_attempt(request)
    hashed = await request.services.database.read(lambda tx: meta.get(tx, PASSWORD))
    if hashed is None or not await _verify(request, hashed, old):
        raise GatewayError(Reason.PASSWORD_WRONG)
    _forget_attempts(request)
    changed = await _hash(request, new)
    session = request.signed_in

    def work(tx: Transaction) -> None:
        meta.put(tx, PASSWORD, changed)
        panel.drop_other_sessions(tx, session.account, session.digest)
        audit.note(tx, request.actor, "changed", "password", ACCOUNT)

    await request.services.database.write(work)


async def find_session(request: PageRequest) -> Session | None:
    """The session of the request's cookie, if it is valid."""
    cookie = request.http.cookies.get(COOKIE)
    if not cookie:
        return None
    hashed, now = _digest(request, cookie), time.time()
    row = await request.services.database.read(lambda tx: panel.find_session(tx, hashed, now))
    return None if row is None else Session(row.account, row.digest)


async def sign_out(request: PageRequest) -> None:
    """End the session."""
    session = request.session
    if session is not None:
        await request.services.database.write(lambda tx: panel.drop_session(tx, session.digest))


def count_attempt(request: PageRequest) -> None:
    """Count an attempt of this address and of the account, or of a browser that signed in before: strangers cannot
    lock it out. Raises GatewayError(RATE_LIMITED) with `retry_after`.
    """
    browser, state = known_browser(request), request.state
    if browser is not None:
        seconds = state.by_address.wait(browser, PER_ADDRESS[0])
        if seconds:
            raise GatewayError(Reason.ATTEMPTS_MANY, retry_after=seconds, seconds=seconds)
        state.by_address.count(browser)
        return
    address = client_network(request.address)
    seconds = max(state.by_address.wait(address, PER_ADDRESS[0]), state.by_account.wait(ACCOUNT, PER_ACCOUNT[0]))
    if seconds:
        raise GatewayError(Reason.ATTEMPTS_MANY, retry_after=seconds, seconds=seconds)
    state.by_address.count(address)
    state.by_account.count(ACCOUNT)


def known_browser(request: PageRequest) -> str | None:
    """The name that a browser was given when somebody signed in with it."""
    name, _, proof = request.http.cookies.get(BROWSER, "").partition(".")
    return f"browser {name}" if name and hmac.compare_digest(proof, _proof(request, name)) else None


def cookies(request: PageRequest, session: str) -> tuple[tuple[str, str, int], ...]:
    """What a browser gets that has signed in: its session, and a name if it has none."""
    found = [(COOKIE, session, SESSION_SECONDS)]
    if known_browser(request) is None:
        name = secrets.token_urlsafe(16)
        found.append((BROWSER, f"{name}.{_proof(request, name)}", BROWSER_SECONDS))
    return tuple(found)


def _proof(request: PageRequest, name: str) -> str:
    return _digest(request, f"browser {name}")


def _forget_attempts(request: PageRequest) -> None:
    request.state.by_address.clear(known_browser(request) or client_network(request.address))
    request.state.by_account.clear(ACCOUNT)


async def _hash(request: PageRequest, password: str) -> str:
    async with request.state.hashing:
        return await asyncio.to_thread(hasher().hash, password)


async def _verify(request: PageRequest, hashed: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        async with request.state.hashing:
            return await asyncio.to_thread(hasher().verify, hashed, password)
    except (Argon2Error, InvalidHashError):
        return False


def _digest(request: PageRequest, token: str) -> str:
    return digest(request.services.catalogue.current.secret, token.encode()).hex()
