"""Two users on one whole server: the second tries every operation of the router's own table on all that is the
first's, a turn under way included. Nothing is seen, guessed or disturbed: each answer is that for what does not exist.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crocevia.asgi.http import Operation
from crocevia.core.ids import new_id
from crocevia.doors.atp.caller import VersionRule
from crocevia.runtime.control.api_keys import mint
from crocevia.storage import images, users
from crocevia.storage.database import immediate
from crocevia.storage.images import Generation, ImageFile, Upload
from tests.contract.atp.forms import form, headers
from tests.contract.requirements import requirement
from tests.doors.atp.house import THREE, Reply, exchange
from tests.runtime.turns.theatre import Theatre, Watcher, play, tool

CALLS: dict[str, Any] = {
    "main": [
        {"when": {"after_tool": "add"}, "say": [{"text": "It is {tool_result}."}]},
        {"say": [{"tool": "add", "arguments": {}}]},
    ]
}
AGENTS = {"main": {"external_tools_enabled": tool("add")}}
NOBODY = "01j5abcdefghjkmnpqrstvwxyz"
# Not a user's: anybody may ask. What they say of a user's things they say only with a signature.
PUBLIC = {
    *("healthCheck", "getJwks", "getWikiWebhookJwks", "downloadArtifact", "handleProviderWebhook"),
    *("getDocument", "readDocument"),
}
# A valid body for every operation that takes one, so that only ownership can refuse it. {x}: an id of the first user.
BODIES: dict[str, Any] = {
    "updateWorkspace": {"name": "mine now"},
    "createChat": {"team_id": "{team_id}"},
    "updateUserTool": {"timeout_seconds": 1},
    "updateAgent": {"name": "mine now"},
    "updateTeam": {"name": "mine now"},
    "createWorkspaceFile": {"path": "/mine.md", "content": "x"},
    "updateWorkspaceFile": {"path": "/kept.md", "content": "x"},
    "convertWorkspaceFileToPdf": {"path": "/kept.md"},
    "sendChatMessage": {"message": "mine now"},
    "steerChatTurn": {"text": "mine now"},
    "resolveChatTool": {"call_id": "{call_id}", "output": "mine"},
    "claimChatTool": {"call_id": "{call_id}", "holder": "mine"},
    "resolveChatApproval": {"approval_id": "apr_x", "approve": True},
    "forkChat": {"destination_chat_id": "{own_chat}"},
    "restoreChat": {"orchestrator_context": [{"kind": "compacted", "content": "mine"}]},
}
QUERIES = {
    "indexWorkspaceFiles": "?path=/kept.md",
    "deleteWorkspaceFile": "?path=/kept.md",
    "downloadWorkspaceFile": "?path=/kept.md",
    "downloadChatAttachment": "?kind=original",
}
# Where an id stands in a body or a query beside what is the caller's own: operation, path, body.
REFERENCES: list[tuple[str, str, Any]] = [
    ("POST", "/teams", {"name": "x", "orchestrator_id": "{agent_id}"}),
    (
        "POST",
        "/teams",
        {"name": "x", "orchestrator_id": "{own_agent}", "members": [{"agent_definition_id": "{agent_id}"}]},
    ),
    ("PUT", "/teams/{own_team}", {"orchestrator_id": "{agent_id}"}),
    ("POST", "/workspaces/{own_space}/chats", {"team_id": "{team_id}"}),
    ("GET", "/workspaces/{own_space}/chats/{chat_id}", None),
    ("GET", "/workspaces/{own_space}/chats/{chat_id}/completions", None),
    ("GET", "/workspaces/{own_space}/chats/{own_chat}/completions/{completion_id}", None),
    ("GET", "/workspaces/{own_space}/chats/{own_chat}/attachments/{attachment_id}", None),
    ("DELETE", "/workspaces/{own_space}/chats/{own_chat}/attachments/{attachment_id}", None),
    ("GET", "/workspaces/{own_space}/chats/{own_chat}/attachments/{attachment_id}/download?kind=original", None),
    ("POST", "/atp/v3/chats/{own_chat}/messages", {"message": "x", "attachment_ids": ["{attachment_id}"]}),
    ("POST", "/atp/v3/chats/{own_chat}/fork", {"destination_chat_id": "{chat_id}"}),
    ("POST", "/atp/v3/chats/{own_chat}/tool-output", {"call_id": "{call_id}", "output": "x"}),
    (
        "POST",
        "/images/generations",
        {
            "model": "brush",
            "prompt": "x",
            "webhook_url": "https://93.184.216.34/h",
            "input_image": {"type": "upload_id", "payload": "{upload_id}"},
        },
    ),
    ("GET", "/artifacts/download?generation={record}&artifact={artifact_id}&expires=9999999999&signature=x", None),
]


@dataclass
class World:
    """real: ids of the first user, and of the second's own. absent: the same, of nobody."""

    place: Theatre
    eve: str
    real: dict[str, str]
    watcher: Watcher

    @property
    def absent(self) -> dict[str, str]:
        return {
            name: value if name.startswith("own_") else "absent" if name == "name" else _nobodys(value)
            for name, value in self.real.items()
        }

    async def as_eve(
        self, method: str, path: str, body: Any, ids: dict[str, str], rule: VersionRule | None = None
    ) -> Reply:
        negotiated = {} if rule in (VersionRule.LIVE_2, VersionRule.READ_2) else THREE
        sent = {**negotiated, "idempotency-key": "eve-1"}
        reply = await self.place.call(method, _full(spelled(path, ids)), spelled(body, ids), sent, self.eve)
        assert reply.header("x-request-id")
        return reply


