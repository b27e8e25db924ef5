"""The panel's state between requests, in memory only."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final, Generic, TypeVar

from crocevia.panel.health import HealthBoard
from crocevia.panel.turn_stream import TeamChat
from crocevia.policy.rate_limits import RateLimiter

PER_ADDRESS: Final = (10, 300.0)  # attempts, seconds
PER_ACCOUNT: Final = (30, 900.0)
TEAM_CHATS: Final = 50  # conversations with teams; their messages are stored in chats
PLAYGROUNDS: Final = 50  # conversations
PLAYGROUND_MESSAGES: Final = 100  # of one conversation

T = TypeVar("T")
Key = tuple[str, str]


class LruCache(Generic[T]):
    """Holds at most `most` items."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Key, T] = OrderedDict()

    def get(self, key: Key) -> T | None:
        """The item, if it is still there."""
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: Key, value: T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._most:
            self._items.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._items.pop(key, None)


class PlaygroundMessages:
    """Messages in the agent call's own form, by (session, project)."""

    def __init__(self) -> None:
        self._cache: LruCache[list[dict[str, Any]]] = LruCache(PLAYGROUNDS)

    def get(self, session: str, project: str) -> list[dict[str, Any]]:
        """The messages so far."""
        return list(self._cache.get((session, project)) or ())

    def put(self, session: str, project: str, messages: list[dict[str, Any]]) -> None:
        """Store the conversation, without its oldest rounds if it is long."""
        while len(messages) > PLAYGROUND_MESSAGES:
            following = [place for place, message in enumerate(messages) if place and message["role"] == "user"]
            messages = messages[following[0] :] if following else messages[-1:]
        self._cache.put((session, project), messages)

    def drop(self, session: str, project: str) -> None:
        """Forget the conversation."""
        self._cache.drop((session, project))


class PanelState:
    """One per panel."""

    def __init__(self) -> None:
        self.by_address = RateLimiter(PER_ADDRESS[1])
        self.by_account = RateLimiter(PER_ACCOUNT[1])
        self.hashing = asyncio.Semaphore(2)  # argon2 takes memory and a core
        self.health = HealthBoard()
        self.conversations = PlaygroundMessages()
        self.team_chats: LruCache[TeamChat] = LruCache(TEAM_CHATS)
