"""Whether declared values make sense: each by itself, and together with what is there already."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from crocevia.core.agent_rules import read_config
from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, Prices, ProjectSpec, TeamSpec, UserSpec
from crocevia.core.declared import Problem
from crocevia.core.errors import Reason, Sentence, say
from crocevia.documents.addresses import is_closed_name, is_numeric, is_public
from crocevia.policy.periods import has_zones, is_zone

Problems = list[Problem]

NAME: Final = 255  # characters
TEXT: Final = 1_000_000
_LARGEST: Final = 1e12
_POSITIVE: Final = frozenset(
    {"hourly_limit", "max_concurrency", "context_window", "max_pages", "daily_budget_usd", "soft_threshold_usd"}
)
_LIMITS: Final = {
    "system_prompt": TEXT,
    "description": 65_535,
    "instructions": TEXT,
    "novelty": 2000,
    "base_url": 2000,
    "webhook_url": 2000,
    "upstream": NAME,
}
# What owners may call agents, teams and their tools over the API, and so in a declaration.
_LABEL: Final = re.compile(r"[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*")
_HEADER_SAFE: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET: Final = re.compile(r"[!-~]{8,4096}")
_PROVIDER_KEY: Final = re.compile(r"[!-~]{1,4096}")


def check_secret(secret: Any, place: str, problems: Problems) -> None:
    """A key is at least 8 visible ASCII characters: it travels in a header."""
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        problems.append(Problem(place, say(Reason.KEY_SHAPE)))


def check_provider_key(secret: Any, place: str, problems: Problems) -> None:
    """Whatever a provider wants in its header: local servers take "EMPTY", "none" or a letter."""
    if not isinstance(secret, str) or not _PROVIDER_KEY.fullmatch(secret):
        problems.append(Problem(place, say(Reason.PROVIDER_KEY_SHAPE)))


def check_value(table: str, spec: Any, place: str, problems: Problems) -> None:
    """Bounds, formats and names of one declared value."""
    labels = ("name", "orchestrator") if isinstance(spec, AgentSpec | TeamSpec) else ()
    for field in spec.__struct_fields__:
        value = getattr(spec, field)
        wrong = _check_label(value) if field in labels else _check_field(field, value)
        if wrong is not None:
            problems.append(Problem(f"{place}.{field}", wrong))
    special = _SPECIAL.get(type(spec))
    if special is not None:
        special(spec, place, problems)
    if not _survives(spec):
        problems.append(Problem(place, say(Reason.VALUE_UNSTORABLE)))


def _check_field(field: str, value: Any) -> Sentence | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _check_number(field, value)
    if isinstance(value, str):
        return _check_text(field, value)
    return None


def _check_number(field: str, value: float) -> Sentence | None:
    if not math.isfinite(value) or value > _LARGEST:
        return say(Reason.NUMBER_BETWEEN, least=0, most=int(_LARGEST))
    if field in _POSITIVE:
        return None if value > 0 else say(Reason.NUMBER_POSITIVE)
    return None if value >= 0 else say(Reason.NUMBER_NOT_NEGATIVE)


def _check_text(field: str, value: str) -> Sentence | None:
    if len(value) > _LIMITS.get(field, NAME):
        return say(Reason.TEXT_LONG, most=_LIMITS.get(field, NAME))
    if field in ("instructions", "system_prompt", "upstream", "description"):
        return None
    return _check_name(value)


def _check_label(value: str) -> Sentence | None:
    return None if len(value) <= NAME and _LABEL.fullmatch(value) else say(Reason.NAME_SHAPE)


def _check_name(value: str) -> Sentence | None:
    if not value or value != value.strip() or len(value) > _LIMITS["base_url"] or not value.isprintable():
        return say(Reason.NAME_SHAPE)
    return None


def _engine(spec: EngineSpec, place: str, problems: Problems) -> None:
    if spec.base_url is not None and not _is_address(spec.base_url):
        problems.append(Problem(f"{place}.base_url", say(Reason.ADDRESS_SHAPE)))
    if spec.api_key_env is not None and not _VARIABLE.fullmatch(spec.api_key_env):
        problems.append(Problem(f"{place}.api_key_env", say(Reason.VARIABLE_SHAPE)))
    if spec.script is not None and not spec.traits.scripted:
        problems.append(Problem(f"{place}.script", say(Reason.SCRIPT_ELSEWHERE)))


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        return False


def _model(spec: ModelSpec, place: str, problems: Problems) -> None:
    if spec.reserve == spec.name:
        problems.append(Problem(f"{place}.reserve", say(Reason.RESERVE_ITSELF)))
    if spec.sunset_at is not None and moment_of(spec.sunset_at) is None:
        problems.append(Problem(f"{place}.sunset_at", say(Reason.MOMENT_SHAPE)))
    if spec.prices is not None:
        for field in Prices.__struct_fields__:
            wrong = _check_field(field, getattr(spec.prices, field))
            if wrong is not None:
                problems.append(Problem(f"{place}.prices.{field}", wrong))


def moment_of(text: str) -> float | None:
    """Unix seconds of an RFC 3339 moment; None if it is none, or has no zone."""
    try:
        found = datetime.fromisoformat(text)
        return found.timestamp() if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _project(spec: ProjectSpec, place: str, problems: Problems) -> None:
    if not _HEADER_SAFE.fullmatch(spec.name):
        problems.append(Problem(f"{place}.name", say(Reason.NAME_HEADER)))
    _zone(spec.timezone, f"{place}.timezone", problems)
    if spec.webhook_url is not None and not _is_public(spec.webhook_url):
        problems.append(Problem(f"{place}.webhook_url", say(Reason.WEBHOOK_SHAPE)))
    soft, hard = spec.soft_threshold_usd, spec.daily_budget_usd
    if soft is not None and hard is not None and soft > hard:
        problems.append(Problem(f"{place}.soft_threshold_usd", say(Reason.SOFT_ABOVE_HARD)))


def _user(spec: UserSpec, place: str, problems: Problems) -> None:
    _zone(spec.timezone, f"{place}.timezone", problems)


def _is_public(value: str) -> bool:
    """Whether a webhook may go there, as far as its text tells; every delivery looks at the address again."""
    host = (urlsplit(value).hostname or "") if _is_address(value) else ""
    literal = ":" in host or is_numeric(host)
    return value.startswith("https://") and (is_public(host) if literal else not is_closed_name(host))


def _zone(name: str, place: str, problems: Problems) -> None:
    if not is_zone(name):
        problems.append(Problem(place, say(Reason.ZONE_UNKNOWN if has_zones() else Reason.ZONES_MISSING)))


def _agent(spec: AgentSpec, place: str, problems: Problems) -> None:
    for field in ("tools", "external_tools"):
        tools = [tool if isinstance(tool, str) else tool["name"] for tool in getattr(spec, field)]
        _names(tools, f"{place}.{field}", problems)
    _names(spec.permissions, f"{place}.permissions", problems)
    for name in read_config(spec.config)[1]:
        problems.append(Problem(f"{place}.config.{name}", say(Reason.CONFIG_VALUE)))


def _team(spec: TeamSpec, place: str, problems: Problems) -> None:
    _names((*spec.members, spec.orchestrator), f"{place}.members", problems)
    _names(spec.roles, f"{place}.roles", problems)
    if not spec.roles.keys() <= set(spec.members):
        problems.append(Problem(f"{place}.roles", say(Reason.NAME_UNKNOWN, kind="agent")))


def _names(names: Iterable[str], place: str, problems: Problems) -> None:
    names = list(names)
    if any(_check_label(name) for name in names):
        problems.append(Problem(place, say(Reason.NAME_SHAPE)))
    if len(set(names)) < len(names):
        problems.append(Problem(place, say(Reason.NAME_TWICE)))


_SPECIAL: Final[dict[type, Callable[[Any, str, Problems], None]]] = {
    EngineSpec: _engine,
    ModelSpec: _model,
    ProjectSpec: _project,
    UserSpec: _user,
    AgentSpec: _agent,
    TeamSpec: _team,
}


def _survives(spec: Any) -> bool:
    """Whether the value comes back from the store as it is (a date or a NaN inside a script would not)."""
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(spec), type=type(spec)) == spec)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return False


def check_models(models: Mapping[str, ModelSpec], engines: Mapping[str, EngineSpec], wanted: set[str]) -> Problems:
    """What the `wanted` models refer to. `models`, `engines`: as they will be."""
    problems: Problems = []
    for name in sorted(wanted):
        model, place = models[name], f'models "{name}"'
        engine = engines.get(model.engine)
        if engine is None:
            problems.append(Problem(f"{place}.engine", say(Reason.NAME_UNKNOWN, kind="engine")))
        elif not model.upstream and not engine.traits.local:
            problems.append(Problem(f"{place}.upstream", say(Reason.FIELD_MISSING)))
        if model.reserve is not None and model.reserve not in models:
            problems.append(Problem(f"{place}.reserve", say(Reason.NAME_UNKNOWN, kind="model")))
    return problems


def check_teams(teams: Iterable[TeamSpec], agents: Mapping[str, AgentSpec]) -> Problems:
    """What teams refer to. `agents`: as they will be."""
    problems: Problems = []
    for team in teams:
        place = f'teams "{team.name}"'
        leader = agents.get(team.orchestrator)
        if leader is None:
            problems.append(Problem(f"{place}.orchestrator", say(Reason.NAME_UNKNOWN, kind="agent")))
        elif leader.mode != "primary":
            problems.append(Problem(f"{place}.orchestrator", say(Reason.LEADER_NOT_PRIMARY)))
        if any(member not in agents for member in team.members):
            problems.append(Problem(f"{place}.members", say(Reason.NAME_UNKNOWN, kind="agent")))
    return problems