def _nobodys(value: str) -> str:
    return f"{value.partition('_')[0]}_{NOBODY}"


def _full(path: str) -> str:
    return path if path.startswith(("/.well-known/", "/api/v1/")) else f"/api/v1{path}"


def spelled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, found in ids.items():
            value = value.replace("{" + name + "}", found)
        return value
    if isinstance(value, dict):
        return {key: spelled(below, ids) for key, below in value.items()}
    return [spelled(below, ids) for below in value] if isinstance(value, list) else value


async def world(place: Theatre) -> World:
    """The first user with one of everything and a turn that waits for their tool; the second with their own."""
    with immediate(place.home.database) as tx:
        other = users.add(tx, "eve", "member", 0.0)
        eve = mint(tx, place.home, other, "eve").token
    await place.call("POST", "/api/v1/tools", {"name": "add", "parameters": {"type": "object"}})
    space = f"/api/v1/workspaces/{place.made.workspace_id}"
    await place.call("POST", f"{space}/files", {"path": "/kept.md", "content": "hers"})
    chat = await place.chat()
    file = await attached(place, f"{space}/chats/{chat}/attachments")
    watcher = await place.watch(chat)
    turn = await place.say(chat, "add")
    call = (await watcher.until("agent.tool.request"))["data"]["call_id"]
    agents = (await place.call("GET", "/api/v1/agents")).data
    team = next(item for item in (await place.call("GET", "/api/v1/teams")).data if item["name"] == "cast")
    picture, upload, artifact = new_id("igr"), new_id("upl"), new_id("art")
    with immediate(place.home.database) as tx:
        images.add(tx, painted(picture, artifact, place.made.user_id))
        kept = Upload(id=upload, user_id=place.made.user_id, name="a.png", mime_type="image/png", size=1, **LONG)
        images.add_upload(tx, kept)
    real = {
        "workspace_id": place.made.workspace_id,
        "chat_id": chat,
        "completion_id": turn,
        "attachment_id": file,
        "agent_id": next(item["id"] for item in agents if item["name"] == "main"),
        "team_id": team["id"],
        "key_id": (await place.call("GET", "/api/v1/api-keys")).data[0]["id"],
        "name": "add",
        "record": picture,
        "upload_id": upload,
        "artifact_id": artifact,
        "call_id": call,
        "file_id": "file_x",
        "operation_id": "op_x",
        "category_id": "cat_x",
        **await owns(place, eve),
    }
    return World(place, eve, real, watcher)


LONG: Any = {"created_at": time.time(), "expires_at": time.time() + 7200}


def painted(which: str, artifact: str, user: str) -> Generation:
    return Generation(
        id=which,
        user_id=user,
        model="brush",
        provider="x",
        status="succeeded",
        request={"prompt": "hers"},
        origin="http://x",
        webhook_url="https://x/h",
        files=(ImageFile(artifact_id=artifact, mime_type="image/png", size=1),),
        **LONG,
    )


