"""Everything about money in a serving process: prices, the ledger with its past, the webhook of the soft threshold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.logger import Logger
from crocevia.documents.fetch import Fetcher
from crocevia.policy.budget import BudgetStatus
from crocevia.policy.prices import usd
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.money.budget_webhooks import BudgetWebhooks
from crocevia.runtime.money.follower import SpendFollower
from crocevia.runtime.money.prices import PriceBook
from crocevia.runtime.money.spend import Spend
from crocevia.runtime.signing_keys import Signer
from crocevia.storage.database import Database


class Money(msgspec.Struct, frozen=True):
    """start: reads today's past; call it when what an earlier process left open is settled. redeliver: a webhook."""

    spend: Spend
    start: Callable[[], Awaitable[None]]
    redeliver: Callable[[str], Awaitable[bool]]


@asynccontextmanager
async def open_money(
    database: Database, catalogue: CatalogueHolder, signer: Signer, fetcher: Fetcher, log: Logger
) -> AsyncIterator[Money]:
    """The money of a home whose catalogue is loaded."""
    spend = Spend(PriceBook(lambda: catalogue.current).rates)
    follower = SpendFollower(database, spend)
    webhooks = BudgetWebhooks(database, lambda name: catalogue.current.projects.get(name), fetcher.deliver, signer.sign)

    def tell(project: ProjectSpec, status: BudgetStatus) -> None:
        log.warning("soft threshold reached", project=project.name, day=status.day.label, usd=usd(status.spent))
        webhooks.fire(project, status)

    async def start() -> None:
        await follower.start(catalogue.current)
        catalogue.subscribe(follower.follow)
        webhooks.start()

    spend.on_soft = tell
    try:
        yield Money(spend, start, webhooks.redeliver)
    finally:
        await follower.close()
        await webhooks.close()
