"""The door describes itself: a valid document, whole, and true to what it answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from crocevia.doors.atp.document import document
from crocevia.doors.atp.resources import TABLE
from crocevia.doors.atp.resources.document import describing
from tests.contract.atp.test_completions import a_chat, a_turn
from tests.contract.atp.test_rows import known
from tests.doors.atp.contract import operations
from tests.live import clean_env, live_server

from .house import THREE, House, live

WRITTEN = document((*TABLE, *describing(TABLE)))


def test_the_document_is_valid_openapi_and_is_served() -> None:
    validate(WRITTEN)

    async def work(place: House) -> None:
        place.strict = False
        served = await place.call("GET", "/openapi.json", key=None)
        assert (served.status, served.json) == (200, WRITTEN)
        page = await place.call("GET", "/docs", key=None)
        assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
        assert b"POST /api/v1/agents" in page.raw and b"<script" not in page.raw

    live(work)


def test_every_operation_says_what_it_does_and_deletions_what_they_take() -> None:
    found = {op["operationId"]: op for item in WRITTEN["paths"].values() for op in item.values()}
    contract = {name for name, _, _ in operations()}
    assert set(found) <= contract | {"getDocument", "readDocument"}
    for name, operation in found.items():
        assert operation["description"].endswith("."), name
    for name in ("deleteAgent", "deleteTeam", "deleteUserTool", "deleteApiKey"):
        assert "." in found[name]["description"].rstrip("."), name


def test_answers_are_what_the_document_says() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        chat, completions = await a_chat(place)
        turn = await a_turn(place, chat)
        workspace = f"/workspaces/{names['w']}"
        for path, template in (
            ("/workspaces", "/workspaces"),
            (workspace, "/workspaces/{workspace_id}"),
            ("/tools", "/tools"),
            ("/agents", "/agents"),
            ("/teams", "/teams"),
            ("/models", "/models"),
            ("/api-keys", "/api-keys"),
            (f"{workspace}/chats", "/workspaces/{workspace_id}/chats"),
            (completions, "/workspaces/{workspace_id}/chats/{chat_id}/completions"),
            (f"{completions}/{turn}", "/workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id}"),
        ):
            reply = await place.call("GET", path, headers=THREE)
            answers: Any = WRITTEN["paths"][f"/api/v1{template}"]["get"]["responses"]
            schema = answers["200"]["content"]["application/json"]["schema"]
            Draft202012Validator(schema | {"components": WRITTEN["components"]}).validate(reply.json)

    live(work)


TURNS = "ChatMessage|ChatTurn|ChatTool|ChatApproval|ChatEvents|forkChat|restoreChat"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance"
)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_generated_requests_find_no_fault_and_no_answer_that_is_not_documented(tmp_path: Path) -> None:
    with live_server(tmp_path / "home") as server:
        bearer = f"Authorization: Bearer {server.secrets['api_key']}"
        address = f"{server.url}/api/v1/openapi.json"
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", address, "--url", server.url]
        options = ["--header", bearer, "--checks", CHECKS, "--max-examples", "5", "--phases", "coverage,fuzzing"]
        # Revoking keys at random would end the run's own; turns take their time, and their streams have no end.
        safe = ["--exclude-operation-id-regex", f"deleteApiKey|{TURNS}", "--seed", "1", "--no-color"]
        done = subprocess.run(
            [*command, *options, *safe],
            cwd=tmp_path,
            env=clean_env(),
            capture_output=True,
            text=True,
            timeout=220,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
