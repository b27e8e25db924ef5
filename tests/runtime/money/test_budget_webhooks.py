"""The soft threshold's webhook: once a day, stored first, signed, retried, never lost."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.fetch import Delivery, Fetcher, FetchPolicy
from crocevia.policy.budget import BudgetStatus
from crocevia.policy.periods import day_of
from crocevia.runtime.money.budget_webhooks import BACK_OFF, BudgetWebhooks
from crocevia.runtime.signing_keys import Signer
from crocevia.storage import migrate, operator_view
from crocevia.storage.database import Database
from crocevia.storage.home import Home
from tests.aio import run

NOW = 1_793_000_000.0
CASA = ProjectSpec(
    name="casa", model="m", soft_threshold_usd=1.5, daily_budget_usd=2.0, webhook_url="https://hooks.example.com/x"
)
STANDING = BudgetStatus(day_of(NOW, "UTC"), 1_600_000_000, 0)


class Receiver:
    """Answers with the statuses it is given (an exception is raised), the last one again and again."""

    def __init__(self, *statuses: int | Exception) -> None:
        self.statuses = list(statuses)
        self.got: list[tuple[str, bytes, dict[str, str]]] = []
        self.policies: list[FetchPolicy] = []

    async def __call__(self, url: str, body: bytes, headers: Mapping[str, str], policy: FetchPolicy) -> Delivery:
        status = self.statuses[min(len(self.got), len(self.statuses) - 1)]
        self.got.append((url, body, dict(headers)))
        self.policies.append(policy)
        if isinstance(status, Exception):
            raise status
        return Delivery(status=status, seconds=0.01)


class Life:
    """One process's life over the same store: webhooks that start and stop."""

    def __init__(self, home: Home, receiver: Any, project: ProjectSpec | None = CASA) -> None:
        self.home = home
        self.receiver = receiver
        self.project = project
        self.now = NOW

    async def __aenter__(self) -> Life:
        self.database = Database(self.home.database)
        self.webhooks = BudgetWebhooks(
            self.database,
            lambda name: self.project,
            self.receiver,
            Signer(self.home).sign,
            clock=lambda: self.now,
            back_off=(0.01, 0.01, 0.01),
        )
        self.webhooks.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.webhooks.close()
        await self.database.close()

    async def rows(self) -> list[Any]:
        return await self.database.read(lambda tx: operator_view.alert_page(tx, 10))

    async def settled(self) -> Any:
        """The newest row, when no attempt is due any more."""
        while True:
            rows = await self.rows()
            if rows and rows[0].due_at is None:
                return rows[0]
            self.now += 1  # what waits for its time becomes due
            await asyncio.sleep(0.005)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.create()
    migrate.migrate(home.database)
    return home


def test_it_is_delivered_once_signed_with_the_published_key(home: Home) -> None:
    async def work() -> None:
        receiver = Receiver(204)
        async with Life(home, receiver) as life:
            for _ in range(3):
                life.webhooks.fire(CASA, STANDING)
            row = await life.settled()
            assert (row.attempts, row.status, row.delivered_at is not None) == (1, 204, True)
        [(url, body, headers)] = receiver.got
        event = json.loads(body)
        assert url == CASA.webhook_url
        assert event["id"] == headers["X-Crocevia-Event"] == row.id
        assert (event["type"], event["project"], event["spent_usd"]) == ("budget.soft_threshold", "casa", 1.6)
        assert event["day"] == STANDING.day.label
        published = {key.kid: key.x for key in Signer(home).published()}
        key = Ed25519PublicKey.from_public_bytes(_unbase64(published[headers["X-Crocevia-Key"]]))
        signed = b".".join((headers["X-Crocevia-Timestamp"].encode(), event["id"].encode(), body))
        key.verify(_unbase64(headers["X-Crocevia-Signature"]), signed)
        with pytest.raises(InvalidSignature):
            key.verify(_unbase64(headers["X-Crocevia-Signature"]), signed + b" ")
        assert receiver.policies[0].schemes == ("https",)

    run(work())


def test_a_receiver_that_fails_is_asked_again_with_the_same_event(home: Home) -> None:
    async def work() -> None:
        receiver = Receiver(500, GatewayError(Reason.INVALID_REQUEST), 302, 200)
        async with Life(home, receiver) as life:
            life.webhooks.fire(CASA, STANDING)
            row = await life.settled()
        assert (row.attempts, row.status) == (4, 200)
        assert len({body for _, body, _ in receiver.got}) == 1
        assert len({headers["X-Crocevia-Event"] for *_, headers in receiver.got}) == 1

    run(work())


def test_it_is_given_up_after_the_last_attempt(home: Home) -> None:
    async def work() -> None:
        receiver = Receiver(500)
        async with Life(home, receiver) as life:
            life.webhooks.fire(CASA, STANDING)
            row = await life.settled()
        assert (row.attempts, row.status, row.delivered_at) == (4, 500, None)
        assert len(receiver.got) == 4

    run(work())
    assert 20 * 3600 < sum(BACK_OFF) < 26 * 3600


def test_a_crash_neither_loses_it_nor_fires_it_twice(home: Home) -> None:
    async def work() -> None:
        never = asyncio.Event()

        async def stuck(*_: Any) -> Delivery:
            await never.wait()
            raise AssertionError

        async with Life(home, stuck) as life:
            life.webhooks.fire(CASA, STANDING)
            while not await life.rows():
                await asyncio.sleep(0.005)
        receiver = Receiver(200)
        async with Life(home, receiver) as life:
            life.webhooks.fire(CASA, STANDING)  # what a restart does: the threshold is still crossed
            await life.settled()
        async with Life(home, receiver) as life:
            life.webhooks.fire(CASA, STANDING)
            await life.settled()
            assert len(await life.rows()) == 1
        assert len(receiver.got) == 1

    run(work())


def test_the_next_day_has_its_own(home: Home) -> None:
    async def work() -> None:
        receiver = Receiver(200)
        async with Life(home, receiver) as life:
            life.webhooks.fire(CASA, STANDING)
            await life.settled()
            life.webhooks.fire(CASA, BudgetStatus(day_of(NOW + 86_400, "UTC"), 1_600_000_000, 0))
            while len(receiver.got) < 2:
                await asyncio.sleep(0.005)
        assert len({json.loads(body)["id"] for _, body, _ in receiver.got}) == 2

    run(work())


def test_without_an_address_nothing_is_stored_and_a_removed_one_ends_it(home: Home) -> None:
    async def work() -> None:
        receiver = Receiver(200)
        async with Life(home, receiver, None) as life:
            life.webhooks.fire(ProjectSpec(name="casa", model="m"), STANDING)
            await life.database.write(lambda tx: None)
            assert await life.rows() == []
            life.webhooks.fire(CASA, STANDING)
            row = await life.settled()
        assert (row.delivered_at, receiver.got) == (None, [])

    run(work())


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/x", "https://[::1]:8443/x", "http://hooks.example.com/", "https://localhost/"]
)
def test_delivery_itself_refuses_what_is_inside(home: Home, url: str) -> None:
    async def work() -> None:
        fetcher = Fetcher()
        from msgspec.structs import replace

        project = replace(CASA, webhook_url=url)
        async with Life(home, fetcher.deliver, project) as life:
            life.webhooks.fire(project, STANDING)
            row = await life.settled()
        await fetcher.close()
        assert (row.status, row.delivered_at, row.attempts) == (None, None, 4)

    run(work())


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
