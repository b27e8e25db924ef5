"""The first objects of a home, and every secret exactly once."""

from __future__ import annotations

import secrets
import time
from typing import Final

import msgspec

from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, Prices, ProjectSpec, TeamSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control.api_keys import mint
from crocevia.runtime.control.apply import apply_in
from crocevia.runtime.control.declarations import Declaration
from crocevia.storage import meta, teams, users, workspaces
from crocevia.storage.database import Transaction, immediate, snapshot
from crocevia.storage.home import Home, key_secret
from crocevia.storage.migrate import current, ensure

ENGINE: Final = "embedded"
MODEL: Final = "Pepper mini"
AGENT: Final = "main"
TEAM: Final = "main"
PROJECT: Final = "default"

FIRST: Final = Declaration(
    engines=(EngineSpec(name=ENGINE, kind="llama"),),
    models=(ModelSpec(name=MODEL, engine=ENGINE, prices=Prices(input=0, output=0)),),
    projects=(ProjectSpec(name=PROJECT, model=MODEL, mode="agent"),),
    agents=(AgentSpec(name=AGENT, mode="primary", system_prompt="You are a helpful assistant."),),
    teams=(TeamSpec(name=TEAM, orchestrator=AGENT),),
)


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    """What `crocevia init --json` prints: ids, and secrets that nobody can see again."""

    setup_url: str
    operator_token: str
    api_key: str
    user_id: str
    workspace_id: str
    team_id: str
    project: str
    project_key: str

    def __repr__(self) -> str:
        return f"Initialised(user_id={self.user_id!r})"


def is_initialised(home: Home) -> bool:
    """Whether `init` has completed here. Raises GatewayError(UNAVAILABLE) if the store cannot be read."""
    if current(home.database) is None:
        return False
    with snapshot(home.database) as tx:
        return meta.get(tx, meta.INITIALISED) is not None


def init(home: Home, server_url: str) -> Initialised:
    """Create the home, its database and its first objects; all of them or none.

    Raises GatewayError: CONFLICT if it was done before (nothing changes), UNAVAILABLE if the folder or the store
    cannot be written.
    """
    try:
        home.create()
        ensure(home.database)
        with immediate(home.database) as tx:
            return _init_in(tx, home, server_url)
    except OSError as error:
        raise GatewayError(Reason.HOME_NOT_WRITTEN, reason=error.strerror or "") from error


def setup_link(tx: Transaction, home: Home, server_url: str) -> str:
    """A new link that sets the panel's password once; earlier ones that were not used stop working."""
    token = secrets.token_urlsafe(32)
    meta.put(tx, meta.SETUP_TOKEN, digest(key_secret(home), token.encode()).hex())
    return f"{server_url}/panel/setup?token={token}"


def _init_in(tx: Transaction, home: Home, server_url: str) -> Initialised:
    if meta.get(tx, meta.INITIALISED) is not None:
        raise GatewayError(Reason.HOME_INITIALISED)
    now = time.time()
    secret = key_secret(home, create=True)
    user_id = users.add(tx, "operator", "operator", now)
    workspace_id = workspaces.add(tx, user_id, "default", {}, now).id
    meta.put(tx, meta.OPERATOR, user_id)
    applied = apply_in(tx, home, FIRST)
    operator_token = f"op_{secrets.token_urlsafe(32)}"
    meta.put(tx, meta.OPERATOR_TOKEN, digest(secret, operator_token.encode()).hex())
    meta.put(tx, meta.INITIALISED, repr(now))
    team_id = teams.find_named(tx, user_id, TEAM)
    assert team_id is not None
    return Initialised(
        setup_url=setup_link(tx, home, server_url),
        operator_token=operator_token,
        api_key=mint(tx, home, user_id, "init", now=now).token,
        user_id=user_id,
        workspace_id=workspace_id,
        team_id=team_id,
        project=PROJECT,
        project_key=applied.new_keys[PROJECT],
    )
