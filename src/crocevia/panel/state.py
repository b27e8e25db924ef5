"""What the panel remembers between requests, in memory only."""

from __future__ import annotations

import asyncio
from typing import Final

from crocevia.panel.attempts import Attempts
from crocevia.panel.conversations import Conversations
from crocevia.panel.health import HealthBoard
from crocevia.panel.lru_cache import LruCache
from crocevia.panel.turn_stream import Talk

PER_ADDRESS: Final = (10, 300.0)  # attempts, seconds
PER_ACCOUNT: Final = (30, 900.0)
TALKS: Final = 50  # with teams; what was said is in their chats


class State:
    """hashing: argon2 takes memory and a core, so only so many at once."""

    def __init__(self) -> None:
        self.by_address = Attempts(*PER_ADDRESS)
        self.by_account = Attempts(*PER_ACCOUNT)
        self.hashing = asyncio.Semaphore(2)
        self.health = HealthBoard()
        self.conversations = Conversations()
        self.talks: LruCache[Talk] = LruCache(TALKS)
