"""Workspaces, tools, chats, agents, teams and models: what is created comes back, and what is wrong changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from crocevia.core.ids import is_id
from tests.contract.requirements import requirement
from tests.doors.atp.contract import operations
from tests.doors.atp.house import House, live

Case = tuple[str, str, Any, int, Any]
"""Method, path, body, status, and the error's fields or a part of the data. `{w}` and so on stand for known ids."""

LONG = "x" * 256
WORKSPACES: list[Case] = [
    ("POST", "/workspaces", {"name": "a"}, 201, {"name": "a", "metadata": {}}),
    ("POST", "/workspaces", {"name": "a", "metadata": {"k": [1, None]}}, 201, {"metadata": {"k": [1, None]}}),
    ("POST", "/workspaces", {"name": "a", "metadata": []}, 201, {"metadata": {}}),
    ("POST", "/workspaces", {"name": "x" * 255, "unknown": 1}, 201, {"name": "x" * 255}),
    ("POST", "/workspaces", {}, 422, {"name"}),
    ("POST", "/workspaces", {"name": "", "metadata": 3}, 422, {"name", "metadata"}),
    ("POST", "/workspaces", {"name": LONG}, 422, {"name"}),
    ("POST", "/workspaces", {"name": "a\r\nb: c"}, 422, {"name"}),
    ("POST", "/workspaces", {"name": "a\n"}, 422, {"name"}),
    ("POST", "/workspaces", {"name": "   "}, 422, {"name"}),
    ("POST", "/workspaces", {"name": None}, 422, {"name"}),
    ("POST", "/workspaces", {"name": "a", "metadata": [1]}, 422, {"metadata"}),
    ("PUT", "/workspaces/{w}", {"name": "b"}, 200, {"name": "b"}),
    ("PUT", "/workspaces/{w}", {"metadata": {"a": {"b": "c"}}}, 200, {"metadata": {"a": {"b": "c"}}}),
    ("PUT", "/workspaces/{w}", {}, 422, {"body"}),
    ("PUT", "/workspaces/{w}", {"name": LONG}, 422, {"name"}),
    ("PUT", "/workspaces/wsp_01j5abcdefghjkmnpqrstvwxyz", {"name": "b"}, 404, None),
    ("GET", "/workspaces/{w}", None, 200, {"id": "{w}"}),
    ("GET", "/workspaces/..%2f", None, 404, None),
    ("DELETE", "/workspaces/{w}", None, 405, None),
]

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
TOOLS: list[Case] = [
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA}, 201, {"kind": "client", "timeout_seconds": 120}),
    (
        "POST",
        "/tools",
        {"name": "a" * 255, "parameters": SCHEMA, "timeout_seconds": 600},
        201,
        {"timeout_seconds": 600},
    ),
    ("POST", "/tools", {"name": "taken", "parameters": SCHEMA}, 422, {"name"}),
    ("POST", "/tools", {"name": "delegate_task", "parameters": SCHEMA}, 422, {"name"}),
    ("POST", "/tools", {"name": "set_chat_title", "parameters": SCHEMA}, 422, {"name"}),
    ("POST", "/tools", {"name": "Mail", "parameters": SCHEMA}, 422, {"name"}),
    ("POST", "/tools", {"name": "mail\n", "parameters": SCHEMA}, 422, {"name"}),
    ("POST", "/tools", {"name": "mail"}, 422, {"parameters"}),
    ("POST", "/tools", {"name": "mail", "parameters": {"type": "array"}}, 422, {"parameters"}),
    (
        "POST",
        "/tools",
        {"name": "mail", "parameters": SCHEMA | {"properties": {"to": {"type": "text", "$ref": "https://x/y"}}}},
        422,
        {"parameters.properties.to.type", "parameters.properties.to.$ref"},
    ),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA | {"title": "x" * 65536}}, 422, {"parameters"}),
    ("PUT", "/tools/taken", {"parameters": SCHEMA | {"items": 1}}, 422, {"parameters.items"}),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA, "kind": "server"}, 422, {"kind"}),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA, "user_id": "x", "y": 1}, 422, {"user_id", "y"}),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA, "timeout_seconds": 601}, 422, {"timeout_seconds"}),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA, "timeout_seconds": 0}, 422, {"timeout_seconds"}),
    ("POST", "/tools", {"name": "mail", "parameters": SCHEMA, "description": "x" * 65536}, 422, {"description"}),
    ("PUT", "/tools/taken", {"description": None, "timeout_seconds": 1}, 200, {"timeout_seconds": 1}),
    (
        "PUT",
        "/tools/taken",
        {"parameters": {"type": "object", "a": 1}},
        200,
        {"parameters": {"type": "object", "a": 1}},
    ),
    ("PUT", "/tools/taken", {}, 422, {"body"}),
    ("PUT", "/tools/taken", {"name": "other"}, 422, {"name"}),
    ("PUT", "/tools/absent", {"timeout_seconds": 1}, 404, None),
    ("GET", "/tools/taken", None, 200, {"name": "taken"}),
    ("GET", "/tools/absent", None, 404, None),
    ("DELETE", "/tools/absent", None, 404, None),
    ("DELETE", "/tools/taken", None, 204, None),
]

