"""Take a declaration, whole or not at all; give back the same format."""

from __future__ import annotations

import secrets as random
import time
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, ProjectSpec, RecipeSpec, TeamSpec, UserSpec
from crocevia.core.declared import DECLARED_TABLES, Problem, Refused
from crocevia.core.errors import GatewayError, Reason, say
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control.audit import differences
from crocevia.runtime.control.checks import check_models, check_teams
from crocevia.runtime.control.declarations import SECRETS, Declaration, Patch, Spec, name_of, place_of
from crocevia.storage import agents, declared, meta, project_keys, teams, users
from crocevia.storage.database import Transaction, immediate, snapshot
from crocevia.storage.home import Home, engine_keys, key_secret, write_engine_keys

CheckEngine: TypeAlias = Callable[[EngineSpec], None]
"""Raises GatewayError if an engine could not be built from this (a script that cannot be played)."""

_PREFIX: Final = 8  # characters of a key that are shown afterwards


Differences: TypeAlias = dict[str, tuple[str | None, str | None]]
"""Field to (before, after), as short texts; None: its default, or no such value."""


class Change(msgspec.Struct, frozen=True):
    """What applying a declaration did, or would do, to one entry."""

    table: str
    name: str
    what: Literal["created", "updated", "unchanged"]
    fields: Differences = {}


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What happened."""

    revision: int
    changes: tuple[Change, ...]
    new_keys: dict[str, str] = {}
    """Keys generated for projects, shown now and never again."""

    def __repr__(self) -> str:
        return f"Applied(revision={self.revision}, {len(self.changes)} changes)"


class DeclaredState(msgspec.Struct, frozen=True, kw_only=True):
    """What is declared already."""

    user: str
    """Whose the agents and teams are."""
    engines: dict[str, EngineSpec]
    models: dict[str, ModelSpec]
    projects: dict[str, ProjectSpec]
    users: dict[str, UserSpec]
    recipes: dict[str, RecipeSpec]
    agents: dict[str, AgentSpec]
    teams: dict[str, TeamSpec]
    owners: dict[str, str]
    """Key digest (hex) to project."""


def load_state(tx: Transaction) -> DeclaredState:
    """Raises GatewayError(CONFLICT) on a home without `init`."""
    user = meta.get(tx, meta.OPERATOR)
    if user is None:
        raise GatewayError(Reason.HOME_NOT_INITIALISED)
    return DeclaredState(
        user=user,
        engines=declared.load(tx, EngineSpec),
        models=declared.load(tx, ModelSpec),
        projects=declared.load(tx, ProjectSpec),
        users={spec.name: spec for spec in users.allowances(tx).values()},
        recipes=declared.load(tx, RecipeSpec),
        agents=agents.declared(tx, user),
        teams=teams.declared(tx, user),
        owners={row.digest: row.project for row in project_keys.load(tx)},
    )


def apply(home: Home, declaration: Declaration | Patch, *, check_engine: CheckEngine = lambda spec: None) -> Applied:
    """Create or update everything that is declared, in one transaction.

    Raises Refused with every problem and changes nothing; GatewayError(UNAVAILABLE) if the store cannot be written.
    """
    stored = engine_keys(home)
    try:
        with immediate(home.database) as tx:
            return apply_in(tx, home, declaration, check_engine=check_engine)
    except (GatewayError, OSError) as error:
        if engine_keys(home) != stored:
            write_engine_keys(home, stored)
        if isinstance(error, GatewayError):
            raise
        raise GatewayError(Reason.STORE_NOT_WRITTEN) from error


def apply_in(
    tx: Transaction, home: Home, declaration: Declaration | Patch, *, check_engine: CheckEngine = lambda spec: None
) -> Applied:
    """`apply` as a unit of work. Engines' keys reach their file last, when nothing but the commit can fail."""
    state = load_state(tx)
    if isinstance(declaration, Patch):
        declaration = declaration.over({table: getattr(state, table) for table in DECLARED_TABLES})
    secret = key_secret(home)
    problems = _problems(declaration, state, secret, check_engine) + _nobodies(tx, declaration)
    if problems:
        raise Refused(problems)
    now = time.time()
    changes = [_save(tx, state, table, spec, now) for table in DECLARED_TABLES for spec in getattr(declaration, table)]
    new_keys, rekeyed = _save_project_keys(tx, state, declaration, secret, now)
    kept = engine_keys(home)
    keys = _merged_keys(declaration, kept)
    touched = rekeyed | {("engines", name) for name in kept.keys() | keys.keys() if kept.get(name) != keys.get(name)}
    changes = [
        Change(change.table, change.name, "updated", {SECRETS[change.table]: (None, None)})
        if change.what == "unchanged" and (change.table, change.name) in touched
        else change
        for change in changes
    ]
    changed = any(change.what != "unchanged" for change in changes)
    revision = meta.bump_revision(tx) if changed else meta.revision(tx)
    if keys != kept:
        write_engine_keys(home, keys)
    return Applied(revision=revision, changes=tuple(changes), new_keys=new_keys)


def export(home: Home) -> Declaration:
    """Everything declared, without secrets. Raises GatewayError."""
    with snapshot(home.database) as tx:
        return export_in(tx)