async def attached(place: Theatre, path: str) -> str:
    scope, _ = place._scope("POST", path, None, headers("ada-1"), None)
    made: str = (await exchange(place.door, scope, [form(b"hers")])).data["attachment_id"]
    return made


async def owns(place: Theatre, key: str) -> dict[str, str]:
    """What the second user has."""

    async def make(path: str, body: Any) -> str:
        reply = await place.call("POST", f"/api/v1{path}", body, key=key)
        assert reply.status == 201, reply.raw
        made: str = reply.data["id"]
        return made

    agent = await make("/agents", {"name": "own", "mode": "primary", "system_prompt": "x", "model": "m-main"})
    team = await make("/teams", {"name": "own", "orchestrator_id": agent})
    space = await make("/workspaces", {"name": "own"})
    chat = await make(f"/workspaces/{space}/chats", {"team_id": team})
    return {"own_agent": agent, "own_team": team, "own_space": space, "own_chat": chat}


async def hers(place: Theatre, table: tuple[Operation, ...], real: dict[str, str]) -> list[bytes]:
    """All that the first user can read of what is theirs, byte by byte, and the bytes on the disk."""
    found = []
    for operation in table:
        if operation.method == "GET" and not operation.public and "events" not in operation.path:
            path = _full(spelled(operation.path, real)) + QUERIES.get(operation.id, "")
            sent = {} if operation.rule is VersionRule.READ_2 else THREE
            found.append((await place.call("GET", path, None, sent)).raw)
    return [*found, *(path.read_bytes() for path in sorted(Path(place.home.files).rglob("*")) if path.is_file())]


@requirement("A-ERR-3", "A-ERR-4", "A-IMG-5")
def test_no_operation_shows_a_stranger_anything_or_lets_them_change_it() -> None:
    async def work(place: Theatre) -> None:
        known = await world(place)
        door = next(door for door in place.service.site.doors if door.name == "atp")
        assert {operation.id for operation in door.table if operation.public} == PUBLIC
        before = await hers(place, door.table, known.real)
        for operation in door.table:
            if not operation.public and "{" in operation.path:
                await try_one(known, operation)
            elif not operation.public and operation.method == "GET":
                reply = await known.as_eve("GET", operation.path, None, known.real, operation.rule)
                shown = [name for name, value in known.real.items() if value.encode() in reply.raw and "_" in value]
                assert [name for name in shown if not name.startswith("own_")] == [], operation.id
        assert await hers(place, door.table, known.real) == before
        # The turn that was under way all the time is still its owner's, waiting for its own tool.
        output = {"call_id": known.real["call_id"], "output": "five"}
        assert (await place.post(known.real["chat_id"], "tool-output", output)).status == 204
        await known.watcher.end(known.real["completion_id"])
        assert known.watcher.text("main") == "It is five."

    play(CALLS, work, agents=AGENTS, timeout=60)


async def try_one(known: World, operation: Operation) -> None:
    """As the second user on the first's objects and on nobody's: the same 404, to the byte."""
    name = operation.id.removesuffix("Legacy")
    assert (operation.body is not None) is (name in BODIES), operation.id
    path = operation.path + QUERIES.get(name, "")
    replies = []
    for ids in (known.real, known.absent):
        assert "{" not in spelled(path, ids), operation.path
        replies.append(await known.as_eve(operation.method, path, BODIES.get(name), ids, operation.rule))
    assert [reply.status for reply in replies] == [404, 404], operation.id
    assert replies[0].raw == replies[1].raw, operation.id


@requirement("A-ERR-4", "A-IMG-5")
def test_an_id_of_another_user_in_a_body_or_a_query_is_as_good_as_none() -> None:
    async def work(place: Theatre) -> None:
        known = await world(place)
        door = next(door for door in place.service.site.doors if door.name == "atp")
        before = await hers(place, door.table, known.real)
        for method, path, body in REFERENCES:
            seen = await known.as_eve(method, path, body, known.real)
            guessed = await known.as_eve(method, path, body, known.absent)
            assert seen.status in (403, 404, 422), (path, seen.raw)
            assert (seen.status, seen.raw) == (guessed.status, guessed.raw), path
        assert await hers(place, door.table, known.real) == before

    play(CALLS, work, agents=AGENTS, timeout=60)
