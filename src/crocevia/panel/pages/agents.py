"""Agents and teams of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from crocevia.core.catalogue import AgentSpec, TeamSpec
from crocevia.panel import samples, words
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Answer, Ask, Shown
from crocevia.panel.writing import load


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    agents: list[AgentSpec]
    teams: list[TeamSpec]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that a team can have."""

    agents: tuple[str, ...]


async def show(ask: Ask) -> Answer:
    agents, teams = await load(ask, "agents"), await load(ask, "teams")
    context = Listing(agents=list(agents.values()), teams=list(teams.values()))
    return Shown(template="agents", context=context, title=words.say(ask.language, "nav.agents"), nav="agents")


async def _agent_options(ask: Ask) -> Mapping[str, Sequence[str]]:
    return {"model": ("", *await load(ask, "models"))}


async def _team_options(ask: Ask) -> Mapping[str, Sequence[str]]:
    agents: dict[str, AgentSpec] = await load(ask, "agents")
    return {"orchestrator": tuple(agent.name for agent in agents.values() if agent.mode == "primary")}


async def _team_more(ask: Ask, name: str) -> Known:
    return Known(agents=tuple(await load(ask, "agents")))


def _from_api(path: str) -> Callable[[Ask, str], list[samples.Sample]]:
    return lambda ask, name: samples.request(ask.origin, path, None, {"Authorization": samples.API_KEY}, {})


AGENTS: Final = Resource(
    table="agents",
    nav="agents",
    fields=(
        Field("name"),
        Field("mode", "choice", ("subagent", "primary")),
        Field("model", "choice"),
        Field("system_prompt", "area"),
        Field("tools", "names", group="tools"),
        Field("permissions", "rules", group="tools"),
    ),
    options=_agent_options,
    code=_from_api("/api/v1/agents"),
)
TEAMS: Final = Resource(
    table="teams",
    nav="agents",
    fields=(Field("name"), Field("orchestrator", "choice"), Field("members", "names")),
    options=_team_options,
    more=_team_more,
    code=_from_api("/api/v1/teams"),
)
PAGES: Final = (*AGENTS.pages(show), *TEAMS.pages(show))
