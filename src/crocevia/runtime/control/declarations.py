"""From the TOML that an operator wrote to declared values, with every problem found, or back."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final, TypeAlias

import msgspec

from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, ProjectSpec, RecipeSpec, TeamSpec, UserSpec
from crocevia.core.declared import DECLARED_TABLES, SERVER_TABLES, Problem, Refused, read, unknown
from crocevia.core.errors import Reason, say
from crocevia.runtime.control import toml
from crocevia.runtime.control.checks import check_secret, check_value

Spec: TypeAlias = EngineSpec | ModelSpec | ProjectSpec | UserSpec | RecipeSpec | AgentSpec | TeamSpec

KINDS: Final[dict[str, type[Spec]]] = {
    "engines": EngineSpec,
    "models": ModelSpec,
    "projects": ProjectSpec,
    "users": UserSpec,
    "recipes": RecipeSpec,
    "agents": AgentSpec,
    "teams": TeamSpec,
}
SECRETS: Final = {"engines": "api_key", "projects": "key"}  # the field of a table that is no part of its value
LARGEST: Final = 4 << 20


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for. `secrets`: by table, then by name."""

    engines: tuple[EngineSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    projects: tuple[ProjectSpec, ...] = ()
    users: tuple[UserSpec, ...] = ()
    recipes: tuple[RecipeSpec, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    teams: tuple[TeamSpec, ...] = ()
    secrets: dict[str, dict[str, str]] = {}

    def __repr__(self) -> str:
        return f"Declaration({', '.join(f'{len(getattr(self, name))} {name}' for name in DECLARED_TABLES)})"

    def secret(self, table: str, name: str) -> str | None:
        """The secret given for the entry `name` of `table`, or None."""
        return self.secrets.get(table, {}).get(name)


def name_of(spec: Spec) -> str:
    """What the value is called within its table."""
    return spec.encode if isinstance(spec, RecipeSpec) else spec.name


def place_of(table: str, name: str) -> str:
    """How a problem points at an entry: `models "Pepper 7"`."""
    return f"{table} {json.dumps(name, ensure_ascii=False)}"


def parse(text: bytes) -> Declaration:
    """What `text` (TOML) declares, each value sound by itself. Raises Refused with every problem.

    Whether the names it refers to exist is for `apply` to say: they may be there already.
    """
    problems: list[Problem] = []
    tree = _tree(text, problems)
    found: dict[str, list[Spec]] = {}
    secrets: dict[str, dict[str, str]] = {}
    for table, entries in tree.items():
        if table in SERVER_TABLES:
            problems.append(Problem(table, say(Reason.TABLE_OF_SERVE)))
        elif table not in KINDS:
            problems.append(Problem(table, unknown(table, DECLARED_TABLES)))
        elif not isinstance(entries, list):
            problems.append(Problem(table, say(Reason.TABLE_LIST, table=table)))
        else:
            found[table] = _entries(table, entries, secrets.setdefault(table, {}), problems)
    if problems:
        raise Refused(problems)
    values: dict[str, Any] = {table: tuple(specs) for table, specs in found.items()}
    return Declaration(**values, secrets=secrets)


def spell(declaration: Declaration) -> str:
    """The declaration as TOML, without secrets, ordered by name."""
    return toml.write(
        {
            table: [_shown(spec) for spec in sorted(getattr(declaration, table), key=name_of)]
            for table in DECLARED_TABLES
        }
    )


def _shown(spec: Spec) -> dict[str, Any]:
    """The fields that differ from their defaults (msgspec omits by identity, which equal texts may not have)."""
    written: dict[str, Any] = msgspec.to_builtins(spec)
    fields = msgspec.structs.fields(spec)
    return {
        field.name: written[field.name]
        for field in fields
        if field.name in written and (field.required or getattr(spec, field.name) != _default(field))
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


_WHERE: Final = re.compile(r"\((at (?:line \d+, column \d+|end of document))\)$")


def _tree(text: bytes, problems: list[Problem]) -> dict[str, Any]:
    try:
        if len(text) > LARGEST:
            raise ValueError("more than 4 MB")
        return tomllib.loads(text.decode("utf-8"))
    except tomllib.TOMLDecodeError as error:
        # Where, and not what: the parser may quote the line, and the line may hold a key.
        where = _WHERE.search(str(error))
        reason = where[1] if where else "TOML"
        problems.append(Problem("TOML", say(Reason.FILE_MALFORMED, reason=f"not TOML, {reason}")))
    except UnicodeDecodeError:
        problems.append(Problem("TOML", say(Reason.JSON_NOT_UTF8)))
    except (ValueError, RecursionError) as error:
        problems.append(Problem("TOML", say(Reason.FILE_MALFORMED, reason=str(error)[:60])))
    return {}


def _entries(table: str, entries: list[Any], secrets: dict[str, str], problems: list[Problem]) -> list[Spec]:
    specs: list[Spec] = []
    names: set[str] = set()
    for index, entry in enumerate(entries):
        spec = _entry(table, index, entry, secrets, problems)
        if spec is None:
            continue
        if name_of(spec) in names:
            problems.append(Problem(place_of(table, name_of(spec)), say(Reason.NAME_TWICE)))
        names.add(name_of(spec))
        specs.append(spec)
    return specs


def _entry(table: str, index: int, entry: Any, secrets: dict[str, str], problems: list[Problem]) -> Spec | None:
    place = f"{table} #{index + 1}"
    secret = None
    if isinstance(entry, dict):
        name = entry.get("encode" if table == "recipes" else "name")
        if isinstance(name, str) and name:
            place = place_of(table, name)
        secret = entry.pop(SECRETS[table], None) if table in SECRETS else None
    if secret is not None:
        check_secret(secret, f"{place}.{SECRETS[table]}", problems)
    spec: Spec | None = read(KINDS[table], entry, place, problems)
    if spec is None:
        return None
    check_value(table, spec, place, problems)
    if secret is not None:
        if isinstance(spec, EngineSpec) and spec.api_key_env is not None:
            problems.append(Problem(f"{place}.api_key", say(Reason.KEY_TWICE)))
        secrets[name_of(spec)] = secret
    return spec
