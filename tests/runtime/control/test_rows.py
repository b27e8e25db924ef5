"""What the API keeps and what `crocevia apply` and `export` make of the same rows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.core.catalogue import AgentSpec, ModelSpec, TeamSpec
from crocevia.core.declared import Problem
from crocevia.runtime.control import agents, models, teams, workspaces
from crocevia.runtime.control.apply import apply, export
from crocevia.runtime.control.checks import check_value
from crocevia.runtime.control.context import MOST
from crocevia.runtime.control.declarations import Declaration
from crocevia.storage import workspaces as rows
from tests.doors.atp.house import House, live

FIELDS: dict[str, Any] = {"name": "made", "system_prompt": "be", "mode": "subagent"}


def test_an_agent_of_the_api_is_exported_with_all_that_its_owner_keeps() -> None:
    async def work(place: House) -> None:
        tools = [{"name": "read_wiki", "note": 1}]
        rules = {"mail": "ask", "theirs": "deny"}
        await agents.create(place.control, place.ada.id, FIELDS | {"tools_enabled": tools, "permissions": rules})
        found = {agent.name: agent for agent in export(place.control.home).agents}["made"]
        assert found == AgentSpec(
            name="made",
            system_prompt="be",
            tools=({"name": "read_wiki", "note": 1},),
            permissions={"mail": "ask", "theirs": "deny"},
        )

    live(work)


def test_declared_agents_and_teams_are_the_users_own() -> None:
    async def work(place: House) -> None:
        declaration = Declaration(
            agents=(AgentSpec(name="b", tools=("x",)), AgentSpec(name="a")),
            teams=(TeamSpec(name="main", orchestrator="main", members=("b", "a")),),
        )
        apply(place.control.home, declaration)
        (team,) = await teams.listed(place.control, place.ada.id)
        assert [member.name for member in team.members] == ["b", "a"]
        by_name = {agent.name: agent for agent in await agents.listed(place.control, place.ada.id)}
        assert by_name["b"].tools_enabled == [{"name": "x"}]

    live(work)


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("2027-05-21T00:00:00Z", True),
        ("2027-05-21T00:00:00.5+02:00", True),
        ("tomorrow", False),
        ("2027-05-21T00:00:00", False),
        ("2027-05-21", False),
        ("9999-99-99T00:00:00Z", False),
    ],
)
def test_a_sunset_is_a_moment_with_a_zone(text: str, fine: bool) -> None:
    problems: list[Problem] = []
    check_value("models", ModelSpec(name="m", engine="e", sunset_at=text), "models[0]", problems)
    expected = [] if fine else [("models[0].sunset_at", "moment_shape")]
    assert [(problem.place, problem.message.reason) for problem in problems] == expected


def test_the_default_model_is_one_that_stays() -> None:
    async def work(place: House) -> None:
        control = place.control
        assert models.default_model(control) == "Pepper mini"
        past = "2000-01-01T00:00:00Z"
        changed = (
            ModelSpec(name="Pepper mini", engine="embedded", sunset_at=past),
            ModelSpec(name="a", engine="embedded", deprecated=True),
            ModelSpec(name="b", engine="embedded"),
        )
        apply(control.home, Declaration(models=changed))
        await control.catalogue.refresh()
        assert models.default_model(control) == "b"

    live(work)


def test_nobody_has_more_than_the_most_of_a_kind() -> None:
    async def work(place: House) -> None:
        control, user = place.control, place.eve.id
        await control.database.write(lambda tx: [rows.add(tx, user, str(index), {}, 0.0) for index in range(MOST)])
        reply = await place.call("POST", "/workspaces", {"name": "one more"}, key=place.eve.key)
        assert (reply.status, set(reply.details)) == (422, {"name"})
        assert len(await workspaces.listed(control, user)) == MOST

    live(work)


def test_one_name_is_given_once_however_many_ask_at_the_same_time() -> None:
    async def work(place: House) -> None:
        asked = [agents.create(place.control, place.ada.id, FIELDS) for _ in range(20)]
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(not isinstance(one, Exception) for one in done) == 1

    live(work)
