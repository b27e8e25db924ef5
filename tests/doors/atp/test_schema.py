"""The check of every event is itself checked: what is wrong is noticed, whoever encodes it."""

from __future__ import annotations

import pytest

from crocevia.core.turn import entries as e
from crocevia.doors.atp import encode_v2, encode_v3
from crocevia.doors.atp.events import Encoder

from . import schema

CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz"
TURN = "cmpl_01j5abcdefghjkmnpqrstvwxyz"


@pytest.mark.parametrize("encoder", [encode_v2.encoder, encode_v3.encoder], ids=["2", "3"])
@pytest.mark.parametrize(("title", "wrong"), [("Tea", False), ("two\nlines", True), ("", True)])
def test_an_event_that_the_contract_does_not_know_fails_its_test(encoder: Encoder, title: str, wrong: bool) -> None:
    frame = encoder.frame(CHAT, "01j5abcdefghjkmnpqrstvwxyz", 7, e.ChatTitleUpdated(turn=TURN, at=1, title=title))
    assert frame.startswith(b"id: ")
    assert bool(schema.WRONG) is wrong
    schema.WRONG.clear()
