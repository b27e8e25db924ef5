"""Agents and teams of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from crocevia.core.catalogue import AgentSpec, TeamSpec
from crocevia.panel import samples
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import PageRequest, PageResponse, PageView
from crocevia.panel.writing import load
from crocevia.storage import meta
from crocevia.storage.agents import misread


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    agents: list[AgentSpec]
    teams: list[TeamSpec]
    misread: dict[str, str]
    """What the rows of some agents hold that means nothing, by the agent's name."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a team may choose from."""

    agents: tuple[str, ...]
    """Names of agents."""


async def show(request: PageRequest) -> PageResponse:
    agents, teams = await load(request, "agents"), await load(request, "teams")
    found = await request.services.database.read(misread)
    user_id = await request.services.database.read(lambda tx: meta.get(tx, meta.OPERATOR))
    fields = {agent.name: ", ".join(agent.misread) for agent in found if agent.user_id == user_id}
    context = Listing(agents=list(agents.values()), teams=list(teams.values()), misread=fields)
    return PageView(template="agents", context=context, title=request.t("nav.agents"), nav="agents")


async def _agent_options(request: PageRequest) -> Mapping[str, Sequence[str]]:
    return {"model": ("", *await load(request, "models"))}


async def _team_options(request: PageRequest) -> Mapping[str, Sequence[str]]:
    agents: dict[str, AgentSpec] = await load(request, "agents")
    return {"orchestrator": tuple(agent.name for agent in agents.values() if agent.mode == "primary")}


async def _team_more(request: PageRequest, name: str) -> Known:
    return Known(agents=tuple(await load(request, "agents")))


def _from_api(path: str) -> Callable[[PageRequest, str], list[samples.Sample]]:
    return lambda request, name: samples.request(request.origin, path, None, {"Authorization": samples.API_KEY}, {})


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
