"""A chat's team as the plan of a turn, and what each agent's model is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import Tool
from crocevia.core.turn import AgentCard, Plan, ToolCard, TurnLimits, team_tools
from crocevia.core.turn.plan import DELEGATE
from crocevia.core.turn.run_request import RunRequest
from crocevia.runtime.control import models
from crocevia.runtime.control.context import Control
from crocevia.runtime.turns import prompts
from crocevia.runtime.turns.tools import PlatformTool, Toolbox
from crocevia.storage import agents as agent_rows
from crocevia.storage import teams, user_tools
from crocevia.storage.agents import StoredAgent
from crocevia.storage.chats import Chat
from crocevia.storage.database import Transaction
from crocevia.storage.teams import Team
from crocevia.storage.user_tools import UserTool

MAX_CLIENT_TOOLS: Final = 1000


class AgentSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent's model is given."""

    name: str
    system: str
    tools: tuple[Tool, ...]


class TurnSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's plan, and what is needed to carry it out."""

    plan: Plan
    agents: dict[str, AgentSetup]
    """By name."""
    tools: dict[str, PlatformTool]
    """The platform's tools, by name."""
    derive_title: bool = False
    """The title is derived from the input, and never asked of the model."""
    request: RunRequest | None = None
    """Of a run."""

    @property
    def caller_tools(self) -> frozenset[str]:
        """Names of the tools that whoever started the run runs."""
        return frozenset() if self.request is None else frozenset(tool.name for tool in self.request.tools)


class _Rows(msgspec.Struct, frozen=True):
    team: Team
    agents: tuple[StoredAgent, ...]
    tools: dict[str, UserTool]


async def team_setup(
    control: Control,
    toolbox: Toolbox,
    chat: Chat,
    limits: TurnLimits,
    *,
    title: bool,
    memory: str = "",
    skip_unreachable: bool = False,
    request: RunRequest | None = None,
) -> TurnSetup:
    """The team of a chat as it is declared now.

    memory: notes of earlier chats. skip_unreachable: leave out the tools of servers that cannot be reached. request: of
    a run, which its one agent does alone.

    Raises GatewayError: CONFLICT when the team is gone or its leader's row cannot be read, UNAVAILABLE when
    its model or one of its tool servers is.
    """
    rows = await control.database.read(lambda tx: _read(tx, chat))
    if request is not None:
        return await single_agent_setup(
            control, toolbox, rows.agents[0], limits, request, memory=memory, skip_unreachable=skip_unreachable
        )
    catalogue = control.catalogue.current
    specs = {agent.name: catalogue.models.get(model_of(control, agent)) for agent in rows.agents}
    leader = rows.agents[0]
    _check_readable(leader)
    if specs[leader.name] is None:
        raise GatewayError(Reason.MODEL_MISSING, model=model_of(control, leader))
    free = {name for name, engine in catalogue.engines.items() if engine.traits.local}
    platform: dict[str, dict[str, PlatformTool]] = {
        agent.name: await _platform_tools(toolbox, agent, skip_unreachable) for agent in rows.agents
    }
    everything = {name: item for tools in platform.values() for name, item in tools.items()}
    clients = {agent.name: _clients(agent, rows.tools, everything) for agent in rows.agents}
    plan = Plan(
        agents=tuple(
            _card(
                agent, model_of(control, agent), specs[agent.name], free, [*platform[agent.name], *clients[agent.name]]
            )
            for agent in rows.agents
        ),
        tools=(*_platform_cards(everything), *_client_cards(rows.tools, clients)),
        limits=limits,
        title=title,
    )
    agents = {}
    for agent in rows.agents:
        if agent.unreadable:
            continue  # who hands work to it is told
        own = [item.tool for item in platform[agent.name].values()]
        own += [_client_tool(rows.tools[name]) for name in clients[agent.name]]
        leads = agent is leader or DELEGATE in _names(agent.tools_enabled)
        notes = memory if _has_knowledge(platform[agent.name]) else ""
        agents[agent.name] = AgentSetup(
            name=agent.name,
            system=prompts.instructions(agent, rows.team, rows.agents, leads, notes),
            tools=(*own, *(team_tools(plan) if leads else ())),
        )
    spec = specs[leader.name]
    engine = None if spec is None else catalogue.engines.get(spec.engine)
    return TurnSetup(
        plan=plan, agents=agents, tools=everything, derive_title=engine is not None and engine.traits.loads_weights
    )


