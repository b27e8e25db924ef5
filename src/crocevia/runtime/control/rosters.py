"""Whose agents answer: every user's agents by name, in memory for a second at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control import models
from crocevia.runtime.control.context import MOST, Control
from crocevia.storage import agents as rows
from crocevia.storage import teams, workspaces
from crocevia.storage.agents import StoredAgent
from crocevia.storage.database import Transaction

__all__ = ["ModelSpec", "Roster", "Rosters", "StoredAgent"]

FRESH_SECONDS: Final = 1.0
_KEPT: Final = 2000
_MAIN: Final = "main"


class Roster(msgspec.Struct, frozen=True):
    """A user's agents by name (lower case, too)."""

    agents: dict[str, StoredAgent]
    default: StoredAgent | None
    """Who answers when nobody is named; None: nobody is."""
    read_at: float
    workspace_id: str | None = None
    """The user's first; None: there is none."""

    def find(self, name: str) -> StoredAgent | None:
        return self.agents.get(name) or self.agents.get(name.lower())


class Rosters:
    """One per server; belongs to one event loop. What is older than a second is read again, once for all who wait."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._known: dict[str, Roster] = {}
        self._reading: dict[str, asyncio.Task[Roster]] = {}
        control.catalogue.subscribe(lambda before, after: self._known.clear())

    async def of(self, user_id: str) -> Roster:
        """The user's agents."""
        known = self._known.get(user_id)
        if known is not None and time.monotonic() - known.read_at < FRESH_SECONDS:
            return known
        reading = self._reading.get(user_id)
        if reading is None:
            reading = self._reading[user_id] = asyncio.ensure_future(self._read(user_id))
            reading.add_done_callback(lambda _: self._reading.pop(user_id, None))
        return await asyncio.shield(reading)

    @property
    def catalogue(self) -> dict[str, ModelSpec]:
        """Every model by name."""
        return self._control.catalogue.current.models

    def model_of(self, agent: StoredAgent) -> str:
        """The model that the agent thinks with. Raises GatewayError(UNAVAILABLE) when there is none at all."""
        name = agent.model or models.default_model(self._control)
        if name is None:
            raise GatewayError(Reason.AGENT_WITHOUT_MODEL, agent=agent.name)
        return name

    async def _read(self, user_id: str) -> Roster:
        started = time.monotonic()
        roster = await self._control.database.read(lambda tx: _load(tx, user_id, started))
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[user_id] = roster
        return roster


def _load(tx: Transaction, user_id: str, now: float) -> Roster:
    found = rows.listed(tx, user_id, MOST)
    agents = {agent.name.lower(): agent for agent in found} | {agent.name: agent for agent in found}
    places = workspaces.listed(tx, user_id, 1)
    return Roster(agents, _default(tx, user_id, found), now, places[0].id if places else None)


def _default(tx: Transaction, user_id: str, found: list[StoredAgent]) -> StoredAgent | None:
    """The leader of the team `main`, else the agent `main`, else the only one who can lead."""
    leaders = {team.orchestrator_id for team in teams.listed(tx, user_id, MOST) if team.name == _MAIN}
    primaries = [agent for agent in found if agent.mode == "primary"]
    for choice in (
        [agent for agent in found if agent.id in leaders],
        [agent for agent in found if agent.name == _MAIN],
        primaries if len(primaries) == 1 else [],
    ):
        if choice:
            return choice[0]
    return None
