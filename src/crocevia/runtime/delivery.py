"""Outgoing webhooks: signed anew at each attempt, retried until delivered or given up.

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


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook to send."""

    event: str
    """The event's id, the same at every attempt."""
    url: str | None
    """None: the receiver was removed meanwhile."""
    body: bytes
    attempts: int
    """How many were made so far."""
    due_at: float
    """Unix seconds of the next attempt."""


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt."""

    at: float
    """Unix seconds."""
    status: int | None
    """HTTP status; None: no answer."""
    delivered: bool
    next_at: float | None
    """Unix seconds of the next attempt; None: there will be none."""


class Outbox(Protocol):
    """The stored webhooks that are still to send."""

    async def due(self) -> list[WebhookDelivery]:
        """All that are not delivered, by due time, including later ones. Raises GatewayError(UNAVAILABLE)."""

    async def note(self, delivery: WebhookDelivery, attempt: DeliveryAttempt) -> None:
        """Record the outcome of an attempt. Raises GatewayError(UNAVAILABLE)."""


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


class WebhookSender:
    """Sends what is in an outbox. sign: with the home's key. back_off: seconds before each retry, one per retry."""

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
        """Send what is due, also what an earlier process left, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="webhooks")

    def wake(self) -> None:
        """Look at the outbox now: something was added."""
        self._wake.set()

    async def close(self) -> None:
        """Stop; undelivered webhooks stay in the outbox. Idempotent."""
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
        """Attempt what is due; returns the seconds until the next one, None if there is none."""
        now = self._clock()
        deliveries = await self._outbox.due()
        await asyncio.gather(*(self._attempt(delivery) for delivery in deliveries if delivery.due_at <= now))
        later = await self._outbox.due()
        return max(0.0, later[0].due_at - self._clock()) if later else None

    async def _attempt(self, delivery: WebhookDelivery) -> None:
        status = await self._send(delivery.url, delivery) if delivery.url is not None else None
        now = self._clock()
        delivered = status is not None and status in _DELIVERED
        again = not delivered and delivery.url is not None and delivery.attempts < len(self._back_off)
        next_at = now + self._back_off[delivery.attempts] if again else None
        await self._outbox.note(delivery, DeliveryAttempt(at=now, status=status, delivered=delivered, next_at=next_at))

    async def _send(self, url: str, delivery: WebhookDelivery) -> int | None:
        moment = str(int(self._clock()))
        try:
            signed = self._sign(b".".join((moment.encode(), delivery.event.encode(), delivery.body)))
            headers = {
                "Content-Type": "application/json",
                "X-Crocevia-Event": delivery.event,
                "X-Crocevia-Timestamp": moment,
                "X-Crocevia-Key": signed.kid,
                "X-Crocevia-Signature": signed.sig,
            }
            return (await self._post(url, delivery.body, headers, POLICY)).status
        except (GatewayError, OSError, ValueError):
            return None