AGENT = {"name": "a", "system_prompt": "be", "mode": "primary"}
AGENTS: list[Case] = [
    ("POST", "/agents", AGENT, 201, {"model": None, "permissions": {}, "config": {}, "tools_enabled": []}),
    ("POST", "/agents", AGENT | {"model": "Pepper mini"}, 201, {"model": "Pepper mini"}),
    (
        "POST",
        "/agents",
        AGENT | {"tools_enabled": [{"name": "t", "x": [1]}]},
        201,
        {"tools_enabled": [{"name": "t", "x": [1]}]},
    ),
    ("POST", "/agents", AGENT | {"permissions": {"mail": "ask"}}, 201, {"permissions": {"mail": "ask"}}),
    ("POST", "/agents", {}, 422, {"name", "system_prompt", "mode"}),
    ("POST", "/agents", AGENT | {"name": "main"}, 422, {"name"}),
    ("POST", "/agents", AGENT | {"mode": "boss"}, 422, {"mode"}),
    ("POST", "/agents", AGENT | {"system_prompt": ""}, 422, {"system_prompt"}),
    ("POST", "/agents", AGENT | {"model": "gone"}, 422, {"model"}),
    ("POST", "/agents", AGENT | {"user_id": "usr_x"}, 422, {"user_id"}),
    ("POST", "/agents", AGENT | {"tools_enabled": ["t"]}, 422, {"tools_enabled.0"}),
    ("POST", "/agents", AGENT | {"tools_enabled": [{"title": "t"}]}, 422, {"tools_enabled"}),
    (
        "POST",
        "/agents",
        AGENT | {"external_tools_enabled": [{"name": "t"}, {"name": "t"}]},
        422,
        {"external_tools_enabled"},
    ),
    ("POST", "/agents", AGENT | {"config": {"a": [{"max_tokens": 1}]}}, 422, {"config"}),
    ("POST", "/agents", AGENT | {"permissions": []}, 422, {"permissions"}),
    ("POST", "/agents", AGENT | {"can_write_skills": 1}, 422, {"can_write_skills"}),
    ("PUT", "/agents/{m}", {"name": "new", "description": "d"}, 200, {"name": "new", "description": "d"}),
    ("PUT", "/agents/{m}", {"name": "member"}, 200, {"name": "member"}),
    ("PUT", "/agents/{m}", {"name": "main"}, 422, {"name"}),
    ("PUT", "/agents/{m}", {}, 422, {"body"}),
    ("PUT", "/agents/{m}", {"model": None, "can_write_skills": True}, 200, {"can_write_skills": True}),
    ("PUT", "/agents/{l}", {"mode": "subagent"}, 422, {"mode"}),
    ("PUT", "/agents/agt_01j5abcdefghjkmnpqrstvwxyz", {"name": "b"}, 404, None),
    ("GET", "/agents/{l}", None, 200, {"name": "main"}),
    ("DELETE", "/agents/{l}", None, 422, {"agent_id"}),
    ("DELETE", "/agents/agt_01j5abcdefghjkmnpqrstvwxyz", None, 404, None),
]

