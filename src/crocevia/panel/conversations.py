"""What was said in the playground, so that the browser holds no history and no key: in memory, bounded."""

from __future__ import annotations

from typing import Any, Final

from crocevia.panel.lru_cache import LruCache

MOST: Final = 50  # conversations; the one unused for longest goes first
MESSAGES: Final = 100  # of one conversation


class Conversations:
    """Messages in the agent call's own form, by (session, project)."""

    def __init__(self) -> None:
        self._kept: LruCache[list[dict[str, Any]]] = LruCache(MOST)

    def get(self, session: str, project: str) -> list[dict[str, Any]]:
        """What was said so far."""
        return list(self._kept.get((session, project)) or ())

    def put(self, session: str, project: str, messages: list[dict[str, Any]]) -> None:
        """Keep the conversation, without its oldest rounds if it is long."""
        while len(messages) > MESSAGES:
            following = [place for place, said in enumerate(messages) if place and said["role"] == "user"]
            messages = messages[following[0] :] if following else messages[-1:]
        self._kept.put((session, project), messages)

    def drop(self, session: str, project: str) -> None:
        """A new chat."""
        self._kept.drop((session, project))
