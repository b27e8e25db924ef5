"""Take declared things away, unless something else still needs them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, delete

from crocevia.core.errors import Code, GatewayError, say
from crocevia.storage import meta
from crocevia.storage.database import Transaction
from crocevia.storage.schema import agents, engines, models, projects, recipes, teams

from .apply import State, load_state

_BY_NAME: Final[dict[str, Any]] = {
    "engines": delete(engines).where(engines.c.name == bindparam("called")),
    "models": delete(models).where(models.c.name == bindparam("called")),
    "projects": delete(projects).where(projects.c.name == bindparam("called")),
    "recipes": delete(recipes).where(recipes.c.encode == bindparam("called")),
}
_OWNED: Final[dict[str, Any]] = {
    "agents": delete(agents).where(agents.c.name == bindparam("called"), agents.c.user_id == bindparam("owner")),
    "teams": delete(teams).where(teams.c.name == bindparam("called"), teams.c.user_id == bindparam("owner")),
}


def remove(tx: Transaction, table: str, name: str) -> Any:
    """Remove the entry and bump the catalogue's revision; the value it had. Call records stay as they are.

    Raises GatewayError: NOT_FOUND, or CONFLICT naming what still refers to it.
    """
    state = load_state(tx)
    spec = getattr(state, table).get(name)
    if spec is None:
        raise GatewayError(Code.NOT_FOUND)
    users = users_of(state, table, name)
    if users:
        raise GatewayError(Code.CONFLICT, say("still_used", by=", ".join(users[:5])))
    if table in _BY_NAME:
        tx.run(_BY_NAME[table], called=name)
    else:
        tx.run(_OWNED[table], called=name, owner=state.user)
    meta.bump_revision(tx)
    return spec


def users_of(state: State, table: str, name: str) -> list[str]:
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
