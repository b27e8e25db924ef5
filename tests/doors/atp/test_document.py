"""The door describes itself: a valid document, whole, and true to what it answers."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from tests.contract.atp.test_completions import a_chat, a_turn
from tests.contract.atp.test_rows import known
from tests.doors.atp.contract import operations

from .house import THREE, House, live


async def _written(place: House) -> Any:
    return (await place.ask("GET", "/openapi.json", key=None)).json


WRITTEN: Any = live(_written)


def test_the_document_is_valid_openapi_and_is_served() -> None:
    validate(WRITTEN)

    async def work(place: House) -> None:
        place.strict = False
        served = await place.call("GET", "/openapi.json", key=None)
        assert (served.status, served.header("content-type")) == (200, "application/json")
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
