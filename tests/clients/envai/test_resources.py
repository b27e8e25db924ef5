"""The official client cannot tell us from the original: both versions, sync and async, everything but turns."""

from __future__ import annotations

import json
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
from tests.live import LiveServer, live_server

from .environment import VERSIONS, drive, python_with

ROWS = Path(__file__).with_name("drive_rows.py")
MEDIA = Path(__file__).with_name("drive_media.py")
DECLARATION = """
[[engines]]
name = "embedded"
kind = "scripted"

[[models]]
name = "brush"
engine = "embedded"
upstream = "image"
"""
SECRET = "of-the-provider"
# Turns, which test_turns.py drives: what is said to a chat, and helpers over it. Everything else must be driven here.
SPEAKING = ("/chats/", "/atp/v3/chats/")
HELPERS = {"chats.events", "chats.send_and_stream", "chats.send_and_wait"}


@pytest.mark.clients
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_official_client_drives_all_that_it_offers_but_turns(
    version: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert request.config.cache is not None
    python = python_with(version, request.config.cache.mkdir(f"envai-teams-sdk-{version}"))
    with live_server(tmp_path / "home", declaration=DECLARATION) as server:
        (server.home / "keys" / "webhooks.json").write_text(json.dumps({"black-forest-labs": {"secret": SECRET}}))
        full, empty = two_chats(server)
        key, workspace = server.secrets["api_key"], server.secrets["workspace_id"]
        rows = drive(python, ROWS, server.url, key, workspace, full, empty)
        media = drive(python, MEDIA, server.url, key, workspace, empty, SECRET)
    for kind in ("sync", "async"):
        called = {*rows[kind]["called"], *media[kind]["called"]}
        assert sorted(to_be_driven(rows[kind]["offered"]) - called) == []
        assert len(called) > 80
    assert rows["sync"]["called"] == rows["async"]["called"]
    assert media["sync"]["called"] == media["async"]["called"]


def to_be_driven(offered: dict[str, str]) -> set[str]:
    return {name for name, path in offered.items() if not path.startswith(SPEAKING)} - HELPERS


def test_a_method_that_is_never_driven_is_noticed() -> None:
    offered = {"files.get": "/workspaces/{w}/files", "chats.cancel": "/chats/{c}/cancel", "completions.iterate": ""}
    assert to_be_driven(offered | {"chats.events": ""}) == {"files.get", "completions.iterate"}


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
