"""Settings read from the file, the environment over it, and command-line flags over both."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import msgspec

from crocevia.config.checks import check
from crocevia.config.settings import Origin, Settings
from crocevia.core.declared import DECLARED_TABLES, Problem, Refused, join, read, read_value, struct_of, unknown
from crocevia.core.errors import Reason, say
from crocevia.storage.home import Home

PREFIX: Final = "CROCEVIA_"
ALIASES: Final = {
    "OPENCLAW_GATEWAY_TOKEN": "gateway.auth.token",
    "OPENCLAW_GATEWAY_PASSWORD": "gateway.auth.password",
}
_LARGEST_FILE: Final = 1 << 20


def load(
    home: Home | Path,
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of `home`. `flags`: dotted path to value, None for «not given».

    file: instead of HOME/crocevia.toml (or HOME/crocevia.json5), and then it must exist.
    Raises Refused with every problem found.
    """
    problems: list[Problem] = []
    tree = _read_file(file or _default_file(home), problems, needed=file is not None)
    refuse_declared(tree, problems)
    if tree.pop("origins", None) is not None:
        problems.append(Problem("origins", unknown("origins", ())))
    origins: dict[str, Origin] = dict.fromkeys(_leaves(tree, Settings), "file")
    for path, text, name in _overrides(environment, problems):
        wrong: list[Problem] = []
        value = _from_text(path, text, name, wrong)
        problems.extend(wrong)
        if not wrong:
            _put(tree, path, value)
            origins[path] = "env"
    for path, value in (flags or {}).items():
        if value is not None:
            _put(tree, path, value)
            origins[path] = "flag"
    settings = read(Settings, tree, "", problems)
    if settings is not None:
        check(settings, problems)
    if problems or settings is None:
        raise Refused(problems)
    return msgspec.structs.replace(settings, origins=origins)


def refuse_declared(tree: dict[str, Any], problems: list[Problem]) -> None:
    """Take what belongs to `crocevia apply` out of `tree`, as problems with a hint."""
    for name in [name for name in tree if name in DECLARED_TABLES]:
        del tree[name]
        problems.append(Problem(name, say(Reason.TABLE_OF_APPLY)))


def _default_file(home: Home | Path) -> Path:
    path = home if isinstance(home, Path) else home.path
    json5 = path / "crocevia.json5"
    toml = path / "crocevia.toml"
    return json5 if json5.exists() and not toml.exists() else toml


def _read_file(path: Path, problems: list[Problem], *, needed: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as opened:
            text = opened.read(_LARGEST_FILE + 1).decode("utf-8")
        if len(text) > _LARGEST_FILE:
            raise ValueError("more than 1 MB")
        tree = _parse(path, text)
    except FileNotFoundError:
        if needed:
            problems.append(Problem(str(path), say(Reason.FILE_MISSING)))
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(path.name, say(Reason.FILE_MALFORMED, reason=_reason(error))))
        return {}
    if not isinstance(tree, dict):
        problems.append(Problem(path.name, say(Reason.FIELD_TYPE, expected="table")))
        return {}
    return tree


def _parse(path: Path, text: str) -> Any:
    if path.suffix not in (".json", ".json5"):
        return tomllib.loads(text)
    import pyjson5

    return pyjson5.decode(text)


def _reason(error: Exception) -> str:
    if isinstance(error, tomllib.TOMLDecodeError):
        return str(error)
    return (
        type(error).__name__ if isinstance(error, OSError | UnicodeDecodeError) else str(error).partition("\n")[0][:120]
    )


def _overrides(environment: Mapping[str, str], problems: list[Problem]) -> list[tuple[str, str, str]]:
    """(path, text, variable) of every variable that sets something; aliases first, so that our own names win."""
    found = [(path, environment[name], name) for name, path in ALIASES.items() if environment.get(name)]
    known = {_flat(path): path for path in setting_paths(Settings)}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        path = known.get(_flat(name.removeprefix(PREFIX).replace("__", ".")))
        if path is None:
            spelled = {PREFIX + path.upper().replace(".", "__") for path in known.values()}
            problems.append(Problem(name, unknown(name, spelled)))
        else:
            found.append((path, environment[name], name))
    return found


def _flat(path: str) -> str:
    return path.replace("_", "").lower()


def _from_text(path: str, text: str, name: str, problems: list[Problem]) -> Any:
    expected = _type_at(path)
    value: Any = text
    if get_origin(expected) is tuple:
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif bool in (get_args(expected) or (expected,)):
        value = {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(text.lower(), text)
    return read_value(expected, value, name, problems, strict=False)


def _type_at(path: str) -> Any:
    kind: Any = Settings
    for part in path.split("."):
        struct = struct_of(kind)
        assert struct is not None
        kind = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}[part]
    return kind


def setting_paths(kind: type[msgspec.Struct], place: str = "") -> list[str]:
    """Every setting below `kind`, spelled as in the file: `server.port`."""
    found: list[str] = []
    for field in msgspec.structs.fields(kind):
        path = join(place, field.encode_name)
        nested = struct_of(field.type)
        if nested is not None:
            found.extend(setting_paths(nested, path))
        elif path != "origins":
            found.append(path)
    return found


def _leaves(tree: Any, kind: type[msgspec.Struct]) -> list[str]:
    """Paths of the settings that `tree` gives a value to."""
    return [path for path in setting_paths(kind) if _has(tree, path)]


def _has(tree: Any, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return True


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        below = tree.setdefault(part, {})
        if not isinstance(below, dict):  # the file is wrong there, and `read` will say so
            return
        tree = below
    tree[last] = value
