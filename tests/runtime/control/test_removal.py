"""What is declared goes when it is taken away, unless something else needs it; then it says what."""

from __future__ import annotations

import pytest

from crocevia.core.catalogue import AgentSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.runtime.control.init import Initialised
from crocevia.runtime.control.removal import remove
from crocevia.storage import agents, chats, meta, teams
from crocevia.storage.database import Transaction, immediate
from crocevia.storage.home import Home


def _helper(tx: Transaction, user_id: str) -> str:
    """An agent that works alone; the id of the team that it makes up."""
    agents.declare(tx, user_id, AgentSpec(name="helper", mode="primary", system_prompt="Help."), 0.0)
    agent_id = agents.find_named(tx, user_id, "helper")
    assert agent_id is not None
    return teams.implicit(tx, user_id, agent_id, "helper", 0.0)


def test_an_agent_takes_the_team_with_it_that_it_makes_up_alone(home: Home, made: tuple[Home, Initialised]) -> None:
    user_id = made[1].user_id
    with immediate(home.database) as tx:
        alone, before = _helper(tx, user_id), meta.revision(tx)
        assert remove(tx, "agents", "helper").name == "helper"
        assert agents.find_named(tx, user_id, "helper") is None
        assert teams.find(tx, user_id, alone) is None
        assert meta.revision(tx) == before + 1


def test_an_agent_with_chats_of_its_own_stays(home: Home, made: tuple[Home, Initialised]) -> None:
    user_id, workspace_id = made[1].user_id, made[1].workspace_id
    with immediate(home.database) as tx:
        chats.add(tx, user_id, workspace_id, _helper(tx, user_id), 0.0)
        with pytest.raises(GatewayError) as failure:
            remove(tx, "agents", "helper")
        assert failure.value.code is Code.CONFLICT
        assert "helper" in str(failure.value.message.details)
        assert agents.find_named(tx, user_id, "helper") is not None


@pytest.mark.parametrize(
    ("table", "name", "by"),
    [("engines", "embedded", "Pepper mini"), ("models", "Pepper mini", "default"), ("agents", "main", "main")],
)
def test_what_is_needed_stays_and_says_by_whom(home: Home, table: str, name: str, by: str) -> None:
    with immediate(home.database) as tx:
        with pytest.raises(GatewayError) as failure:
            remove(tx, table, name)
        assert failure.value.code is Code.CONFLICT
        assert by in str(failure.value.message.details)


def test_everything_goes_in_the_order_of_need(home: Home, made: tuple[Home, Initialised]) -> None:
    with immediate(home.database) as tx:
        for table, name in [
            ("teams", "main"),
            ("agents", "main"),
            ("projects", "default"),
            ("models", "Pepper mini"),
            ("engines", "embedded"),
        ]:
            assert remove(tx, table, name).name == name
        assert not agents.declared(tx, made[1].user_id)
