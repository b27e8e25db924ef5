"""What was said in the playground, so that the browser holds no history and no key: in memory, bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

MOST: Final = 50  # conversations; the one unused for longest goes first
MESSAGES: Final = 100  # of one conversation


class Conversations:
    """Messages in the agent call's own form, by (session, project)."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], list[dict[str, Any]]] = OrderedDict()

    def get(self, session: str, project: str) -> list[dict[str, Any]]:
        """What was said so far."""
        return list(self._kept.get((session, project), ()))

    def put(self, session: str, project: str, messages: list[dict[str, Any]]) -> None:
        """Keep the conversation, without its oldest rounds if it is long."""
        while len(messages) > MESSAGES:
            following = [place for place, said in enumerate(messages) if place and said["role"] == "user"]
            messages = messages[following[0] :] if following else messages[-1:]
        self._kept[session, project] = messages
        self._kept.move_to_end((session, project))
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def drop(self, session: str, project: str) -> None:
        """A new chat."""
        self._kept.pop((session, project), None)
