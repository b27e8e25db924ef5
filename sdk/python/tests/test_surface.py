"""The public surface: every operation has its method, and the two clients are one."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scenario import CONFORMANCE

from envai_client import AsyncEnvaiClient, EnvaiClient
from envai_client.requests import OPERATIONS

CONTRACT = json.loads((CONFORMANCE / "contract/operations.json").read_text(encoding="utf-8"))
BASE = {"api_key": "envai_sk_x", "base_url": "http://127.0.0.1:9"}
SERVICES = [
    name for name, value in vars(EnvaiClient(**BASE)).items() if not name.startswith("_") and name != "primitives"
]
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def clients() -> tuple[EnvaiClient, AsyncEnvaiClient]:
    return EnvaiClient(**BASE), AsyncEnvaiClient(**BASE)


@pytest.mark.parametrize("operation", CONTRACT["operations"], ids=lambda operation: operation["id"])
def test_every_operation_has_its_method_and_keeps_its_id(operation: dict[str, Any], clients: tuple[Any, Any]) -> None:
    for client in clients:
        assert callable(getattr(client.primitives, operation["id"]))
        if operation["sdk"]:
            service, name = operation["sdk"].split(".")
            method = getattr(getattr(client, service), name)
            assert operation["id"] in (method.__doc__ or "")
    row = OPERATIONS[operation["id"]]
    assert (row.method, row.path) == (operation["method"], operation["path"])


def test_the_inventory_of_events_is_current() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from extract_events import inventory

    assert json.loads((CONFORMANCE / "contract/events.json").read_text(encoding="utf-8")) == inventory()


def test_only_the_two_operations_that_are_no_client_methods_lack_a_facade() -> None:
    hidden = {operation["id"] for operation in CONTRACT["operations"] if not operation["sdk"]}
    assert hidden == {"testGenerateImage", "handleProviderWebhook"}


def test_an_unknown_primitive_is_an_attribute_error(clients: tuple[Any, Any]) -> None:
    with pytest.raises(AttributeError, match="launchMissiles"):
        _ = clients[0].primitives.launchMissiles


def shape(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; the annotations differ only in the prefix of the async classes."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def public(value: Any) -> dict[str, Any]:
    members = {name: getattr(type(value), name) for name in dir(type(value)) if not name.startswith("_")}
    return {name: member for name, member in members.items() if inspect.isfunction(member)}


@pytest.mark.parametrize("service", SERVICES)
def test_both_clients_have_the_same_methods_with_the_same_defaults(service: str, clients: tuple[Any, Any]) -> None:
    one, other = (public(getattr(client, service)) for client in clients)
    assert one.keys() == other.keys()
    for name in one:
        assert shape(one[name]) == shape(other[name]), name
        assert one[name].__doc__ == (other[name].__doc__ or "").replace("Async", ""), name


def test_both_clients_have_the_same_settings_and_services(clients: tuple[Any, Any]) -> None:
    assert vars(clients[0]).keys() == vars(clients[1]).keys()
    one, other = (shape(type(client).__init__) for client in clients)
    assert one == other


def test_streams_have_the_same_members() -> None:
    from envai_client.services import async_base, async_streams, sync_base, sync_streams

    for one, other in (
        (sync_streams.EventStream, async_streams.AsyncEventStream),
        (sync_streams.TurnStream, async_streams.AsyncTurnStream),
        (sync_base.ByteStream, async_base.AsyncByteStream),
    ):
        assert {n for n in dir(one) if n[0] != "_"} == {n for n in dir(other) if n[0] != "_"} - {"aclose"}
        assert other.aclose is other.close, "the name that contextlib.aclosing calls"


def test_no_sync_module_is_written_by_hand_but_the_driver() -> None:
    package = ROOT / "src/envai_client"
    twins = {path.name for path in package.rglob("*.py") if path.name.startswith("sync_") or path.name == "client.py"}
    made = {path.name for path in package.rglob("*.py") if "by scripts/generate.py: do not edit." in path.read_text()}
    assert twins - made == {"sync_driver.py"}


def test_the_generated_code_is_what_the_generator_writes(tmp_path: Path) -> None:
    for folder in ("models", "services"):
        (tmp_path / folder).mkdir()
    script = ROOT / "scripts/generate.py"
    subprocess.run([sys.executable, script, CONFORMANCE, tmp_path], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.*"))
    assert made
    for path in made:
        if path.suffix == ".json":
            assert (ROOT / "src/envai_client" / path).read_text() == (tmp_path / path).read_text()
        else:
            assert tokens(ROOT / "src/envai_client" / path) == tokens(tmp_path / path), path


def tokens(path: Path) -> str:
    """The program, whatever the formatter made of its lines and of the order of its imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        node.names.sort(key=lambda alias: alias.name)
    rest = [node for node in tree.body if node not in imports]
    return "\n".join([*sorted(map(ast.dump, imports)), *map(ast.dump, rest)])


def test_the_fixtures_are_what_their_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts/make_fixtures.py", tmp_path], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.json"))
    assert made
    for path in made:
        assert (CONFORMANCE / path).read_text(encoding="utf-8") == (tmp_path / path).read_text(encoding="utf-8"), path


def test_the_sdk_imports_nothing_of_the_server() -> None:
    code = "import sys, envai_client; print([m for m in sys.modules if m.split('.')[0] == 'crocevia'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_importing_does_not_import_what_few_programs_need() -> None:
    heavy = ["jsonschema", "cryptography", "rfc8785", "sqlite3"]
    code = f"import sys, envai_client; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() in ("[]", "['sqlite3']")


HELPERS = {
    "chats": ["events", "send_and_stream", "send_and_wait", "run_client_tools", "fork_chat", "settle_tool_call"],
    "completions": ["iterate_completions"],
    "images": ["generate_and_wait"],
    "wiki": ["verify_webhook"],
}


@pytest.mark.parametrize(("service", "name"), [(service, name) for service, names in HELPERS.items() for name in names])
def test_every_helper_takes_a_timeout_and_a_token(service: str, name: str, clients: tuple[Any, Any]) -> None:
    for client in clients:
        parameters = inspect.signature(getattr(getattr(client, service), name)).parameters
        assert {"timeout", "cancel"} <= set(parameters)