def export_in(tx: Transaction) -> Declaration:
    """`export` as a unit of work."""
    state = load_state(tx)
    values: dict[str, Any] = {table: tuple(getattr(state, table).values()) for table in DECLARED_TABLES}
    return Declaration(**values)


def _problems(
    declaration: Declaration, state: DeclaredState, secret: bytes, check_engine: CheckEngine
) -> list[Problem]:
    engines = state.engines | {spec.name: spec for spec in declaration.engines}
    models = state.models | {spec.name: spec for spec in declaration.models}
    cast = state.agents | {spec.name: spec for spec in declaration.agents}
    changed_engines = {spec.name for spec in declaration.engines}
    # An engine that changes its kind may leave models of an earlier apply without what they need.
    wanted = {spec.name for spec in declaration.models}
    wanted |= {name for name, model in models.items() if model.engine in changed_engines}
    problems = [problem for spec in declaration.engines for problem in _unbuildable(spec, check_engine)]
    problems += check_models(models, engines, wanted)
    for table in ("projects", "agents"):
        for spec in getattr(declaration, table):
            if spec.model is not None and spec.model not in models:
                problems.append(Problem(f"{place_of(table, spec.name)}.model", say(Reason.NAME_UNKNOWN, kind="model")))
    leaders = {spec.name for spec in declaration.agents}
    touched = [team for team in state.teams.values() if team.orchestrator in leaders]
    redeclared = {spec.name for spec in declaration.teams}
    problems += check_teams([*declaration.teams, *(team for team in touched if team.name not in redeclared)], cast)
    return problems + _fixed_voices(declaration, state) + _taken_keys(declaration, state, secret)


def _nobodies(tx: Transaction, declaration: Declaration) -> list[Problem]:
    return [
        Problem(place_of("users", spec.name), say(Reason.NAME_UNKNOWN, kind="user"))
        for spec in declaration.users
        if users.find_named(tx, spec.name) is None
    ]


def _unbuildable(spec: EngineSpec, check_engine: CheckEngine) -> list[Problem]:
    try:
        check_engine(spec)
    except GatewayError as error:
        return [Problem(place_of("engines", spec.name), error.message)]
    return []


def _fixed_voices(declaration: Declaration, state: DeclaredState) -> list[Problem]:
    """A model's voice cannot change under the apps that use it: their `system` would mean something else."""
    projects = state.projects | {spec.name: spec for spec in declaration.projects}
    in_use = {spec.model for name, spec in state.projects.items() if projects[name].model == spec.model}
    return [
        Problem(f"{place_of('models', spec.name)}.voice_in_apps", say(Reason.VOICE_FIXED))
        for spec in declaration.models
        if spec.name in in_use and spec.voice_in_apps != state.models[spec.name].voice_in_apps
    ]


def _taken_keys(declaration: Declaration, state: DeclaredState, secret: bytes) -> list[Problem]:
    owners = dict(state.owners)
    problems = []
    for name, key in declaration.secrets.get("projects", {}).items():
        if owners.setdefault(_digest(secret, key), name) != name:
            problems.append(Problem(f"{place_of('projects', name)}.key", say(Reason.KEY_TAKEN)))
    return problems


def _save(tx: Transaction, state: DeclaredState, table: str, spec: Spec, now: float) -> Change:
    name = name_of(spec)
    before = getattr(state, table).get(name)
    if before == spec:
        return Change(table, name, "unchanged")
    if isinstance(spec, AgentSpec):
        agents.declare(tx, state.user, spec, now)
    elif isinstance(spec, UserSpec):
        users.set_allowance(tx, users.find_named(tx, name) or "", spec, now)
    elif isinstance(spec, TeamSpec):
        teams.declare(tx, state.user, spec, now)
    else:
        declared.save(tx, spec, now)
    if before is None and table != "users":
        return Change(table, name, "created")
    return Change(table, name, "updated", differences(before, spec))


def _save_project_keys(
    tx: Transaction, state: DeclaredState, declaration: Declaration, secret: bytes, now: float
) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Keys generated for projects without one, and which projects have another key than before."""
    generated: dict[str, str] = {}
    rekeyed: set[tuple[str, str]] = set()
    for project in declaration.projects:
        key = declaration.secret("projects", project.name)
        if key is None:
            if project.name in state.owners.values():
                continue
            key = generated[project.name] = new_project_key()
        hashed = _digest(secret, key)
        if [known for known, owner in state.owners.items() if owner == project.name] == [hashed]:
            continue
        project_keys.drop_all(tx, project.name)
        project_keys.add(tx, hashed, project.name, key[:_PREFIX], now)
        rekeyed.add(("projects", project.name))
    return generated, rekeyed


def new_project_key() -> str:
    """A fresh key for a project: `pk_` and 256 random bits."""
    return f"pk_{random.token_urlsafe(32)}"


def _merged_keys(declaration: Declaration, kept: dict[str, str]) -> dict[str, str]:
    """Engines' stored keys as they will be: a new one replaces, an absent one keeps, the environment supersedes."""
    keys = kept | declaration.secrets.get("engines", {})
    for spec in declaration.engines:
        if spec.api_key_env is not None:
            keys.pop(spec.name, None)
    return keys


def _digest(secret: bytes, key: str) -> str:
    return digest(secret, key.encode()).hex()
