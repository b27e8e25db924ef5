"""Large files pass through: what comes in or goes out is never held whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench.control import memory, serving


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of a process from /proc")
def test_ten_mib_come_and_go_with_little_memory_one_at_a_time_and_eight(tmp_path: Path) -> None:
    with serving(tmp_path, 0) as server:
        risen = memory(server)
    assert len(risen) == 4
    assert max(risen.values()) <= 20, risen
