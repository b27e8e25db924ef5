"""Answers that callers come back to, and the sessions that they make up.

A session is the chain of its answers: each knows the one before, and going on means reading the chain. What is
put here can be read at once and is written to the store in groups, a moment later.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.storage import responses as rows
from crocevia.storage.database import Database, Transaction
from crocevia.storage.responses import StoredResponse

__all__ = ["Link", "Responses", "StoredResponse"]

GATHER_SECONDS: Final = 0.02
RETRY_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 1.0
LONGEST_CHAIN: Final = 2000


class Link(msgspec.Struct, frozen=True):
    """Who may go on from an answer: the same subject and agent, in the same explicitly named session."""

    subject: str
    agent: str
    session: str | None = None


class Responses:
    """One per server; belongs to one event loop. keep_seconds: how long an answer is kept. clock: Unix seconds."""

    def __init__(self, database: Database, *, keep_seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.keep_seconds = keep_seconds
        self._database = database
        self._clock = clock
        self._fresh: OrderedDict[str, StoredResponse] = OrderedDict()  # not yet written
        self._heads: dict[tuple[str, str, str], str] = {}  # of sessions, among what is not yet written
        self.running: set[str] = set()  # being made in this process
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._written: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._write(), name="responses")

    def put(self, response: StoredResponse) -> None:
        """Keep it, or a later state of it."""
        self._fresh[response.id] = response
        if response.session is not None and response.status != "failed":
            self._heads[response.subject, response.agent, response.session] = response.id
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
        """Raises GatewayError(NOT_FOUND)."""
        await self.find(subject, response_id)
        fresh = self._fresh.pop(response_id, None)
        if fresh is not None and fresh.session is not None:
            self._heads.pop((fresh.subject, fresh.agent, fresh.session), None)
        await self._database.write(lambda tx: rows.drop(tx, response_id))
        self._fresh.pop(response_id, None)

    async def head(self, link: Link) -> str | None:
        """The session's newest answer; None if it has none, or is no session."""
        session = link.session
        if session is None:
            return None
        fresh = self._heads.get((link.subject, link.agent, session))
        if fresh is not None:
            return fresh
        now = self._clock()
        return await self._database.read(lambda tx: rows.newest(tx, link.subject, link.agent, session, now))

    async def chain(self, link: Link, response_id: str) -> list[StoredResponse]:
        """The answer and all before it, the oldest first.

        Raises GatewayError(INVALID_REQUEST) with the sentence `previous_response_missing` if it is unknown, expired,
        failed, or not for this link to go on from.
        """
        fresh = dict(self._fresh)
        now = self._clock()
        found = await self._database.read(lambda tx: _chain(tx, fresh, response_id, now))
        if not found or not _continues(found[-1], link):
            raise previous_missing(response_id)
        return found

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
                if written.session is not None:
                    key = (written.subject, written.agent, written.session)
                    if self._heads.get(key) == written.id:
                        del self._heads[key]


def previous_missing(response_id: str) -> GatewayError:
    """Nobody can tell why it is not there."""
    return GatewayError(Reason.PREVIOUS_RESPONSE_MISSING, param="previous_response_id", id=response_id[:80])


def _missing(response_id: str) -> GatewayError:
    return GatewayError(Reason.RESPONSE_MISSING, id=response_id[:80])


def _chain(tx: Transaction, fresh: dict[str, StoredResponse], last: str, now: float) -> list[StoredResponse]:
    found: list[StoredResponse] = []
    wanted: str | None = last
    while wanted is not None and len(found) < LONGEST_CHAIN:
        one = fresh.get(wanted) or rows.find(tx, wanted)
        if one is None or one.expires_at <= now or one.status not in ("completed", "incomplete"):
            break
        found.append(one)
        wanted = one.previous_id
    return found[::-1]


def _continues(response: StoredResponse, link: Link) -> bool:
    same = response.subject == link.subject and response.agent == link.agent
    return same and link.session in (None, response.session)
