"""Runs inside the official client's own environment: every resource of rows, sync and async, on a live server.

Arguments: URL, API key, workspace id, chat id (with completions), the other chat (without). Prints what `report`
does; fails with the client's own error otherwise.
"""

from __future__ import annotations

import sys
from typing import Any

from envai import errors
from watching import close, everything, fields, now, refused, report, watched

URL, KEY, WORKSPACE, CHAT, EMPTY = sys.argv[1:6]
BASE = f"{URL}/api/v1"


async def drive(client: Any, tag: str) -> None:
    assert fields(await now(client.health_check()))
    assert fields(await now(client.get_jwks()))["keys"]
    await drive_workspaces(client, tag)
    await drive_tools(client, tag)
    team = await drive_team(client, tag)
    await drive_chats(client, team)
    await drive_completions(client)
    await drive_keys(client, tag)
    assert "ping" in fields(await now(client.capabilities.get()))["features"]
    await drive_version_two(client)


async def drive_workspaces(client: Any, tag: str) -> None:
    made = fields(await now(client.workspaces.create(body={"name": tag, "metadata": {"a": 1}})))
    assert made["metadata"] == {"a": 1}
    changed = fields(await now(client.workspaces.update(made["id"], body={"name": f"{tag} 2"})))
    assert fields(await now(client.workspaces.get(made["id"]))) == changed
    assert made["id"] in [fields(item)["id"] for item in await now(client.workspaces.list())]
    await refused(errors.NotFoundError, lambda: client.workspaces.get("wsp_01j5abcdefghjkmnpqrstvwxyz"))


async def drive_tools(client: Any, tag: str) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    name = f"mail_{tag}"
    made = fields(await now(client.tools.create(body={"name": name, "parameters": schema})))
    assert (made["kind"], made["timeout_seconds"]) == ("client", 120)
    assert (
        await refused(errors.ValidationError, lambda: client.tools.create(body={"name": name, "parameters": schema}))
    ).details
    assert fields(await now(client.tools.update(name, body={"timeout_seconds": 30})))["timeout_seconds"] == 30
    assert fields(await now(client.tools.get(name)))["parameters"] == schema
    assert name in [fields(item)["name"] for item in await now(client.tools.list())]
    assert await now(client.tools.delete(name)) is None
    await refused(errors.NotFoundError, lambda: client.tools.get(name))


async def drive_team(client: Any, tag: str) -> str:
    models = fields(await now(client.models.list()))
    model = models["defaults"]["orchestrator"]
    agent = {
        "system_prompt": "Be useful.",
        "mode": "subagent",
        "model": model,
        "external_tools_enabled": [{"name": "x"}],
    }
    members = [fields(await now(client.agents.create(body=agent | {"name": f"{tag} {n}"})))["id"] for n in (2, 1)]
    leader = fields(await now(client.agents.create(body=agent | {"name": tag, "mode": "primary"})))["id"]
    assert fields(await now(client.agents.update(leader, body={"description": "leads"})))["description"] == "leads"
    assert fields(await now(client.agents.get(leader)))["mode"] == "primary"
    assert leader in [fields(item)["id"] for item in await now(client.agents.list())]
    body = {
        "name": tag,
        "orchestrator_id": leader,
        "members": [{"agent_definition_id": member} for member in members],
    }
    team = fields(await now(client.teams.create(body=body)))
    assert [member["agent_definition_id"] for member in team["members"]] == members
    assert fields(await now(client.teams.update(team["id"], body={"members": body["members"][:1]})))["members"]
    assert fields(await now(client.teams.get(team["id"])))["orchestrator_id"] == leader
    assert team["id"] in [fields(item)["id"] for item in await now(client.teams.list())]
    await refused(errors.ValidationError, lambda: client.agents.delete(leader))
    assert await now(client.agents.delete(members[1])) is None
    spare = fields(await now(client.teams.create(body=body | {"name": f"{tag} spare", "members": []})))
    assert await now(client.teams.delete(spare["id"])) is None
    return str(team["id"])


async def drive_chats(client: Any, team: str) -> None:
    chat = fields(await now(client.chats.create(WORKSPACE, body={"team_id": team})))
    assert fields(await now(client.chats.get(WORKSPACE, chat["id"])))["team_id"] == team
    assert chat["id"] in [fields(item)["id"] for item in await now(client.chats.list(WORKSPACE))]
    await refused(errors.ValidationError, lambda: client.teams.delete(team))


async def drive_completions(client: Any) -> None:
    page = fields(await now(client.completions.list(WORKSPACE, CHAT, per_page=2, status="succeeded")))
    assert (len(page["data"]), page["meta"]["total"]) == (2, 5)
    listed = [fields(item)["id"] for item in await everything(client.completions.iterate(WORKSPACE, CHAT, per_page=2))]
    assert len(set(listed)) == 5
    one = fields(await now(client.completions.get(WORKSPACE, CHAT, listed[0])))
    assert one["cost_usd"] == 0.42
    assert await everything(client.completions.iterate(WORKSPACE, EMPTY)) == []
    late = page["data"][0]["started_at"]
    assert fields(await now(client.completions.list(WORKSPACE, CHAT, started_at_from=late)))["meta"]["total"] == 1


async def drive_version_two(client: Any) -> None:
    """A newer client reads the older contract, where it can be told to."""
    if not hasattr(client, "get_capabilities_legacy"):
        return
    old = watched(type(client)(KEY, base_url=BASE, contract_version=2), client.called)
    assert fields(await now(old.get_capabilities_legacy()))["protocol_version"] == 2
    page = fields(await now(old.completions.list(WORKSPACE, CHAT)))
    assert [item["cost_usd"] for item in page["data"]] == [0.42] * 5
    await close(old)


async def drive_keys(client: Any, tag: str) -> None:
    made = fields(await now(client.api_keys.create(body={"name": tag, "expires_at": "never"})))
    assert made["token"].startswith("envai_sk_") and made["expires_at"] is None
    other = type(client)(made["token"], base_url=BASE)
    assert await now(other.workspaces.list())
    assert await now(client.api_keys.delete(made["id"])) is None
    await refused(errors.AuthenticationError, lambda: other.workspaces.list())
    assert next(fields(key) for key in await now(client.api_keys.list()) if fields(key)["id"] == made["id"])[
        "revoked_at"
    ]
    await close(other)


report(KEY, BASE, drive)
