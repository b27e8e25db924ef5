"""Who answers: an agent by name, or a model of the catalogue where that is exposed."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.operators import Operator
from crocevia.runtime.control.rosters import Roster, Rosters, StoredAgent
from crocevia.runtime.gateway import Gateway

ADMIN: Final = "operator.admin"
_AGENT: Final = re.compile(r"[^\s/]{1,128}(?: [^\s/]{1,128})*")
_NAMED: Final = 80


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """agent: the name of whoever answers; empty for a bare model. model: of the catalogue. system: the agent's own.

    definition: the agent; None for a bare model. workspace_id: where its files are.
    """

    agent: str
    model: str
    system: str | None
    sees: bool
    definition: StoredAgent | None = None
    workspace_id: str | None = None

    @property
    def acts(self) -> bool:
        """It has tools of its own."""
        return self.definition is not None and bool(self.definition.tools_enabled)

    @property
    def asks(self) -> bool:
        """Some of them need somebody's permission."""
        return self.acts and self.definition is not None and "ask" in self.definition.permissions.values()


class Targets:
    """prefix: what agents' names begin with. exposed: models answer by their own names too."""

    def __init__(self, rosters: Rosters, gateway: Gateway, *, prefix: str = "openclaw", exposed: bool = False) -> None:
        self.prefix = prefix
        self._rosters = rosters
        self._gateway = gateway
        self._exposed = exposed

    async def choose(self, operator: Operator, model: str | None, *, agent: str | None, override: str | None) -> Target:
        """agent, override: an agent, and another model than its own, that the caller names besides.

        Raises GatewayError: INVALID_REQUEST (nobody of that name), FORBIDDEN, UNAVAILABLE."""
        name = self._agent_name(agent, model)
        if name is None:
            assert model is not None
            return self._target(None, self._override(operator, override) or model)
        roster = await self._rosters.of(operator.user_id)
        chosen_agent = _pick(roster, name)
        chosen = self._override(operator, override) or self._rosters.model_of(chosen_agent)
        return self._target(chosen_agent, chosen, roster.workspace_id)

    async def embedding_model(self, operator: Operator, model: str, *, override: str | None) -> str | None:
        """Of the catalogue, by its own name; None for an agent: the usual one embeds for all of them.

        Raises GatewayError: NOT_FOUND (nobody of that name: vectors of another model would not fit), FORBIDDEN.
        """
        wanted = self._override(operator, override)
        if wanted is not None:
            return wanted
        if model in self._rosters.catalogue:
            return model
        try:
            if name := self._agent_name(None, model):
                _pick(await self._rosters.of(operator.user_id), name)
        except GatewayError:
            raise GatewayError(Reason.MODEL_UNKNOWN, param="model", name=model[:_NAMED]) from None
        return None

    async def names(self, operator: Operator) -> list[str]:
        """Everything that answers to this operator, as `/v1/models` lists it."""
        roster = await self._rosters.of(operator.user_id)
        agents = sorted({agent.name for agent in roster.agents.values()})
        names = [self.prefix, f"{self.prefix}/default", *(f"{self.prefix}/{name}" for name in agents)]
        return names + (sorted(self._rosters.catalogue) if self._exposed else [])

    def spec(self, name: str) -> ModelSpec | None:
        return self._rosters.catalogue.get(name)

    def _agent_name(self, agent: str | None, model: str | None) -> str | None:
        """The agent that is meant (empty: the default one); None for a model of the catalogue."""
        if agent is not None:
            return agent
        if model is None:
            raise GatewayError(Reason.FIELD_NEEDED, param="model", field="model")
        if self._exposed and model in self._rosters.catalogue:
            return None
        bare = model.strip()
        low = bare.lower()
        if low in (self.prefix, f"{self.prefix}/default", f"{self.prefix}:default"):
            return ""
        for start in (f"{self.prefix}/", f"{self.prefix}:", "agent:"):
            if low.startswith(start) and _AGENT.fullmatch(bare[len(start) :]):
                return bare[len(start) :]
        raise GatewayError(Reason.MODEL_INVALID, param="model", prefix=self.prefix)

    def _override(self, operator: Operator, wanted: str | None) -> str | None:
        """Another model than the agent's own: its name, or `engine/upstream`."""
        if wanted is None:
            return None
        operator.grant.require(ADMIN)
        catalogue = self._rosters.catalogue
        if wanted in catalogue:
            return wanted
        engine, _, upstream = wanted.rpartition("/")
        for name, spec in catalogue.items():
            if spec.upstream == upstream and engine in ("", spec.engine):
                return name
        raise GatewayError(Reason.MODEL_UNKNOWN, name=wanted[:_NAMED])

    def _target(self, agent: StoredAgent | None, model: str, workspace_id: str | None = None) -> Target:
        sees = self._gateway.abilities(model).images
        if agent is None:
            return Target(agent="", model=model, system=None, sees=sees)
        return Target(
            agent=agent.name,
            model=model,
            system=agent.system_prompt or None,
            sees=sees,
            definition=agent,
            workspace_id=workspace_id,
        )


def _pick(roster: Roster, name: str) -> StoredAgent:
    if not name or name.lower() == "default":
        if roster.default is None:
            raise GatewayError(Reason.AGENT_UNCLEAR, param="model")
        return roster.default
    found = roster.find(name) or roster.find(normalize("NFC", name))  # as clients of some systems spell it
    if found is None:
        raise GatewayError(Reason.AGENT_UNKNOWN, param="model", name=name[:_NAMED])
    return found
