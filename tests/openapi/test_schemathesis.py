"""Every operation of every document, with what its schema allows and what it does not: no fault, nothing unforeseen."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, clean_env

from .relay import relay
from .test_documents import server

__all__ = ["server"]

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance"
)
DOORS = ("/api/v1", "/v1", "/pepper")


def ask(server: LiveServer, path: str, body: Any) -> Any:
    """What a resource made at `path` is."""
    headers = {"Authorization": f"Bearer {server.secrets['api_key']}", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"{server.url}/api/v1{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return json.loads(answer.read())["data"]


def aimed(server: LiveServer) -> str:
    """What says something only of what is there: a chat's stream, and a key to delete that is not the run's."""
    chat = ask(server, f"/workspaces/{server.secrets['workspace_id']}/chats", {"team_id": server.secrets["team_id"]})
    key = ask(server, "/api-keys", {"name": "to be deleted"})
    values = {
        "streamChatEvents": ("chat_id", chat["id"]),
        "streamChatEventsLegacy": ("chat_id", chat["id"]),
        "deleteApiKey": ("key_id", key["id"]),
    }
    return "".join(
        f'[[operations]]\ninclude-operation-id = "{name}"\nparameters = {{ "path.{parameter}" = "{value}" }}\n'
        for name, (parameter, value) in values.items()
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("door", DOORS)
def test_nothing_that_a_document_describes_breaks_it(server: LiveServer, tmp_path: Path, door: str) -> None:
    """Nothing is left out. Streams that have no end get one from the relay."""
    secrets = server.secrets
    keys = {
        "/api/v1": [f"Authorization: Bearer {secrets['api_key']}"],
        "/v1": [f"Authorization: Bearer {secrets['operator_token']}"],
        "/pepper": [f"X-Pepper-Key: {secrets['project_key']}", f"X-Pepper-Project: {secrets['project']}"],
    }[door]
    config = tmp_path / "schemathesis.toml"
    config.write_text(aimed(server) if door == "/api/v1" else "", encoding="utf-8")
    with relay(server.url) as url:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"]
        command += [f"{url}{door}/openapi.json", "--checks", CHECKS, "--max-examples", "6", "--seed", "7"]
        command += ["--phases", "examples,coverage,fuzzing", "--request-timeout", "20", "--no-color"]
        command += ["--generation-database", "none", "--workers", "2"]
        for header in keys:
            command += ["-H", header]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=380, cwd=tmp_path, env=clean_env(), check=False
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert re.search(r"(\d{2,}) generated, \1 passed", done.stdout), done.stdout[-500:]