TEAM = {"name": "studio", "orchestrator_id": "{l}"}
MEMBER = {"agent_definition_id": "{m}"}
TEAMS: list[Case] = [
    ("POST", "/teams", TEAM, 201, {"members": [], "description": None}),
    ("POST", "/teams", TEAM | {"members": [MEMBER | {"role": "r"}]}, 201, {"orchestrator_id": "{l}"}),
    ("POST", "/teams", {}, 422, {"name", "orchestrator_id"}),
    ("POST", "/teams", TEAM | {"name": "main"}, 422, {"name"}),
    ("POST", "/teams", TEAM | {"user_id": "x"}, 422, {"user_id"}),
    ("POST", "/teams", TEAM | {"orchestrator_id": "{m}"}, 422, {"orchestrator_id"}),
    ("POST", "/teams", TEAM | {"orchestrator_id": "agt_x"}, 422, {"orchestrator_id"}),
    ("POST", "/teams", TEAM | {"members": [MEMBER, MEMBER]}, 422, {"members.1.agent_definition_id"}),
    ("POST", "/teams", TEAM | {"members": [{"agent_definition_id": "{l}"}]}, 422, {"members.0.agent_definition_id"}),
    ("POST", "/teams", TEAM | {"members": [{"agent_definition_id": "agt_x"}]}, 422, {"members.0.agent_definition_id"}),
    ("POST", "/teams", TEAM | {"members": [MEMBER | {"position": 1}]}, 422, {"members.0.position"}),
    ("POST", "/teams", TEAM | {"members": [MEMBER | {"user_id": "x"}]}, 422, {"members.0.user_id"}),
    ("POST", "/teams", TEAM | {"members": [MEMBER | {"role": LONG}]}, 422, {"members.0.role"}),
    ("POST", "/teams", TEAM | {"members": [MEMBER] * 101}, 422, {"members"}),
    ("PUT", "/teams/{t}", {"name": "new"}, 200, {"name": "new"}),
    ("PUT", "/teams/{t}", {"members": []}, 200, {"members": []}),
    ("PUT", "/teams/{t}", {}, 422, {"body"}),
    ("PUT", "/teams/{t}", {"orchestrator_id": "{m}"}, 422, {"orchestrator_id", "members.0.agent_definition_id"}),
    ("PUT", "/teams/team_01j5abcdefghjkmnpqrstvwxyz", {"name": "b"}, 404, None),
    ("DELETE", "/teams/team_01j5abcdefghjkmnpqrstvwxyz", None, 404, None),
    ("DELETE", "/teams/{t}", None, 204, None),
]

CHATS: list[Case] = [
    (
        "POST",
        "/workspaces/{w}/chats",
        {"team_id": "{t}"},
        201,
        {"team_id": "{t}", "title": None, "workspace_id": "{w}"},
    ),
    ("POST", "/workspaces/{w}/chats", {}, 422, {"team_id"}),
    ("POST", "/workspaces/{w}/chats", {"team_id": 1}, 422, {"team_id"}),
    ("POST", "/workspaces/{w}/chats", {"team_id": "team_x"}, 422, {"team_id"}),
    ("POST", "/workspaces/{w}/chats", {"team_id": "x" * 32}, 422, {"team_id"}),
    ("POST", "/workspaces/wsp_x/chats", {"team_id": "{t}"}, 404, None),
    ("GET", "/workspaces/wsp_x/chats", None, 404, None),
    ("GET", "/workspaces/{w}/chats?per_page=0", None, 422, {"per_page"}),
    ("GET", "/workspaces/{w}/chats?per_page=1001&before=" + "x" * 65, None, 422, {"per_page", "before"}),
    ("GET", "/workspaces/{w}/chats/cht_x", None, 404, None),
    ("PUT", "/workspaces/{w}/chats/cht_x", {"title": "mine"}, 405, None),
]

KEYS: list[Case] = [
    ("POST", "/api-keys", {"name": "k"}, 201, {"scopes": ["completions:write"], "revoked_at": None}),
    (
        "POST",
        "/api-keys",
        {"name": "k", "scopes": ["completions:write"], "expires_at": "never"},
        201,
        {"expires_at": None},
    ),
    ("POST", "/api-keys", {}, 422, {"name"}),
    ("POST", "/api-keys", {"name": "k", "scopes": []}, 422, {"scopes"}),
    ("POST", "/api-keys", {"name": "k", "scopes": ["root"]}, 422, {"scopes.0"}),
    ("POST", "/api-keys", {"name": "k", "expires_at": "2y"}, 422, {"expires_at"}),
    ("POST", "/api-keys", {"name": "k", "expires_at": None}, 422, {"expires_at"}),
    ("DELETE", "/api-keys/key_x", None, 404, None),
]


