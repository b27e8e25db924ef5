"""The generated part of the Go SDK is what the contract makes of it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_committed_is_what_the_contract_makes() -> None:
    spec = importlib.util.spec_from_file_location("generate_go", ROOT / "scripts/generate_go.py")
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for name, text in generator.outputs().items():
        committed = (ROOT / "sdk/go" / name).read_text(encoding="utf-8")
        # How gofmt lays it out (lines for semicolons, columns) is checked where there is a Go.
        assert re.sub(r"[\s;]+", "", committed) == re.sub(r"[\s;]+", "", text), name
