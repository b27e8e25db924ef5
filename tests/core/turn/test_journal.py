"""What is in the journal stays readable: names of types and fields on disk do not follow those in the code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.turn import entries as e

# One entry of each type with every field set, written before names in the code changed. Never regenerate it.
STORED = Path(__file__).with_name("journal.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("line", STORED, ids=lambda line: line.split(b'"')[3].decode())
def test_a_stored_entry_is_read_whole_and_written_again_as_it_was(line: bytes) -> None:
    entry = e.decode(line)
    again = e.encode(entry)
    assert leaves(json.loads(line)) <= leaves(json.loads(again)) and e.decode(again) == entry
    assert again == line or isinstance(entry, e.TurnOpened)  # whose `brief` may be spelled anew


def leaves(value: Any) -> Counter[Any]:
    """Every text and number in it, wherever it stands."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return sum(map(leaves, inner), Counter())
    return Counter([value])


def test_there_is_a_stored_entry_of_every_type_that_was_ever_written() -> None:
    assert {type(e.decode(line)) for line in STORED} == e.PUBLIC | e.PRIVATE
