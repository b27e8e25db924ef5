"""The panel's state between requests, in memory only."""

from __future__ import annotations

import asyncio
from typing import Final

from crocevia.panel.conversations import PlaygroundMessages
from crocevia.panel.health import HealthBoard
from crocevia.panel.lru_cache import LruCache
from crocevia.panel.turn_stream import TeamChat
from crocevia.policy.rate_limits import RateLimiter

PER_ADDRESS: Final = (10, 300.0)  # attempts, seconds
PER_ACCOUNT: Final = (30, 900.0)
TEAM_CHATS: Final = 50  # conversations with teams; their messages are stored in chats


class PanelState:
    """One per panel."""

    def __init__(self) -> None:
        self.by_address = RateLimiter(PER_ADDRESS[1])
        self.by_account = RateLimiter(PER_ACCOUNT[1])
        self.hashing = asyncio.Semaphore(2)  # argon2 takes memory and a core
        self.health = HealthBoard()
        self.conversations = PlaygroundMessages()
        self.team_chats: LruCache[TeamChat] = LruCache(TEAM_CHATS)
