"""The control plane's benchmark measures every operation; what it finds is nobody's assertion."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import control


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_every_operation_gets_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CHATS": 30, "TEAMS": 3, "FILE": 100_000, "KEYS": 6, "SIZES": (15,), "LISTS": 5}.items():
        monkeypatch.setattr(control, name, value)
    found = control.run(5, tmp_path)
    figures = found["cpu_ms"]
    for kind in ("tool", "agent", "team"):
        assert {f"{kind}.{verb}" for verb in ("create", "get", "update", "delete")} <= set(figures)
    assert {"key.create", "file.download", "attachment.get", "completion.get", "models.list (3 teams)"} <= set(figures)
    assert len(figures) > 38 and sum(figures.values()) > 0
    assert len(found["extra_memory_mib"]) == 4