async def known(place: House) -> dict[str, str]:
    """A workspace, the leader, a member, and a team of both."""
    member = (await place.call("POST", "/agents", AGENT | {"name": "member", "mode": "subagent"})).data["id"]
    (leader,) = [agent["id"] for agent in (await place.call("GET", "/agents")).data if agent["name"] == "main"]
    body = {"name": "both", "orchestrator_id": leader, "members": [{"agent_definition_id": member}]}
    team = (await place.call("POST", "/teams", body)).data["id"]
    await place.call("POST", "/tools", {"name": "taken", "parameters": SCHEMA})
    return {"w": place.made.workspace_id, "m": member, "l": leader, "t": team}


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, known_id in names.items():
            value = value.replace("{" + name + "}", known_id)
        return value
    if isinstance(value, dict):
        return {key: filled(below, names) for key, below in value.items()}
    return [filled(below, names) for below in value] if isinstance(value, list) else value


def play(case: Case) -> None:
    method, path, body, status, expected = case

    async def work(place: House) -> None:
        names = await known(place)
        reply = await place.call(method, filled(path, names), filled(body, names))
        assert reply.status == status, reply.raw
        if isinstance(expected, set):
            assert set(reply.details) == expected
        elif expected is not None:
            wanted = filled(expected, names)
            assert {key: reply.data[key] for key in wanted} == wanted

    live(work)


def named(case: Case) -> str:
    return f"{case[0]} {case[1]} {case[3]} {str(case[2])[:40]}"


@requirement("A-WSP-1", "A-ERR-1", "A-OPS-2")
@pytest.mark.parametrize("case", WORKSPACES, ids=named)
def test_workspaces_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-TWL-1", "A-ERR-1")
@pytest.mark.parametrize("case", TOOLS, ids=named)
def test_client_tools_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-AGT-1", "A-ERR-1")
@pytest.mark.parametrize("case", AGENTS, ids=named)
def test_agents_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-TEAM-1", "A-ERR-1")
@pytest.mark.parametrize("case", TEAMS, ids=named)
def test_teams_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-CHT-1", "A-ERR-1")
@pytest.mark.parametrize("case", CHATS, ids=named)
def test_chats_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-KEY-1", "A-ERR-1")
@pytest.mark.parametrize("case", KEYS, ids=named)
def test_api_keys_keep_what_is_valid(case: Case) -> None:
    play(case)


@requirement("A-OPS-1")
def test_every_operation_of_the_row_resources_is_at_its_address() -> None:
    """An address that is there refuses a stranger with 401; one that is not answers 404."""
    later = ("Chat", "File", "Image", "Artifact", "ProviderWebhook", "Capabilities", "Wiki", "healthCheck", "getJwks")
    here = [row for row in operations() if not any(word in row[0] for word in later)]
    here += [row for row in operations() if row[0] in ("createChat", "listChats", "getChat")]

    async def work(place: House) -> None:
        for name, method, path in here:
            reply = await place.call(method, path.replace("{", "").replace("}", ""), key=None)
            assert reply.status == 401, name
        assert len(here) == 28

    live(work)


@requirement("A-ID-1", "A-OPS-2")
def test_what_init_made_is_there_and_every_id_has_its_prefix() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        chat = (await place.call("POST", f"/workspaces/{names['w']}/chats", {"team_id": place.made.team_id})).data
        tool = (await place.call("GET", "/tools")).data[0]
        key = (await place.call("GET", "/api-keys")).data[0]
        teams = {team["name"]: team for team in (await place.call("GET", "/teams")).data}
        assert teams["main"]["id"] == place.made.team_id
        assert [found["id"] for found in (await place.call("GET", "/workspaces")).data] == [place.made.workspace_id]
        assert chat["user_id"] == place.made.user_id
        ids = {"cht": chat["id"], "twl": tool["id"], "key": key["id"], "team": names["t"], "agt": names["m"]}
        for prefix, value in ids.items():
            assert is_id(value, prefix) and value == value.lower()

    live(work)


