"""The official client cannot tell us from the original: both versions, sync and async, every resource of rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from crocevia.core.costs import usage_cost
from crocevia.core.ids import new_id
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.snapshot import Snapshot
from crocevia.storage import chats, completions
from crocevia.storage.completions import Completion
from crocevia.storage.database import immediate
from tests.doors.atp.contract import operations
from tests.live import LiveServer, live_server

from .environment import VERSIONS, drive, python_with

DRIVER = Path(__file__).with_name("drive_rows.py")
ELSEWHERE = ("Chat", "File", "Image", "Artifact", "ProviderWebhook", "Capabilities", "Wiki")
ROWS = {name for name, _, _ in operations() if not any(word in name for word in ELSEWHERE)}
ROWS |= {"createChat", "listChats", "getChat"}


@pytest.mark.clients
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_official_client_drives_every_row(version: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    python = python_with(version, request.config.cache.mkdir(f"envai-teams-sdk-{version}"))
    with live_server(tmp_path / "home") as server:
        full, empty = two_chats(server)
        key, workspace = server.secrets["api_key"], server.secrets["workspace_id"]
        called = drive(python, DRIVER, server.url, key, workspace, full, empty)
    assert set(called["sync"]) == set(called["async"])
    assert set(called["sync"]) - {"getCapabilities"} == ROWS


def two_chats(server: LiveServer) -> tuple[str, str]:
    """One with five turns in it, one without."""
    secrets = server.secrets
    known = usage_cost({"USD": Decimal("0.42")}, invocations=1, pending=0, closed=True, basis="reported", as_of=9.0)
    with immediate(server.home / "crocevia.db") as tx:
        full, empty = (
            chats.add(tx, secrets["user_id"], secrets["workspace_id"], secrets["team_id"], 1_790_000_000.0)
            for _ in range(2)
        )
        for index in range(5):
            turn, at = new_id("cmpl"), 1_790_000_000.0 + 60 * index
            used = Totals(input_tokens=12, output_tokens=3, cost_usd=0.42, duration_ms=1500)
            completions.add(
                tx,
                Completion(
                    id=turn,
                    workspace_id=full.workspace_id,
                    chat_id=full.id,
                    team_id=full.team_id,
                    user_id=full.user_id,
                    model_orchestrator="Pepper mini",
                    started_at=at,
                    created_at=at,
                    updated_at=at,
                ),
            )
            ended = Snapshot(
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
            assert completions.close(tx, ended, usage_cost=known)
    return full.id, empty.id
