"""Rows that no client can make, written straight into a home's store."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

from crocevia.core.costs import usage_cost
from crocevia.core.ids import new_id
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.snapshot import Snapshot
from crocevia.storage import completions, teams
from crocevia.storage.completions import Completion
from crocevia.storage.database import immediate


def teams_of(home: Path, ids: dict[str, str], count: int) -> None:
    """Teams of the user until there are `count`, led as the first one is."""
    with immediate(home / "crocevia.db") as tx:
        have = teams.listed(tx, ids["user_id"], count)
        leader = next(team.orchestrator_id for team in have if team.id == ids["team_id"])
        for number in range(len(have), count):
            teams.add(tx, ids["user_id"], f"team {number}", None, leader, (), time.time())


def completions_of(home: Path, ids: dict[str, str], chat_id: str, count: int) -> list[str]:
    """Turns of a chat that are over; their ids."""
    made = [new_id("cmpl") for _ in range(count)]
    known = usage_cost({"USD": Decimal("0.42")}, invocations=1, pending=0, closed=True, basis="reported", as_of=9.0)
    used = Totals(input_tokens=12, output_tokens=3, cost_usd=0.42, duration_ms=1500)
    with immediate(home / "crocevia.db") as tx:
        for turn in made:
            at = time.time()
            row = Completion(
                id=turn,
                workspace_id=ids["workspace_id"],
                chat_id=chat_id,
                team_id=ids["team_id"],
                user_id=ids["user_id"],
                started_at=at,
                created_at=at,
                updated_at=at,
            )
            completions.add(tx, row)
            end = Snapshot(
                event_id=new_id("evt"),
                occurred_at=int(at * 1000) + 1500,
                event_type="turn.completed",
                turn_id=turn,
                usage=used,
                chat_usage=used,
                wire=3,
                status="succeeded",
                finish_reason="stop",
            )
            completions.close(tx, end, usage_cost=known)
    return made
