"""What holds in every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from crocevia.doors.atp.events import Encoder
from tests.doors.atp import schema

settings.register_profile("suite", deadline=None)  # how busy the machine is says nothing about the product
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def every_event_is_as_the_contract_says(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of all that this process encodes, whichever test makes it do so."""
    monkeypatch.setattr(Encoder, "frame", schema.CheckedEncoder.frame)
    monkeypatch.setattr(Encoder, "ping", schema.CheckedEncoder.ping)
    schema.WRONG.clear()
    yield
    assert schema.WRONG == []
