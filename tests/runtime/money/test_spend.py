"""Money in memory stays true to the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec, Prices, ProjectSpec
from crocevia.core.errors import GatewayError
from crocevia.core.messages import AssistantMessage, FilePart, TextPart, Tool, UserMessage, user
from crocevia.core.usage import Usage
from crocevia.policy.budget import BudgetStatus
from crocevia.policy.periods import day_of
from crocevia.runtime.catalogue import Catalogue
from crocevia.runtime.money.follower import SpendFollower
from crocevia.runtime.money.spend import Spend, prompt_tokens
from crocevia.storage import migrate, spending
from crocevia.storage.database import Database
from crocevia.storage.records import OpenedCall, SettledCall, open_calls, settle_calls, settle_interrupted
from tests.aio import run
from tests.fakes.requests import model_request

NOW = 1_793_000_000.0
BRAIN = ModelSpec(name="m", engine="e", prices=Prices(input=1, output=10))
CASA = ProjectSpec(name="casa", model="m", daily_budget_usd=1.0, soft_threshold_usd=0.5, timezone="Europe/Rome")
ASKED = model_request(model="x", messages=(user("ciao"),), max_tokens=256)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "crocevia.db"
    migrate.migrate(file)
    return file


def opened(name: str, at: float, reserved: float | None = None) -> OpenedCall:
    return OpenedCall(
        id=name, started_at=at, door="pepper", catalogue_revision=1, project="casa", reserved_usd=reserved
    )


def settled(name: str, cost: float | None) -> SettledCall:
    return SettledCall(id=name, settled_at=NOW, outcome="ok", ended_by="model", cost_usd=cost)


def test_a_new_life_knows_what_today_cost_and_nothing_of_yesterday(path: Path) -> None:
    async def work() -> None:
        database = Database(path)
        day = day_of(NOW, "Europe/Rome")
        opens = [
            opened("yesterday", day.since - 0.5),
            opened("first", day.since),
            *(opened(f"tenth{number}", NOW) for number in range(10)),
            opened("unknown", NOW),
            opened("crashed", NOW, 0.25),
        ]
        await database.write(lambda tx: open_calls(tx, opens))
        closes = [settled("yesterday", 5.0), settled("first", 0.01), settled("unknown", None)]
        closes += [settled(f"tenth{number}", 0.1) for number in range(10)]
        await database.write(lambda tx: settle_calls(tx, closes))
        await database.write(lambda tx: settle_interrupted(tx, NOW))
        await database.write(lambda tx: spending.add_correction(tx, "casa", -260_000_001, "x", NOW))
        told: list[BudgetStatus] = []
        spend = Spend(clock=lambda: NOW, on_soft=lambda project, standing: told.append(standing))
        await SpendFollower(database, spend, clock=lambda: NOW).start(Catalogue(revision=1, projects={"casa": CASA}))
        assert spend.status(CASA).spent == 999_999_999
        assert len(told) == 1  # what a crash kept from being told is told now; the store knows whether it was
        row = await database.read(lambda tx: spending.day_spend(tx, "casa", day.since, day.until))
        assert (row.total, row.reserved, row.calls, row.unpriced) == (999_999_999, 0, 13, 1)
        await database.close()

    run(work())


def test_a_correction_and_a_zone_are_followed_with_the_next_catalogue(path: Path) -> None:
    async def work() -> None:
        database = Database(path)
        spend = Spend(clock=lambda: NOW)
        follower = SpendFollower(database, spend, clock=lambda: NOW)
        before = Catalogue(revision=1, projects={"casa": CASA})
        await follower.start(before)
        spend.reserve(CASA, BRAIN, ASKED, NOW).settle(Usage(input_tokens=500_000, output_tokens=50_000))
        with pytest.raises(GatewayError):
            spend.reserve(CASA, BRAIN, ASKED, NOW)
        await database.write(lambda tx: spending.add_correction(tx, "casa", -500_000_000, "x", NOW))
        moved = replace(CASA, timezone="Asia/Tokyo")
        follower.follow(before, Catalogue(revision=2, projects={"casa": moved}))
        while spend.status(moved).spent != 500_000_000:
            await asyncio.sleep(0.005)
        assert spend.status(moved).day == day_of(NOW, "Asia/Tokyo")
        spend.reserve(moved, BRAIN, ASKED, NOW).release()
        await follower.close()
        await database.close()

    run(work())


def test_a_limit_that_is_raised_holds_at_once() -> None:
    spend = Spend(clock=lambda: NOW)
    spend.reserve(CASA, BRAIN, ASKED, NOW).settle(Usage(input_tokens=1_000_000, output_tokens=0))
    with pytest.raises(GatewayError):
        spend.reserve(CASA, BRAIN, ASKED, NOW)
    spend.reserve(replace(CASA, daily_budget_usd=2.0), BRAIN, ASKED, NOW).release()


def test_the_prompts_estimate_counts_everything_that_is_sent() -> None:
    tool = Tool(name="n" * 30, description="d" * 30, parameters=b"{}")  # type: ignore[arg-type]  # any buffer will do
    image = FilePart(kind="image", media_type="image/png", data=b"x", name="f")
    paper = FilePart(kind="document", media_type="application/pdf", data=b"x" * 4000, name="f")
    plain = ModelRequest(model="x", messages=(user("a" * 300),))
    more = [
        replace(plain, system="s" * 300),
        replace(plain, tools=(tool,)),
        replace(plain, messages=(*plain.messages, AssistantMessage(text="b" * 300))),
        replace(plain, messages=(UserMessage(parts=(TextPart(text="a" * 300), image)),)),
        replace(plain, messages=(UserMessage(parts=(TextPart(text="a" * 300), paper)),)),
    ]
    least = prompt_tokens(plain, BRAIN)
    assert least >= 100
    assert all(prompt_tokens(request, BRAIN) > least + 15 for request in more)
    assert prompt_tokens(more[0], replace(BRAIN, context_window=50)) == 50
