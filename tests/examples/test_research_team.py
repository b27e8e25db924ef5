"""The research team does its task, and leaves a brief behind, on a server whose model is scripted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import tomli_w

from tests.live import live_server

EXAMPLE = Path(__file__).parents[2] / "examples" / "research_team.py"


def delegate(agent: str, mode: str) -> dict[str, Any]:
    return {"tool": "delegate_task", "arguments": {"agent": agent, "task": f"Work on it, {agent}.", "mode": mode}}


LEADS = {"tool_offered": "save_brief"}
SCRIPT: list[dict[str, Any]] = [
    {"when": {**LEADS, "after_tool": "save_brief"}, "say": [{"text": "Tea. {tool_result}"}]},
    {"when": {**LEADS, "nth": 1}, "say": [delegate("researcher", "foreground"), delegate("critic", "background")]},
    {"when": {**LEADS, "nth": 2}, "say": [{"tool": "save_brief", "arguments": {"title": "Tea", "text": "Drink tea."}}]},
    {"when": {"contains": "researcher"}, "say": [{"text": "Tea has less caffeine."}]},
    {"when": {"contains": "critic"}, "say": [{"text": "Nobody asked about water."}]},
    {"say": [{"text": "Tea or coffee"}]},
]
DECLARED = tomli_w.dumps({"engines": [{"name": "embedded", "kind": "scripted", "script": SCRIPT}]})


def test_the_team_finishes_its_task(tmp_path: Path) -> None:
    with live_server(tmp_path / "home", declaration=DECLARED) as server:
        for _ in range(2):  # the second time, everything is there already
            ran = subprocess.run(
                [sys.executable, "-W", "error", str(EXAMPLE), "--folder", str(tmp_path)],
                env=server.env | {"PYTHONIOENCODING": "utf-8", "XDG_STATE_HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=50,
                check=False,
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
            for line in (
                "> lead delegates to researcher (foreground)",
                "> lead delegates to critic (background)",
                "researcher: Tea has less caffeine.",
                "critic: Nobody asked about water.",
                "> lead uses save_brief",
                "> the chat is called",
                "[turn.completed,",
            ):
                assert line in ran.stdout
    briefs = list(tmp_path.glob("tc_*.md"))
    assert len(briefs) == 2 and {brief.read_text() for brief in briefs} == {"# Tea\n\nDrink tea.\n"}