@requirement("A-TEAM-1")
def test_members_keep_their_order_and_follow_their_agents() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        made = [
            (await place.call("POST", "/agents", AGENT | {"name": name, "mode": "subagent"})).data["id"]
            for name in ("c", "a", "b")
        ]
        members = [{"agent_definition_id": agent, "role": f"r{index}"} for index, agent in enumerate(made)]
        team = (await place.call("PUT", f"/teams/{names['t']}", {"members": members})).data
        assert [(m["name"], m["position"], m["role"]) for m in team["members"]] == [
            ("c", 0, "r0"),
            ("a", 1, "r1"),
            ("b", 2, "r2"),
        ]
        await place.call("PUT", f"/agents/{made[1]}", {"name": "renamed"})
        again = (await place.call("GET", f"/teams/{names['t']}")).data
        assert [member["name"] for member in again["members"]] == ["c", "renamed", "b"]

    live(work)


@requirement("A-AGT-2", "A-TEAM-2")
def test_deletions_take_what_they_say_and_refuse_the_rest() -> None:
    async def work(place: House) -> None:
        names = await known(place)
        assert (await place.call("DELETE", f"/agents/{names['m']}")).status == 204
        assert (await place.call("GET", f"/teams/{names['t']}")).data["members"] == []
        assert (
            (await place.call("DELETE", f"/agents/{names['l']}"))
            .details["agent_id"][0]
            .startswith("It leads both, main")
        )
        await place.call("POST", f"/workspaces/{names['w']}/chats", {"team_id": names["t"]})
        assert (await place.call("DELETE", f"/teams/{names['t']}")).status == 422
        assert (await place.call("DELETE", "/tools/taken")).status == 204
        assert (await place.call("GET", "/tools")).data == []

    live(work)


@requirement("A-AGT-1", "A-TEAM-1")
def test_names_that_differ_only_in_form_are_one_name() -> None:
    async def work(place: House) -> None:
        assert (await place.call("POST", "/agents", AGENT | {"name": "caff\u00e8"})).status == 201
        assert set((await place.call("POST", "/agents", AGENT | {"name": "caffe\u0300"})).details) == {"name"}

    live(work)


@requirement("A-CHT-2")
def test_a_list_of_chats_goes_on_where_it_says_until_its_end() -> None:
    async def work(place: House) -> None:
        path = f"/workspaces/{place.made.workspace_id}/chats"
        made = [(await place.call("POST", path, {"team_id": place.made.team_id})).data["id"] for _ in range(5)]
        seen: list[str] = []
        address: str | None = f"{path}?per_page=2"
        while address:
            page = await place.call("GET", address)
            seen += [chat["id"] for chat in page.data]
            address = page.json["links"]["next"]
        assert seen == sorted(made, reverse=True)
        assert (await place.call("GET", path)).json["links"] == {"next": None}

    live(work)


@requirement("A-MOD-1", "A-AGT-1")
def test_models_say_what_can_be_chosen_and_until_when() -> None:
    from crocevia.core.catalogue import ModelSpec, Prices
    from crocevia.runtime.control.apply import apply
    from crocevia.runtime.control.declarations import Declaration

    models = (
        ModelSpec(name="old", engine="embedded", deprecated=True, sunset_at="2999-01-01T00:00:00Z"),
        ModelSpec(name="gone", engine="embedded", sunset_at="2000-01-01T00:00:00+01:00"),
        ModelSpec(name="priced", engine="embedded", prices=Prices(input=5, output=25), context_window=9),
    )

    async def work(place: House) -> None:
        apply(place.control.home, Declaration(models=models))
        await place.control.catalogue.refresh()
        listed = (await place.call("GET", "/models")).json
        entries = {entry["id"]: entry for entry in listed["data"]}
        assert set(entries) == {"Pepper mini", "old", "priced", place.made.team_id}
        assert (entries["old"]["deprecated"], entries["old"]["sunset_at"]) == (True, "2999-01-01T00:00:00Z")
        assert entries["priced"]["pricing"] == {"prompt": "0.000005", "completion": "0.000025"}
        assert listed["defaults"] == {"orchestrator": "Pepper mini", "subagent": "Pepper mini"}
        assert (await place.call("POST", "/agents", AGENT | {"model": "gone"})).status == 422
        assert (await place.call("POST", "/agents", AGENT | {"model": "old"})).status == 201

    live(work)
