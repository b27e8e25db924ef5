"""What a type checker tells the user: nothing of right programs, every mistake of wrong ones, and no `Any` anywhere."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import envai_client as sdk
from envai_client import models, options, params, signals

ROOT = Path(__file__).parents[1]
TYPING = Path(__file__).parent / "typing"
README = (ROOT / "README.md").read_text(encoding="utf-8")
EDITIONS = ("async", "sync")


def mypy(path: Path, folder: Path) -> set[int]:
    """The lines with errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    run = subprocess.run(
        [*command, "--config-file=", str(path)], capture_output=True, text=True, cwd=folder, timeout=170
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return {int(line) for line in re.findall(rf"{path.name}:(\d+): error", run.stdout)}


def pyright(path: Path, folder: Path) -> set[int]:
    place = folder / path.stem
    place.mkdir()
    (place / "program.py").write_text(path.read_text())
    (place / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(place)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=170)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    said = json.loads(run.stdout)
    assert said["summary"]["filesAnalyzed"] == 1
    return {item["range"]["start"]["line"] + 1 for item in said["generalDiagnostics"] if item["severity"] == "error"}


CHECKERS = {"mypy": mypy, "pyright": pyright}
both = pytest.mark.parametrize("checker", CHECKERS)


@both
@pytest.mark.timeout(180)
@pytest.mark.parametrize("edition", EDITIONS)
def test_eight_of_eight_mistakes_are_found_and_nothing_else(checker: str, edition: str, tmp_path: Path) -> None:
    path = TYPING / f"mistakes_{edition}.py"
    marked = {n for n, line in enumerate(path.read_text().splitlines(), 1) if "# mistake" in line}
    assert len(marked) == 8
    assert CHECKERS[checker](path, tmp_path) == marked


def test_the_sync_mistakes_are_made_from_the_async_ones() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from generate import sync_edition
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    made = sync_edition((TYPING / "mistakes_async.py").read_text())
    kept = (TYPING / "mistakes_sync.py").read_text()
    assert tokens(made) == tokens(kept)


@both
@pytest.mark.timeout(180)
def test_the_programs_of_the_readme_are_right(checker: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    given = "from envai_client import EnvaiClient\nclient = EnvaiClient()\nchat_id = ''\n\n\n"
    given += "def deliver(to: str, subject: str, idempotency_key: str) -> None: ...\n\n\n"
    for number, block in enumerate(blocks):
        path = tmp_path / f"readme_{number}.py"
        path.write_text(block if "os.environ" in block or "asyncio" in block else given + block, encoding="utf-8")
        assert CHECKERS[checker](path, tmp_path) == set(), block


def tokens(text: str) -> list[str]:
    """The program without its docstring, however its imports are ordered."""
    body = text.split('"""')[2]
    first, _, rest = "\n".join(line for line in body.splitlines() if not line.startswith("# ")).strip().partition("\n")
    return [*sorted(first.replace(",", "").split()), *rest.split()]


def public_classes() -> list[type]:
    found: dict[type, None] = {}
    for module in (sdk, models, options, params, signals):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for value in (getattr(module, name) for name in names):
            for kind in get_args(value) or (value,):
                if inspect.isclass(kind) and kind.__module__.startswith("envai_client"):
                    found[kind] = None
    for client in (sdk.EnvaiClient(base_url="http://x"), sdk.AsyncEnvaiClient(base_url="http://x")):
        for service in vars(client).values():
            if type(service).__module__.startswith("envai_client.services"):
                found[type(service)] = None
    from envai_client.services import async_base, async_helpers, async_streams, sync_base, sync_helpers, sync_streams

    for module in (async_base, async_streams, async_helpers, sync_base, sync_streams, sync_helpers):
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                found[value] = None
    return list(found)


def holds_any(hint: Any) -> bool:
    return hint is Any or any(holds_any(part) for part in get_args(hint) if not isinstance(part, (str, int)))


def signatures(kind: type) -> dict[str, dict[str, Any]]:
    """The hints of every public name of a class: fields, methods, properties."""
    found: dict[str, dict[str, Any]] = {}
    if issubclass(kind, msgspec.Struct) or typing.is_typeddict(kind):
        found["fields"] = {name: hint for name, hint in get_type_hints(kind).items() if not name.startswith("_")}
    for name, member in vars(kind).items():
        if name.startswith("_") and name not in ("__init__", "__iter__", "__aiter__", "__next__", "__anext__"):
            continue
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function):
            found[name] = function_hints(function)
    return found


def function_hints(function: Any) -> dict[str, Any]:
    module = sys.modules[function.__module__]
    names = {**vars(typing), **vars(sdk), "ToolOutcome": sdk.ToolOutcome, "AsyncEnvaiClient": sdk.AsyncEnvaiClient}
    return get_type_hints(function, {**names, **vars(module)}, {"EnvaiClient": sdk.EnvaiClient, "Items": list})


# What services and streams are built with is no business of a program: it gets them from a client.
BUILT_BY_CLIENTS = ("envai_client.services", "envai_client.client", "envai_client.async_client")


def test_no_public_signature_says_any() -> None:
    kinds = public_classes()
    assert len(kinds) > 150
    loose = []
    for kind in kinds:
        for name, hints in signatures(kind).items():
            if name == "__init__" and kind.__module__.startswith(BUILT_BY_CLIENTS[:1]):
                continue
            loose += [f"{kind.__name__}.{name}: {part}" for part, hint in hints.items() if holds_any(hint)]
    for name in sdk.__all__:
        value = getattr(sdk, name)
        if inspect.isfunction(value):
            loose += [f"{name}: {part}" for part, hint in function_hints(value).items() if holds_any(hint)]
    assert loose == []


def test_every_event_type_narrows_to_its_own_payload() -> None:
    kinds = get_args(sdk.Event)
    types = [get_args(get_type_hints(kind)["type"])[0] for kind in kinds]
    assert len(set(types)) == len(kinds) == 31
    assert types.count("unknown") == 1
