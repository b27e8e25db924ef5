"""Webhooks of ours on their way out: signed anew at each attempt, tried again until delivered or given up.

At least once, with a stable event id and an unchanging body: a receiver that keeps ids sees each event once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from crocevia.core.errors import GatewayError
from crocevia.documents.fetch import Delivery, FetchPolicy

POLICY: Final = FetchPolicy(schemes=("https",), timeout=10.0)
"""Where a webhook may go: a public address, by https."""
_STORE_RETRY: Final = 5.0  # seconds
_DELIVERED: Final = range(200, 300)


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook to be sent. event: its id. url None: nobody wants it any more. attempts: so far."""

    event: str
    url: str | None
    body: bytes
    attempts: int
    due_at: float


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one. status None: no answer. next_at None: there will be no other."""

    at: float
    status: int | None
    delivered: bool
    next_at: float | None


class Outbox(Protocol):
    """What is to be sent, as the store has it."""

    async def due(self) -> list[Letter]:
        """The most urgent first, also what is due later. Raises GatewayError(UNAVAILABLE)."""

    async def note(self, letter: Letter, attempt: Attempt) -> None:
        """Keep what came of an attempt. Raises GatewayError(UNAVAILABLE)."""


class Post(Protocol):
    """The part of `documents.fetch.Fetcher` that is needed here."""

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], policy: FetchPolicy
    ) -> Awaitable[Delivery]: ...


class Signed(Protocol):
    """kid: of the key in the published set. sig: Ed25519, base64url without padding."""

    @property
    def kid(self) -> str: ...
    @property
    def sig(self) -> str: ...


class Courier:
    """Empties an outbox. sign: with the home's key. back_off: seconds before the next attempt, as many as there are."""

    def __init__(
        self,
        outbox: Outbox,
        post: Post,
        sign: Callable[[bytes], Signed],
        *,
        back_off: tuple[float, ...],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._outbox = outbox
        self._post = post
        self._sign = sign
        self._back_off = back_off
        self._clock = clock
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Deliver what is due, also from an earlier life, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="webhooks")

    def wake(self) -> None:
        """There is something new in the outbox."""
        self._wake.set()

    async def close(self) -> None:
        """Stop; what is not delivered stays where it is. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                waiting = await self._round()
            except GatewayError:
                waiting = _STORE_RETRY
            with suppress(TimeoutError):
                async with asyncio.timeout(waiting):
                    await self._wake.wait()

    async def _round(self) -> float | None:
        """Attempt what is due; the seconds until the next is."""
        now = self._clock()
        letters = await self._outbox.due()
        await asyncio.gather(*(self._attempt(letter) for letter in letters if letter.due_at <= now))
        later = await self._outbox.due()
        return max(0.0, later[0].due_at - self._clock()) if later else None

    async def _attempt(self, letter: Letter) -> None:
        status = await self._send(letter.url, letter) if letter.url is not None else None
        now = self._clock()
        delivered = status is not None and status in _DELIVERED
        again = not delivered and letter.url is not None and letter.attempts < len(self._back_off)
        next_at = now + self._back_off[letter.attempts] if again else None
        await self._outbox.note(letter, Attempt(at=now, status=status, delivered=delivered, next_at=next_at))

    async def _send(self, url: str, letter: Letter) -> int | None:
        moment = str(int(self._clock()))
        try:
            signed = self._sign(b".".join((moment.encode(), letter.event.encode(), letter.body)))
            headers = {
                "Content-Type": "application/json",
                "X-Crocevia-Event": letter.event,
                "X-Crocevia-Timestamp": moment,
                "X-Crocevia-Key": signed.kid,
                "X-Crocevia-Signature": signed.sig,
            }
            return (await self._post(url, letter.body, headers, POLICY)).status
        except (GatewayError, OSError, ValueError):
            return None
