"""Two users on one server: neither sees, guesses or disturbs what is the other's."""

from __future__ import annotations

from typing import Any

from tests.contract.atp.forms import form, headers
from tests.contract.atp.test_completions import a_turn
from tests.contract.atp.test_rows import AGENT, SCHEMA, known
from tests.contract.requirements import requirement
from tests.doors.atp.contract import operations
from tests.doors.atp.house import THREE, House, live

# A body for every operation that has one: valid, so that only ownership can refuse it.
BODIES: dict[str, Any] = {
    "updateWorkspace": {"name": "mine now"},
    "createChat": {"team_id": "{t}"},
    "updateUserTool": {"timeout_seconds": 1},
    "updateAgent": {"name": "mine now"},
    "updateTeam": {"name": "mine now"},
    "createWorkspaceFile": {"path": "/mine.md", "content": "x"},
    "updateWorkspaceFile": {"path": "/kept.md", "content": "x"},
    "convertWorkspaceFileToPdf": {"path": "/kept.md"},
    "uploadChatAttachment": None,
    "retryChatAttachment": None,
}
PARAMETERS = (
    "{workspace_id}",
    "{chat_id}",
    "{completion_id}",
    "{agent_id}",
    "{team_id}",
    "{key_id}",
    "{name}",
    "{attachment_id}",
)
# Pictures have no owner in their address but their id: test_images.py. A query makes a file's address whole.
LATER = ("Image", "Wiki", "Artifact", "Webhook")
QUERIES = {
    "indexWorkspaceFiles": "?path=/kept.md",
    "deleteWorkspaceFile": "?path=/kept.md",
    "downloadWorkspaceFile": "?path=/kept.md",
    "downloadChatAttachment": "?kind=original",
}
OWNED = [
    row
    for row in operations()
    if "{" in row[2] and not any(word in row[0] for word in LATER) and not row[2].startswith(("/chats", "/atp"))
]


@requirement("A-ERR-4")
def test_every_operation_answers_another_users_object_as_one_that_is_not_there() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        chat = await place.call("POST", f"/workspaces/{names['w']}/chats", {"team_id": names["t"]})
        turn = await a_turn(place, chat.data["id"])
        key = (await place.call("GET", "/api-keys")).data[0]["id"]
        space = f"/workspaces/{names['w']}"
        await place.call("POST", f"{space}/files", {"path": "/kept.md", "content": "hers"})
        attachments = f"{space}/chats/{chat.data['id']}/attachments"
        file = (await place.call("POST", attachments, headers=headers(), raw=[form(b"hers")])).data["attachment_id"]
        real = dict(
            zip(
                PARAMETERS,
                (names["w"], chat.data["id"], turn, names["m"], names["t"], key, "taken", file),
                strict=True,
            )
        )
        absent = {name: f"{value.partition('_')[0]}_01j5abcdefghjkmnpqrstvwxyz" for name, value in real.items()}
        absent["{name}"] = "absent"
        for name, method, path in OWNED:
            theirs, nobodys = path, path
            for parameter in PARAMETERS:
                theirs = theirs.replace(parameter, real[parameter])
                nobodys = nobodys.replace(parameter, absent[parameter])
            body = BODIES.get(name)
            assert (name in BODIES) is (method in ("POST", "PUT")), name
            options: dict[str, Any] = {"key": place.eve.key, "headers": THREE | {"idempotency-key": "k2"}}
            if name == "uploadChatAttachment":
                options |= {"headers": headers("k2"), "raw": [form(b"eve's")]}
            query = QUERIES.get(name, "")
            seen = await place.call(method, theirs + query, body, **options)
            guessed = await place.call(method, nobodys + query, body, **options)
            assert (seen.status, guessed.status) == (404, 404), name
            assert seen.raw == guessed.raw, name
        assert len(OWNED) == 29
        kept = await place.ask("GET", f"{space}/files/download?path=/kept.md")
        assert kept.raw == b"hers"

    live(work)


@requirement("A-ERR-4")
def test_lists_hold_only_what_is_ones_own() -> None:
    async def work(place: House) -> None:
        await known(place)
        for path in ("/workspaces", "/tools", "/agents", "/teams"):
            assert (await place.call("GET", path, key=place.eve.key)).data == []
        assert len((await place.call("GET", "/api-keys", key=place.eve.key)).data) == 1
        models = (await place.call("GET", "/models", key=place.eve.key)).json["data"]
        assert [entry["type"] for entry in models] == ["llm"]

    live(work)


@requirement("A-ERR-4")
def test_another_users_agents_and_teams_cannot_be_built_upon() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        eve = place.eve.key
        mine = (await place.call("POST", "/agents", AGENT, key=eve)).data["id"]
        space = (await place.call("POST", "/workspaces", {"name": "w"}, key=eve)).data["id"]
        for orchestrator, members in ((names["l"], []), (mine, [{"agent_definition_id": names["m"]}])):
            body = {"name": "x", "orchestrator_id": orchestrator, "members": members}
            assert (await place.call("POST", "/teams", body, key=eve)).status == 422
        assert (await place.call("POST", f"/workspaces/{space}/chats", {"team_id": names["t"]}, key=eve)).status == 422

    live(work)


@requirement("A-ERR-4")
def test_names_are_free_for_everybody_once() -> None:
    async def work(place: House) -> None:
        for method, path, body in (
            ("POST", "/tools", {"name": "mail", "parameters": SCHEMA}),
            ("POST", "/agents", AGENT | {"name": "main2"}),
        ):
            assert (await place.call(method, path, body)).status == 201
            assert (await place.call(method, path, body, key=place.eve.key)).status == 201

    live(work)
