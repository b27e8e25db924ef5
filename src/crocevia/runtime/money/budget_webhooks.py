"""The webhook of the soft threshold: stored before it is sent, signed anew at each attempt, one event per day.

At least once, with a stable event id and an unchanging body: a receiver that keeps ids sees each event once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Protocol

from crocevia.core import json
from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError
from crocevia.core.ids import new_id
from crocevia.documents.fetch import Delivery, FetchPolicy
from crocevia.policy.budget import Standing
from crocevia.policy.prices import usd
from crocevia.storage.database import Database
from crocevia.storage.spending import add_alert, attempted, due_alerts
from crocevia.storage.statements import Row
from crocevia.storage.watching import alert_again

# Seconds before the next attempt; after the last one the webhook is given up, about a day later.
BACK_OFF: Final = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800)
POLICY: Final = FetchPolicy(schemes=("https",), timeout=10.0)
_STORE_RETRY: Final = 5.0
_DELIVERED: Final = range(200, 300)


class Deliver(Protocol):
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


class BudgetWebhooks:
    """Fires and delivers. projects: the project of a name now. sign: with the home's key."""

    def __init__(
        self,
        database: Database,
        projects: Callable[[str], ProjectSpec | None],
        deliver: Deliver,
        sign: Callable[[bytes], Signed],
        *,
        clock: Callable[[], float] = time.time,
        back_off: tuple[float, ...] = BACK_OFF,
    ) -> None:
        self._database = database
        self._projects = projects
        self._deliver = deliver
        self._sign = sign
        self._clock = clock
        self._back_off = back_off
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def fire(self, project: ProjectSpec, standing: Standing) -> None:
        """Keep the webhook of this day, if the project wants one and the day has none yet. Never waits."""
        if project.webhook_url is None:
            return
        now, event = self._clock(), new_id("evt")
        body = json.encode(_event(project, standing, event, now)).decode()
        self._database.post(lambda tx: add_alert(tx, project.name, standing.day.label, event, body, now))
        self._wake.set()

    async def redeliver(self, event: str) -> bool:
        """Attempt a webhook once more now, delivered or given up before; False if there is none of this id."""
        now = self._clock()
        found = await self._database.write(lambda tx: alert_again(tx, event, now))
        self._wake.set()
        return found

    def start(self) -> None:
        """Deliver what is due, also from an earlier life, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="webhooks")

    async def close(self) -> None:
        """Stop; what is not delivered stays stored. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._database.write(lambda tx: None)  # everything that was posted before is readable now
                waiting = await self._round()
            except GatewayError:
                waiting = _STORE_RETRY
            with suppress(TimeoutError):
                async with asyncio.timeout(waiting):
                    await self._wake.wait()

    async def _round(self) -> float | None:
        """Attempt what is due; the seconds until the next is."""
        now = self._clock()
        rows = await self._database.read(due_alerts)
        await asyncio.gather(*(self._attempt(row) for row in rows if row.due_at <= now))
        later = await self._database.read(due_alerts)
        return max(0.0, later[0].due_at - self._clock()) if later else None

    async def _attempt(self, row: Row) -> None:
        project = self._projects(row.project)
        url = project.webhook_url if project is not None else None
        status = await self._send(url, row) if url is not None else None
        now = self._clock()
        good = status is not None and status in _DELIVERED
        again = not good and url is not None and row.attempts < len(self._back_off)
        due_at = now + self._back_off[row.attempts] if again else None
        await self._database.write(lambda tx: attempted(tx, row.id, status, due_at, now if good else None))

    async def _send(self, url: str, row: Row) -> int | None:
        body = row.body.encode()
        moment = str(int(self._clock()))
        try:
            signed = self._sign(b".".join((moment.encode(), row.id.encode(), body)))
            headers = {
                "Content-Type": "application/json",
                "X-Crocevia-Event": row.id,
                "X-Crocevia-Timestamp": moment,
                "X-Crocevia-Key": signed.kid,
                "X-Crocevia-Signature": signed.sig,
            }
            return (await self._deliver(url, body, headers, POLICY)).status
        except (GatewayError, OSError, ValueError):
            return None


def _event(project: ProjectSpec, standing: Standing, event: str, now: float) -> dict[str, object]:
    return {
        "id": event,
        "type": "budget.soft_threshold",
        "created_at": _moment(now),
        "project": project.name,
        "day": standing.day.label,
        "timezone": project.timezone,
        "spent_usd": usd(standing.spent),
        "soft_threshold_usd": project.soft_threshold_usd,
        "daily_budget_usd": project.daily_budget_usd,
        "resets_at": _moment(standing.day.until),
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
