"""The classic API's memory: what was said, as text, per project and name.

Where the project keeps texts (`keep_texts_days`), a conversation is stored until that many days after its last word.
Where it keeps none, nothing is ever written: the conversation lives in this process, for a day of silence at most.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.messages import AssistantMessage, Message, user
from crocevia.storage import conversations as rows
from crocevia.storage.conversations import Role
from crocevia.storage.database import Database, Transaction

Said: TypeAlias = tuple[Role, str]

MOST_MESSAGES: Final = 40  # of a conversation: the last ones, and no more than so many characters of them
MOST_CHARACTERS: Final = 100_000
MEMORY_SECONDS: Final = 86_400.0
MEMORY_CHARACTERS: Final = 8_000_000  # of all conversations that only this process knows
DAY: Final = 86_400.0


class Conversations:
    """One per server. projects: those of this moment, whose retention is looked after."""

    def __init__(
        self,
        database: Database,
        projects: Callable[[], dict[str, ProjectSpec]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._projects = projects
        self._clock = clock
        self._memory = _Memory()

    async def history(self, project: ProjectSpec, name: str) -> tuple[Message, ...]:
        """What was said so far, bounded. Raises GatewayError(UNAVAILABLE)."""
        if not project.keep_texts_days:
            return _messages(self._memory.get(project.name, name, self._clock()))
        since = self._clock() - project.keep_texts_days * DAY
        found = await self._database.read(lambda tx: rows.last_messages(tx, project.name, name, MOST_MESSAGES))
        if not found or found[-1].at <= since:
            return ()
        return _messages(_bounded([(row.role, row.text) for row in found]))

    async def append(self, project: ProjectSpec, name: str, said: Sequence[Said]) -> None:
        """Remember a question and its answer. Raises GatewayError(UNAVAILABLE)."""
        now = self._clock()
        bounded = [(role, text[:MOST_CHARACTERS]) for role, text in said]
        if not project.keep_texts_days:
            self._memory.add(project.name, name, bounded, now)
            return

        def work(tx: Transaction) -> None:
            rows.expire(tx, project.name, now - project.keep_texts_days * DAY)
            rows.add_messages(tx, project.name, name, bounded, now)
            rows.trim(tx, project.name, name, MOST_MESSAGES)

        await self._database.write(work)

    async def forget(self, project: str, name: str) -> bool:
        """Delete a conversation; False if there was none. Raises GatewayError(UNAVAILABLE)."""
        dropped = self._memory.drop(project, name)
        return await self._database.write(lambda tx: rows.forget(tx, project, name)) > 0 or dropped

    async def drop_expired(self) -> None:
        """Delete what is over its retention; what a project stored before it kept no texts goes too.

        Raises GatewayError(UNAVAILABLE).
        """
        now, kept = self._clock(), dict(self._projects())
        self._memory.expire(now)

        def work(tx: Transaction) -> None:
            for name in rows.projects(tx):
                days = kept[name].keep_texts_days if name in kept else 0
                rows.expire(tx, name, now - days * DAY)

        await self._database.write(work)


class _Memory:
    """Conversations of this process only, the longest silent forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[float, list[Said]]] = OrderedDict()
        self._characters = 0

    def get(self, project: str, name: str, now: float) -> list[Said]:
        self.expire(now)
        return self._kept.get((project, name), (now, []))[1]

    def add(self, project: str, name: str, said: list[Said], now: float) -> None:
        before = self.get(project, name, now)
        self.drop(project, name)
        after = _bounded([*before, *said])
        self._kept[project, name] = (now, after)
        self._characters += _size(after)
        while self._characters > MEMORY_CHARACTERS:
            self.drop(*next(iter(self._kept)))

    def drop(self, project: str, name: str) -> bool:
        found = self._kept.pop((project, name), None)
        if found is not None:
            self._characters -= _size(found[1])
        return found is not None

    def expire(self, now: float) -> None:
        while self._kept:
            key, (at, _) = next(iter(self._kept.items()))
            if at > now - MEMORY_SECONDS:
                return
            self.drop(*key)


def _bounded(said: list[Said]) -> list[Said]:
    """The last messages that fit, beginning with a question."""
    kept: list[Said] = []
    left = MOST_CHARACTERS
    for role, text in reversed(said[-MOST_MESSAGES:]):
        left -= len(text)
        if left < 0:
            break
        kept.insert(0, (role, text))
    while kept and kept[0][0] != "user":
        del kept[0]
    return kept


def _size(said: list[Said]) -> int:
    return sum(len(text) + 64 for _, text in said)


def _messages(said: list[Said]) -> tuple[Message, ...]:
    return tuple(user(text) if role == "user" else AssistantMessage(text=text) for role, text in said)