async def single_agent_setup(
    control: Control,
    toolbox: Toolbox,
    agent: StoredAgent,
    limits: TurnLimits,
    request: RunRequest,
    *,
    memory: str = "",
    skip_unreachable: bool = False,
) -> TurnSetup:
    """One agent with its own tools and its caller's. Raises GatewayError: UNAVAILABLE when its model or one of its tool
    servers is, INVALID_REQUEST for a tool of the caller's that has the name of one of its own.
    """
    _check_readable(agent)
    catalogue, model = control.catalogue.current, request.model or model_of(control, agent)
    spec = catalogue.models.get(model)
    if spec is None:
        raise GatewayError(Reason.MODEL_MISSING, model=model)
    platform = await _platform_tools(toolbox, agent, skip_unreachable) if agent.tools_enabled else {}
    for index, tool in enumerate(request.tools):
        if tool.name in platform:
            raise GatewayError(Reason.TOOL_IS_OWN, param=f"tools[{index}].name", name=tool.name)
    engine = catalogue.engines.get(spec.engine)
    free = {spec.engine} if engine is not None and engine.traits.local else set()
    caller_tools = [tool.name for tool in request.tools]
    plan = Plan(
        agents=(_card(agent, model, spec, free, [*platform, *caller_tools]),),
        tools=(*_platform_cards(platform), *(ToolCard(name=name, kind="caller") for name in caller_tools)),
        limits=limits,
    )
    texts = [agent.system_prompt, prompts.remembered(memory) if _has_knowledge(platform) else "", request.system or ""]
    setup = AgentSetup(
        name=agent.name,
        system="\n\n".join(text for text in texts if text),
        tools=(*(item.tool for item in platform.values()), *request.tools),
    )
    return TurnSetup(plan=plan, agents={agent.name: setup}, tools=platform, derive_title=True, request=request)


def _check_readable(agent: StoredAgent) -> None:
    if agent.unreadable:
        raise GatewayError(Reason.AGENT_UNREADABLE, agent=agent.name, fields=", ".join(agent.unreadable))


def model_of(control: Control, agent: StoredAgent) -> str:
    """The name of the model that the agent thinks with; empty if there is none at all."""
    return agent.model or models.default_model(control) or ""


def _read(tx: Transaction, chat: Chat) -> _Rows:
    team = teams.find(tx, chat.user_id, chat.team_id)
    found = [] if team is None else [agent_rows.find(tx, chat.user_id, which) for which in _ids(team)]
    agents = tuple(agent for agent in found if agent is not None)
    if team is None or len(agents) != len(found):
        raise GatewayError(Reason.TEAM_UNAVAILABLE)
    tools = {tool.name: tool for tool in user_tools.listed(tx, chat.user_id, MAX_CLIENT_TOOLS)}
    return _Rows(team, agents, tools)


def _ids(team: Team) -> list[str]:
    return [team.orchestrator_id, *(member.agent_id for member in team.members)]


def _names(tools: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(tool.get("name", "")) for tool in tools))


async def _platform_tools(toolbox: Toolbox, agent: StoredAgent, skip_unreachable: bool) -> dict[str, PlatformTool]:
    found = await toolbox.find(_names(agent.tools_enabled), skip_unreachable=skip_unreachable)
    return {name: item for name, item in found.items() if item.permission is None or getattr(agent, item.permission)}


def _clients(agent: StoredAgent, registered: Mapping[str, UserTool], platform: Mapping[str, PlatformTool]) -> list[str]:
    """Registered by the user and named by the agent; a name that is the platform's stays the platform's."""
    return [name for name in _names(agent.external_tools_enabled) if name in registered and name not in platform]


def _card(agent: StoredAgent, model: str, spec: ModelSpec | None, free: set[str], tools: list[str]) -> AgentCard:
    bounds = agent.bounds
    return AgentCard(
        name=agent.name,
        model=model,
        free=spec is not None and spec.engine in free and not _priced(spec),
        tools=tuple(tools),
        permissions=agent.rules,
        rounds=bounds.max_rounds,
        parallel_tools=bounds.parallel_tools,
        approval_ms=(bounds.approval_seconds or 300) * 1000,
        context_window=None if spec is None else spec.context_window,
        compact_at=bounds.compact_at or 0.8,
        tool_choice=(bounds.tool_choice,) if isinstance(bounds.tool_choice, str) else bounds.tool_choice or (),
    )


def _platform_cards(platform: Mapping[str, PlatformTool]) -> list[ToolCard]:
    return [ToolCard(name=name, kind=item.kind, idempotent=item.idempotent) for name, item in platform.items()]


def _client_cards(registered: Mapping[str, UserTool], clients: Mapping[str, list[str]]) -> list[ToolCard]:
    names = dict.fromkeys(name for tools in clients.values() for name in tools)
    return [ToolCard(name=name, kind="client", timeout_ms=registered[name].timeout_seconds * 1000) for name in names]


def _client_tool(tool: UserTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description or "",
        parameters=msgspec.Raw(msgspec.json.encode(tool.parameters)),
    )


def _has_knowledge(platform: Mapping[str, PlatformTool]) -> bool:
    return any(item.kind == "knowledge" for item in platform.values())


def _priced(spec: ModelSpec) -> bool:
    return spec.prices is not None and bool(spec.prices.input or spec.prices.output)
