"""Every client of the door has a test, and every reason of the table is about a cell of it."""

from __future__ import annotations

from . import test_node, test_python
from .features import CLIENTS, FEATURES, REASONS
from .server import EXPECTED


def test_every_client_has_a_test() -> None:
    assert {*test_python.PROGRAMS, "llm", *test_node.PROGRAMS, "codex"} == set(CLIENTS)


def test_every_feature_has_an_expected_outcome_and_every_reason_a_cell() -> None:
    assert set(FEATURES) <= set(EXPECTED)
    assert all(client in CLIENTS and feature in FEATURES and reason for (client, feature), reason in REASONS.items())
