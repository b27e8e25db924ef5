"""The webhook of the soft threshold: stored before it is sent, one event per day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from crocevia.core import json
from crocevia.core.catalogue import ProjectSpec
from crocevia.core.ids import new_id
from crocevia.policy.budget import BudgetStatus
from crocevia.policy.prices import usd
from crocevia.runtime.delivery import DeliveryAttempt, Post, Signed, WebhookDelivery, WebhookSender
from crocevia.storage.database import Database
from crocevia.storage.operator_view import alert_again
from crocevia.storage.spending import add_alert, attempted, due_alerts

# Seconds before the next attempt; after the last one the webhook is given up, about a day later.
BACK_OFF: Final = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800)


class BudgetWebhooks:
    """Fires and delivers. projects: the project of a name now. sign: with the home's key."""

    def __init__(
        self,
        database: Database,
        projects: Callable[[str], ProjectSpec | None],
        post: Post,
        sign: Callable[[bytes], Signed],
        *,
        clock: Callable[[], float] = time.time,
        back_off: tuple[float, ...] = BACK_OFF,
    ) -> None:
        self._database = database
        self._projects = projects
        self._clock = clock
        self._sender = WebhookSender(self, post, sign, back_off=back_off, clock=clock)

    def fire(self, project: ProjectSpec, status: BudgetStatus) -> None:
        """Keep the webhook of this day, if the project wants one and the day has none yet. Never waits."""
        if project.webhook_url is None:
            return
        now, event = self._clock(), new_id("evt")
        body = json.encode(_event(project, status, event, now)).decode()
        self._database.post(lambda tx: add_alert(tx, project.name, status.day.label, event, body, now))
        self._sender.wake()

    async def redeliver(self, event: str) -> bool:
        """Attempt a webhook once more now, delivered or given up before; False if there is none of this id."""
        now = self._clock()
        found = await self._database.write(lambda tx: alert_again(tx, event, now))
        self._sender.wake()
        return found

    def start(self) -> None:
        """Deliver what is due, also from an earlier life, until `close`."""
        self._sender.start()

    async def close(self) -> None:
        """Stop; what is not delivered stays stored. Idempotent."""
        await self._sender.close()

    async def due(self) -> list[WebhookDelivery]:
        """See `delivery.Outbox`."""
        await self._database.write(lambda tx: None)  # everything that was posted before is readable now
        return [
            WebhookDelivery(
                event=row.id,
                url=self._url(row.project),
                body=row.body.encode(),
                attempts=row.attempts,
                due_at=row.due_at,
            )
            for row in await self._database.read(due_alerts)
        ]

    async def note(self, delivery: WebhookDelivery, attempt: DeliveryAttempt) -> None:
        """See `delivery.Outbox`."""
        done_at = attempt.at if attempt.delivered else None
        await self._database.write(lambda tx: attempted(tx, delivery.event, attempt.status, attempt.next_at, done_at))

    def _url(self, name: str) -> str | None:
        project = self._projects(name)
        return project.webhook_url if project is not None else None


def _event(project: ProjectSpec, status: BudgetStatus, event: str, now: float) -> dict[str, object]:
    return {
        "id": event,
        "type": "budget.soft_threshold",
        "created_at": _moment(now),
        "project": project.name,
        "day": status.day.label,
        "timezone": project.timezone,
        "spent_usd": usd(status.spent),
        "soft_threshold_usd": project.soft_threshold_usd,
        "daily_budget_usd": project.daily_budget_usd,
        "resets_at": _moment(status.day.until),
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
