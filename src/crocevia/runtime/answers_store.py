"""Answers that callers come back to, and the sessions that they make up.

A session is the chain of its whole answers: each knows the one before, and going on means reading the chain. What was
interrupted, failed or is still being made is no part of it. What is put here can be read at once and is written to the
store in groups, a moment later.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import Final, TypeAlias

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.session_turns import SessionTurns
from crocevia.storage import responses as rows
from crocevia.storage.database import Database, Transaction
from crocevia.storage.responses import StoredResponse

__all__ = ["Link", "Past", "Responses", "StoredResponse"]

GATHER_SECONDS: Final = 0.02
RETRY_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 1.0
LONGEST_CHAIN: Final = 10_000
_REMEMBERED_DELETIONS: Final = 4096


class Link(msgspec.Struct, frozen=True):
    """Who may go on from an answer: the same subject and agent, in the same explicitly named session."""

    subject: str
    agent: str
    session: str | None = None


class Past(msgspec.Struct, frozen=True):
    """What an answer goes on from."""

    answers: tuple[StoredResponse, ...] = ()
    """The oldest first."""
    gaps: bool = False
    """Something that was said in between is gone, or belongs elsewhere."""


class Responses:
    """One per server; belongs to one event loop. keep_seconds: how long an answer is kept. clock: Unix seconds."""

    def __init__(self, database: Database, *, keep_seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.keep_seconds = keep_seconds
        self._database = database
        self._clock = clock
        self._fresh: OrderedDict[str, StoredResponse] = OrderedDict()  # not yet written
        self._deleted: OrderedDict[str, None] = OrderedDict()  # lately: what still makes them puts in vain
        self.turns = SessionTurns()
        self.running: set[str] = set()  # being made in this process
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._written: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._write(), name="responses")

    def put(self, response: StoredResponse) -> None:
        """Keep it, or a later state of it."""
        if response.id not in self._deleted:
            self._fresh[response.id] = response
            self._wake.set()

    async def settled(self, response_id: str) -> None:
        """Return when what was put of it is on disk; after a second anyway, it is kept in memory until it is."""
        if response_id not in self._fresh:
            return
        written = self._written.setdefault(response_id, asyncio.Event())
        self._hurry.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await written.wait()

    async def unfinished(self) -> list[StoredResponse]:
        """Answers that an earlier process did not finish."""
        return await self._database.read(rows.unfinished)

    async def find(self, subject: str, response_id: str) -> StoredResponse:
        """An answer that its caller wanted kept. Raises GatewayError(NOT_FOUND)."""
        found = self._fresh.get(response_id)
        if found is None:
            found = await self._database.read(lambda tx: rows.find(tx, response_id))
        if found is None or found.subject != subject or not found.visible or found.expires_at <= self._clock():
            raise _missing(response_id)
        return found

    async def delete(self, subject: str, response_id: str) -> None:
        """Nobody is told of it any more, no model either. Raises GatewayError: NOT_FOUND, UNAVAILABLE."""
        await self.find(subject, response_id)
        await self.settled(response_id)
        self._deleted[response_id] = None
        while len(self._deleted) > _REMEMBERED_DELETIONS:
            self._deleted.popitem(last=False)
        self._fresh.pop(response_id, None)
        await self._database.write(lambda tx: rows.delete_one(tx, response_id))

    async def head(self, link: Link) -> str | None:
        """The session's newest whole answer; None if it has none, or is no session."""
        session = link.session
        if session is None:
            return None
        place = (link.subject, link.agent, session)
        fresh = [
            (one.created_at, one.id)
            for one in self._fresh.values()
            if (one.subject, one.agent, one.session) == place and one.status in rows.WHOLE
        ]
        if fresh:
            return max(fresh)[1]
        now = self._clock()
        return await self._database.read(lambda tx: rows.newest(tx, *place, now))

    async def session(self, link: Link) -> Past:
        """All of the session that is still there; nothing where it has no whole answer."""
        newest = await self.head(link)
        if newest is None:
            return Past()
        fresh, now = dict(self._fresh), self._clock()
        return await self._database.read(lambda tx: _session(tx, fresh, newest, now))

    async def chain(self, link: Link, response_id: str) -> Past:
        """The answer and all before it.

        Raises GatewayError(INVALID_REQUEST) with the sentence `previous_response_missing` if one of them is unknown,
        expired, deleted or failed, or is not for this link to go on from.
        """
        fresh, now = dict(self._fresh), self._clock()
        found, whole, gaps = await self._database.read(lambda tx: _chain(tx, fresh, response_id, now))
        if not whole or not _continues(found[-1], link):
            raise previous_missing(response_id)
        if found[-1].session is not None:
            newest = await self.head(Link(link.subject, link.agent, found[-1].session))
            gaps = gaps or newest != response_id
        return Past(tuple(found), gaps)

    async def check_there(self, answers: Iterable[StoredResponse]) -> None:
        """Raises GatewayError(INVALID_REQUEST) with `previous_response_missing` if one was deleted or has expired."""
        names = [one.id for one in answers if one.id not in self._fresh]
        now = self._clock()
        found = await self._database.read(lambda tx: [rows.find_without_events(tx, name) for name in names])
        for name, one in zip(names, found, strict=True):
            if one is None or not _usable(one, now):
                raise previous_missing(name)

    async def drop_expired(self) -> None:
        """Forget answers that are past their time. Raises GatewayError(UNAVAILABLE)."""
        now = self._clock()
        await self._database.write(lambda tx: rows.expire(tx, now))

    async def close(self) -> None:
        """Write what is left and stop. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self._fresh:
            with suppress(GatewayError):
                await self._flush()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_SECONDS):
                    await self._hurry.wait()
            self._wake.clear()
            self._hurry.clear()
            try:
                await self._flush()
            except GatewayError:
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _flush(self) -> None:
        batch = list(self._fresh.values())
        await self._database.write(lambda tx: rows.put_all(tx, batch))
        for written in batch:
            if self._fresh.get(written.id) is written:  # else a later state came meanwhile
                del self._fresh[written.id]
                if (waiting := self._written.pop(written.id, None)) is not None:
                    waiting.set()


def previous_missing(response_id: str) -> GatewayError:
    """Nobody can tell why it is not there."""
    return GatewayError(Reason.PREVIOUS_RESPONSE_MISSING, param="previous_response_id", id=response_id[:80])


def _missing(response_id: str) -> GatewayError:
    return GatewayError(Reason.RESPONSE_MISSING, id=response_id[:80])


Fresh: TypeAlias = dict[str, StoredResponse]


def _usable(one: StoredResponse, now: float) -> bool:
    return one.status in rows.WHOLE and one.expires_at > now


def _chain(tx: Transaction, fresh: Fresh, last: str, now: float) -> tuple[list[StoredResponse], bool, bool]:
    """The answers up to one; whether they are all there; whether others of their session were deleted."""
    found: list[StoredResponse] = []
    wanted: str | None = last
    while wanted is not None and len(found) < LONGEST_CHAIN:
        one = fresh.get(wanted) or rows.find_without_events(tx, wanted)
        if one is None or not _usable(one, now):
            return found[::-1], False, True
        found.append(one)
        wanted = one.previous_id
    return found[::-1], True, _lost(tx, found)


def _session(tx: Transaction, fresh: Fresh, newest: str, now: float) -> Past:
    """The answers of a session up to its newest. What is gone in between is passed over.

    Where the chain ends before the session does (its head was lost once, or a part has expired), the answer before it
    in time is the one before.
    """
    found: list[StoredResponse] = []
    passed, gaps, earliest = set[str](), False, inf
    wanted: str | None = newest
    while wanted is not None and len(found) < LONGEST_CHAIN:
        passed.add(wanted)
        one = fresh.get(wanted) or rows.find_without_events(tx, wanted)
        usable = one is not None and _usable(one, now)
        gaps = gaps or not usable
        if one is not None:
            earliest = min(earliest, one.created_at)
            if usable:
                found.append(one)
        wanted = one.previous_id if one is not None else None
        if wanted is None and found:
            head = found[0]
            assert head.session is not None
            wanted = rows.newest(tx, head.subject, head.agent, head.session, now, earliest)
            gaps = gaps or wanted is not None
        if wanted in passed:
            break
    return Past(tuple(found[::-1]), gaps or _lost(tx, found))


def _lost(tx: Transaction, found: list[StoredResponse]) -> bool:
    """Whether the session of these had others that were deleted."""
    last = found[0] if found else None
    return (
        last is not None and last.session is not None and rows.any_deleted(tx, last.subject, last.agent, last.session)
    )


def _continues(response: StoredResponse, link: Link) -> bool:
    same = response.subject == link.subject and response.agent == link.agent
    return same and link.session in (None, response.session)
