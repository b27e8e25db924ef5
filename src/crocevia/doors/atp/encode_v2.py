"""Neutral entries as version 2 of the protocol."""

from __future__ import annotations

from typing import Any, Final

from crocevia.doors.atp.events import Encoder, usage

VERSION: Final = 2


def totals(turn_id: str, spent: Any, chat: Any) -> dict[str, Any]:
    """What every end of a turn says of its cost. Unknown is null here too: a number would be a lie."""
    return {
        "turn_id": turn_id,
        "usage": usage(spent),
        "cost": spent.cost_usd,
        "chat_usage": usage(chat),
        "chat_cost": chat.cost_usd,
    }


encoder = Encoder(VERSION, totals)
