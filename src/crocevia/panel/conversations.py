"""The playground's conversations, in memory and bounded, so that the browser holds no history and no key."""

from __future__ import annotations

from typing import Any, Final

from crocevia.panel.lru_cache import LruCache

MOST: Final = 50  # conversations; the least recently used goes first
MESSAGES: Final = 100  # of one conversation


class PlaygroundMessages:
    """Messages in the agent call's own form, by (session, project)."""

    def __init__(self) -> None:
        self._cache: LruCache[list[dict[str, Any]]] = LruCache(MOST)

    def get(self, session: str, project: str) -> list[dict[str, Any]]:
        """The messages so far."""
        return list(self._cache.get((session, project)) or ())

    def put(self, session: str, project: str, messages: list[dict[str, Any]]) -> None:
        """Store the conversation, without its oldest rounds if it is long."""
        while len(messages) > MESSAGES:
            following = [place for place, message in enumerate(messages) if place and message["role"] == "user"]
            messages = messages[following[0] :] if following else messages[-1:]
        self._cache.put((session, project), messages)

    def drop(self, session: str, project: str) -> None:
        """Forget the conversation."""
        self._cache.drop((session, project))
