"""From the TOML that an operator wrote to declared values, with every problem found, or back.

What is written changes what is there: a field that is absent keeps its value, `unset = ["field", …]` gives it back its
default. So a file may say as little as a name and one limit.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, ProjectSpec, RecipeSpec, TeamSpec, UserSpec
from crocevia.core.declared import (
    DECLARED_TABLES,
    SERVER_TABLES,
    Problem,
    Refused,
    check_required,
    read_fields,
    unknown,
)
from crocevia.core.errors import Reason, say
from crocevia.runtime.control import toml
from crocevia.runtime.control.checks import check_provider_key, check_secret, check_value

Spec: TypeAlias = EngineSpec | ModelSpec | ProjectSpec | UserSpec | RecipeSpec | AgentSpec | TeamSpec
Known: TypeAlias = Mapping[str, Mapping[str, Spec]]
"""Values by table, then by name."""

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
UNSET: Final = "unset"
LARGEST: Final = 4 << 20

# TOML has no null. Where an owner's own objects hold one, they are written as JSON in a text; a tool whose name looks
# like such a text is written as an object.
_OBJECTS: Final = ("config",)
_TOOLS: Final = ("tools", "external_tools")


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """Whole values, as they shall be."""

    engines: tuple[EngineSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    projects: tuple[ProjectSpec, ...] = ()
    users: tuple[UserSpec, ...] = ()
    recipes: tuple[RecipeSpec, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    teams: tuple[TeamSpec, ...] = ()
    secrets: dict[str, dict[str, str]] = {}
    """By table, then by name."""

    def __repr__(self) -> str:
        return f"Declaration({', '.join(f'{len(getattr(self, name))} {name}' for name in DECLARED_TABLES)})"

    def secret(self, table: str, name: str) -> str | None:
        """The secret given for the entry `name` of `table`, or None."""
        return self.secrets.get(table, {}).get(name)


class DeclaredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one value."""

    table: str
    name: str
    place: str
    """How problems point at it."""
    given: dict[str, Any]
    """Fields, each of its own type."""
    unset: tuple[str, ...] = ()
    """Fields that get back their default."""

    def over(self, before: Spec | None, problems: list[Problem]) -> Spec | None:
        """The whole value, or None after appending what is wrong. before: the value that is there."""
        kind = KINDS[self.table]
        kept = {} if before is None else {name: getattr(before, name) for name in before.__struct_fields__}
        values = {name: value for name, value in kept.items() if name not in self.unset} | self.given
        found = len(problems)
        check_required(kind, values, self.place, problems)
        if len(problems) > found:
            return None
        spec: Spec = kind(**values)
        if spec != before:
            check_value(self.table, spec, self.place, problems)
        return spec


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator wrote."""

    entries: tuple[DeclaredEntry, ...] = ()
    secrets: dict[str, dict[str, str]] = {}
    """By table, then by name."""

    def __repr__(self) -> str:
        return f"Patch({len(self.entries)} entries)"

    def over(self, known: Known) -> Declaration:
        """The whole values that come of it where `known` is there. Raises Refused with every problem."""
        problems: list[Problem] = []
        found: dict[str, list[Spec]] = {}
        for entry in self.entries:
            spec = entry.over(known.get(entry.table, {}).get(entry.name), problems)
            if spec is None:
                continue
            found.setdefault(entry.table, []).append(spec)
            secret = self.secrets.get(entry.table, {}).get(entry.name)
            if secret is not None and isinstance(spec, EngineSpec) and spec.api_key_env is not None:
                problems.append(Problem(f"{entry.place}.api_key", say(Reason.KEY_TWICE)))
        if problems:
            raise Refused(problems)
        values: dict[str, Any] = {table: tuple(specs) for table, specs in found.items()}
        return Declaration(**values, secrets=self.secrets)


def name_of(spec: Spec) -> str:
    """What the value is called within its table."""
    return spec.encode if isinstance(spec, RecipeSpec) else spec.name


def key_of(table: str) -> str:
    """The field that names an entry."""
    return "encode" if table == "recipes" else "name"


def place_of(table: str, name: str) -> str:
    """How a problem points at an entry: `models "Pepper 7"`."""
    return f"{table} {json.dumps(name, ensure_ascii=False)}"


def parse(text: bytes) -> Patch:
    """What `text` (TOML) says, each field sound by itself. Raises Refused with every problem.

    Whether the values are whole, and the names they refer to exist, is for `apply` to say: they may be there already.
    """
    problems: list[Problem] = []
    tree = _tree(text, problems)
    entries: list[DeclaredEntry] = []
    secrets: dict[str, dict[str, str]] = {}
    for table, items in tree.items():
        if table in SERVER_TABLES:
            problems.append(Problem(table, say(Reason.TABLE_OF_SERVE)))
        elif table not in KINDS:
            problems.append(Problem(table, unknown(table, DECLARED_TABLES)))
        elif not isinstance(items, list):
            problems.append(Problem(table, say(Reason.TABLE_LIST, table=table)))
        else:
            entries += _entries(table, items, secrets.setdefault(table, {}), problems)
    if problems:
        raise Refused(problems)
    return Patch(entries=tuple(entries), secrets=secrets)


def patch_of(table: str, entry: Mapping[str, Any]) -> Patch:
    """One entry that did not come as TOML; absent fields are those that are None. Raises Refused."""
    problems: list[Problem] = []
    secrets: dict[str, str] = {}
    given = {name: value for name, value in entry.items() if value is not None}
    entries = _entries(table, [given], secrets, problems)
    if problems:
        raise Refused(problems)
    return Patch(entries=tuple(entries), secrets={table: secrets})


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
    shown = {
        field.name: written[field.name]
        for field in fields
        if field.name in written and (field.required or getattr(spec, field.name) != _default(field))
    }
    if isinstance(spec, AgentSpec):
        shown |= {name: _spelled(shown[name]) for name in _OBJECTS if name in shown}
        shown |= {name: [_spelled_tool(tool) for tool in shown[name]] for name in _TOOLS if name in shown}
    return shown


def _spelled(value: dict[str, Any]) -> Any:
    return json.dumps(value, ensure_ascii=False) if _holds_null(value) else value


def _spelled_tool(tool: Any) -> Any:
    if isinstance(tool, str):
        return {"name": tool} if tool.startswith("{") else tool
    return _spelled(tool)


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(_holds_null, value)))


def _read_objects(entry: dict[str, Any], place: str, problems: list[Problem]) -> None:
    """Put objects in the place of the texts that spell them."""
    for name in _OBJECTS:
        if isinstance(entry.get(name), str):
            entry[name] = _object(entry[name], f"{place}.{name}", problems)
    for name in _TOOLS:
        if isinstance(entry.get(name), list):
            entry[name] = [_tool(tool, f"{place}.{name}", problems) for tool in entry[name]]


def _tool(tool: Any, place: str, problems: list[Problem]) -> Any:
    if isinstance(tool, str) and tool.startswith("{"):
        tool = _object(tool, place, problems)
    if isinstance(tool, dict):
        if not isinstance(tool.get("name"), str):
            problems.append(Problem(f"{place}.name", say(Reason.FIELD_MISSING)))
        elif len(tool) == 1:
            return tool["name"]
    return tool


def _object(text: str, place: str, problems: list[Problem]) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        problems.append(Problem(place, say(Reason.FIELD_TYPE, expected="table")))
        return {"name": ""}


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


def _entries(table: str, items: list[Any], secrets: dict[str, str], problems: list[Problem]) -> list[DeclaredEntry]:
    entries: list[DeclaredEntry] = []
    names: set[str] = set()
    for index, item in enumerate(items):
        entry = _entry(table, f"{table} #{index + 1}", item, secrets, problems)
        if entry is None:
            continue
        if entry.name in names:
            problems.append(Problem(place_of(table, entry.name), say(Reason.NAME_TWICE)))
        names.add(entry.name)
        entries.append(entry)
    return entries


def _entry(table: str, place: str, item: Any, secrets: dict[str, str], problems: list[Problem]) -> DeclaredEntry | None:
    if not isinstance(item, Mapping):
        problems.append(Problem(place, say(Reason.FIELD_TYPE, expected="table")))
        return None
    fields, key, found = dict(item), key_of(table), len(problems)
    name = fields.get(key)
    if isinstance(name, str) and name:
        place = place_of(table, name)
    secret = fields.pop(SECRETS[table], None) if table in SECRETS else None
    if secret is not None:
        check = check_provider_key if table == "engines" else check_secret
        check(secret, f"{place}.{SECRETS[table]}", problems)
    unset = _unset(table, fields, place, problems)
    if table == "agents":
        _read_objects(fields, place, problems)
    given = read_fields(KINDS[table], fields, place, problems)
    if key not in given:
        problems.append(Problem(f"{place}.{key}", say(Reason.FIELD_MISSING)))
    if len(problems) > found:
        return None
    if secret is not None:
        secrets[given[key]] = secret
    return DeclaredEntry(table=table, name=given[key], place=place, given=given, unset=unset)


def _unset(table: str, fields: dict[str, Any], place: str, problems: list[Problem]) -> tuple[str, ...]:
    """The fields to unset, taken out of `fields`."""
    names = fields.pop(UNSET, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problems.append(Problem(f"{place}.{UNSET}", say(Reason.FIELD_TYPE, expected="list")))
        return ()
    known = {field.name: field.required for field in msgspec.structs.fields(KINDS[table])}
    for name in names:
        if name not in known:
            problems.append(Problem(f"{place}.{UNSET}", unknown(name, known)))
        elif known[name]:
            problems.append(Problem(f"{place}.{UNSET}", say(Reason.UNSET_REQUIRED, field=name)))
        elif name in fields:
            problems.append(Problem(f"{place}.{UNSET}", say(Reason.UNSET_GIVEN, field=name)))
    return tuple(names)
