"""Neutral entries as contract 3."""

from __future__ import annotations

from typing import Any, Final

from crocevia.doors.atp.encode_v2 import totals as totals_v2
from crocevia.doors.atp.events import Encoder

VERSION: Final = 3


def totals(turn_id: str, spent: Any, chat: Any) -> dict[str, Any]:
    """As version 2, and that nothing is billed."""
    return totals_v2(turn_id, spent, chat) | {"billing": {"status": "inactive"}}


encoder = Encoder(VERSION, totals, attachments=True)
