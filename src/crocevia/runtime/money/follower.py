"""Keeps the money in memory true to the store: at boot, and when a correction, a zone or a threshold changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError
from crocevia.policy.periods import day_of
from crocevia.runtime.catalogue import Catalogue
from crocevia.runtime.money.spend import Spend, project_of_user
from crocevia.storage.database import Database, Transaction
from crocevia.storage.spending import DaySpend, corrected, day_spend, spent_by_users


class SpendFollower:
    """Reads today's spend once, then today's corrections with every new catalogue (a correction makes one)."""

    def __init__(self, database: Database, spend: Spend, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._spend = spend
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, catalogue: Catalogue) -> None:
        """Take over what today's records say; calls that are still open there count for nothing yet."""
        now = self._clock()
        await self._users(catalogue, now)
        projects = list(catalogue.projects.values())
        found = await self._database.read(lambda tx: [_today(tx, project, now) for project in projects])
        for project, day in zip(projects, found, strict=True):
            budget = self._spend.budget(project)
            self._spend.ledger.remember(project.name, budget, day.spent, now)
            self._spend.ledger.correct(project.name, budget, day.corrected, now)
            self._spend.look(project)

    async def _users(self, catalogue: Catalogue, now: float) -> None:
        """Everybody's, because a budget may come later in the day."""
        zones = {user.timezone for user in catalogue.users.values()} | {"UTC"}
        for zone in zones:
            day = day_of(now, zone)
            found = await self._database.read(partial(spent_by_users, since=day.since, until=day.until))
            for user_id, spent in found.items():
                bounds = catalogue.users.get(user_id)
                if (bounds.timezone if bounds is not None else "UTC") == zone:
                    tenant = project_of_user(user_id, bounds=bounds)
                    self._spend.ledger.remember(tenant.name, self._spend.budget(tenant), spent, now)

    def follow(self, before: Catalogue, after: Catalogue) -> None:
        """A subscriber of the catalogue."""
        now = self._clock()
        for name, project in after.projects.items():
            known = before.projects.get(name)
            if known is not None and known.timezone != project.timezone:
                self._spend.ledger.move(name, self._spend.budget(project), now)
        for user_id, bounds in after.users.items():
            earlier = before.users.get(user_id)
            if (earlier.timezone if earlier is not None else "UTC") != bounds.timezone:
                tenant = project_of_user(user_id, bounds=bounds)
                self._spend.ledger.move(tenant.name, self._spend.budget(tenant), now)
        task = asyncio.get_running_loop().create_task(self._correct(list(after.projects.values())))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop reading. Idempotent."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _correct(self, projects: list[ProjectSpec]) -> None:
        now = self._clock()
        try:
            found = await self._database.read(lambda tx: [_corrected(tx, project, now) for project in projects])
        except GatewayError:  # the store is out of reach: the next catalogue brings the next chance
            return
        for project, amount in zip(projects, found, strict=True):
            self._spend.ledger.correct(project.name, self._spend.budget(project), amount, now)
            self._spend.look(project)


def _today(tx: Transaction, project: ProjectSpec, now: float) -> DaySpend:
    day = day_of(now, project.timezone)
    return day_spend(tx, project.name, day.since, day.until)


def _corrected(tx: Transaction, project: ProjectSpec, now: float) -> int:
    day = day_of(now, project.timezone)
    return corrected(tx, project.name, day.since, day.until)
