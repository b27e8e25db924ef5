"""Take declared things away, unless something else still needs them."""

from __future__ import annotations

from typing import Any, Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.apply import DeclaredState, load_state
from crocevia.storage import agents, declared, meta, teams
from crocevia.storage.database import Transaction

_OWNED: Final = {"agents": agents, "teams": teams}


def remove(tx: Transaction, table: str, name: str) -> Any:
    """Remove the entry and bump the catalogue's revision; the value it had. Call records stay as they are.

    Raises GatewayError: NOT_FOUND, or CONFLICT naming what still refers to it.
    """
    state = load_state(tx)
    spec = getattr(state, table).get(name)
    if spec is None:
        raise GatewayError(Reason.NOT_FOUND)
    users = users_of(state, table, name) or _led_alone(tx, state, table, name)
    if users:
        raise GatewayError(Reason.STILL_USED, by=", ".join(users[:5]))
    if table in _OWNED:
        _OWNED[table].drop_named(tx, state.user, name)
    else:
        declared.drop(tx, type(spec), name)
    meta.bump_revision(tx)
    return spec


def _led_alone(tx: Transaction, state: DeclaredState, table: str, name: str) -> list[str]:
    """The team that an agent makes up alone, where a chat has it; without a chat it goes with its agent."""
    agent_id = agents.find_named(tx, state.user, name) if table == "agents" else None
    if agent_id is None:
        return []
    teams.drop_implicit(tx, agent_id)
    return teams.led_by(tx, agent_id, implicit=True)


def users_of(state: DeclaredState, table: str, name: str) -> list[str]:
    """Names of what would miss it."""
    if table == "engines":
        return [model.name for model in state.models.values() if model.engine == name]
    if table == "models":
        return [
            *(project.name for project in state.projects.values() if project.model == name),
            *(model.name for model in state.models.values() if model.reserve == name),
            *(agent.name for agent in state.agents.values() if agent.model == name),
        ]
    if table == "agents":
        return [team.name for team in state.teams.values() if name in (team.orchestrator, *team.members)]
    return []
