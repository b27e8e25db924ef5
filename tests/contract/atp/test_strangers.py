"""Two users on one server: what is one's own, and what one may build upon. Every operation: test_strangers_walk.py."""

from __future__ import annotations

from tests.contract.atp.test_rows import AGENT, SCHEMA, known
from tests.contract.requirements import requirement
from tests.doors.atp.house import House, live


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
