"""What is exported and applied is what was there; what a declaration does not say stays as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia.cli import main
from crocevia.core.catalogue import ProjectSpec
from crocevia.core.declared import Refused
from crocevia.core.texts import render
from crocevia.runtime.control import apply as control
from crocevia.runtime.control.declarations import parse, spell
from crocevia.storage import agents, declared, teams
from crocevia.storage.database import Transaction, immediate, snapshot
from crocevia.storage.home import Home
from crocevia.storage.teams import Member

pytestmark = pytest.mark.timeout(180)  # some hundreds of commits, each as slow as the disk
SEVERAL = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
anything = st.characters(exclude_categories=("Cs",))
texts = st.text(anything, max_size=20)
labels = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(str.strip)
labels |= st.sampled_from(["{", '{"name": "x"}', "[x]", " x ", '"', "a = b", "#", "è mia"])
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
tools = st.lists(
    st.builds(lambda name, more: more | {"name": name}, labels, st.just({}) | objects),
    max_size=3,
    unique_by=lambda tool: tool["name"],
)
agent_fields = st.fixed_dictionaries(
    {
        "description": st.none() | texts,
        "system_prompt": texts.filter(bool),
        "model": st.sampled_from([None, "Pepper mini"]),
        "mode": st.sampled_from(["primary", "subagent"]),
        "tools_enabled": tools,
        "external_tools_enabled": tools,
        "permissions": st.dictionaries(labels, st.sampled_from(["allow", "ask", "deny"]), max_size=3),
        "can_write_knowledge": st.booleans(),
        "can_write_skills": st.booleans(),
        "config": objects,
    }
)


def clear(tx: Transaction, user: str) -> None:
    for team in teams.listed(tx, user, 100):
        teams.drop(tx, team.id)
    for agent in agents.listed(tx, user, 100):
        agents.drop(tx, agent.id)


def state(home: Home) -> control.DeclaredState:
    with snapshot(home.database) as tx:
        return control.load_state(tx)


def rows(home: Home) -> list[dict[str, Any]]:
    """Agents and teams as their owner sees them, without what tells one making of them from another."""
    with snapshot(home.database) as tx:
        user = control.load_state(tx).user
        found = [msgspec.to_builtins(agent) for agent in agents.listed(tx, user, 100)]
        names = {agent["id"]: agent["name"] for agent in found}
        for team in teams.listed(tx, user, 100):
            shown = msgspec.to_builtins(team)
            shown["orchestrator_id"] = names[shown["orchestrator_id"]]
            found.append(shown | {"members": [(member["name"], member["role"]) for member in shown["members"]]})
    return sorted(
        ({k: v for k, v in row.items() if k not in ("id", "user_id", "created_at", "updated_at")} for row in found),
        key=lambda row: ("members" in row, row["name"]),
    )


@SEVERAL
@given(
    fields=st.lists(agent_fields, min_size=1, max_size=3),
    names=st.lists(labels, min_size=4, max_size=4, unique=True),
    described=st.none() | texts,
    roles=st.lists(st.none() | labels, min_size=3, max_size=3),
)
def test_whatever_owners_made_comes_back_whole(
    home: Home, fields: list[dict[str, Any]], names: list[str], described: str | None, roles: list[str | None]
) -> None:
    user = state(home).user
    fields[0]["mode"] = "primary"
    with immediate(home.database) as tx:
        clear(tx, user)
        made = [agents.add(tx, user, {"name": name, **some}, 1.0) for name, some in zip(names, fields, strict=False)]
        members = tuple(
            Member(agent_id=agent.id, name=agent.name, role=role) for agent, role in zip(made[1:], roles, strict=False)
        )
        teams.add(tx, user, names[3], described, made[0].id, members, 1.0)
    before, text = rows(home), spell(control.export(home))
    again = control.apply(home, parse(text.encode()))
    assert {change.what for change in again.changes} == {"unchanged"}
    with immediate(home.database) as tx:
        clear(tx, user)
    control.apply(home, parse(text.encode()))
    assert rows(home) == before
    assert spell(control.export(home)) == text


def numbers_or_none(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


money = st.floats(0.001, 1e6)
counts = st.integers(1, 10**9)
projects = st.builds(
    ProjectSpec,
    name=st.just("p"),
    model=st.just("Pepper mini"),
    mode=st.sampled_from(["standard", "agent"]),
    hourly_limit=numbers_or_none(counts),
    daily_budget_usd=numbers_or_none(money),
    max_concurrency=numbers_or_none(counts),
    timezone=st.sampled_from(["UTC", "Europe/Rome"]),
    keep_texts_days=st.integers(0, 1000),
)
FIELDS = tuple(name for name in ProjectSpec.__struct_fields__ if name not in ("name", "model"))


@SEVERAL
@given(before=projects, after=projects, said=st.sets(st.sampled_from(FIELDS)), unset=st.sets(st.sampled_from(FIELDS)))
def test_what_is_not_said_stays_and_what_is_unset_is_the_default(
    home: Home, before: ProjectSpec, after: ProjectSpec, said: set[str], unset: set[str]
) -> None:
    with immediate(home.database) as tx:
        declared.save(tx, before, 1.0)
    written = msgspec.to_builtins(after)
    given_fields = {name: written[name] for name in said - unset if name in written}
    entry = {"name": "p", **given_fields, "unset": sorted(unset)}
    lines = "\n".join(f"{name} = {msgspec.json.encode(value).decode()}" for name, value in entry.items())
    control.apply(home, parse(f"[[projects]]\n{lines}\n".encode()))
    fresh = ProjectSpec(name="p", model="Pepper mini")
    for name in FIELDS:
        expected = after if name in given_fields else fresh if name in unset else before
        assert getattr(state(home).projects["p"], name) == getattr(expected, name), name


def test_an_entry_may_say_one_thing_alone_and_each_change_is_printed(home: Home) -> None:
    whole = '[[projects]]\nname = "p"\nmodel = "Pepper mini"\nhourly_limit = 5\npermissions = { documents = true }\n'
    control.apply(home, parse(whole.encode()))
    text = '[[projects]]\nname = "p"\ndaily_budget_usd = 2.5\nunset = ["hourly_limit"]\n'
    done = CliRunner().invoke(main, ["apply", "-", "--home", str(home.path)], input=text, catch_exceptions=False)
    assert done.exit_code == 0
    spec = state(home).projects["p"]
    assert (spec.hourly_limit, spec.daily_budget_usd, spec.permissions.documents) == (None, 2.5, True)
    said = [line.strip() for line in done.output.splitlines()]
    assert "daily_budget_usd: its default → 2.5" in said
    assert "hourly_limit: 5 → its default" in said


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('unset = ["model"]', 'projects "p".unset'),
        ('unset = ["hourly_limti"]', 'projects "p".unset'),
        ('hourly_limit = 5\nunset = ["hourly_limit"]', 'projects "p".unset'),
        ('unset = "hourly_limit"', 'projects "p".unset'),
        ("unset = [1]", 'projects "p".unset'),
        ("hourly_limit = 5", 'projects "p".model'),
    ],
)
def test_what_cannot_be_unset_or_is_not_whole_is_refused(home: Home, line: str, place: str) -> None:
    with pytest.raises(Refused) as caught:
        control.apply(home, parse(f'[[projects]]\nname = "p"\n{line}\n'.encode()))
    assert [problem.place for problem in caught.value.problems] == [place]
    assert all(render(problem.message, language) for problem in caught.value.problems for language in ("en", "it"))


def test_a_rule_that_is_none_is_exported_as_the_no_that_it_means(home: Home) -> None:
    with immediate(home.database) as tx:
        user = control.load_state(tx).user
        clear(tx, user)
        fields: dict[str, Any] = {"description": None, "system_prompt": "x", "model": None, "mode": "primary"}
        lists: dict[str, Any] = {"tools_enabled": [], "external_tools_enabled": [], "config": {}}
        flags = {"can_write_knowledge": False, "can_write_skills": False}
        odd = {"write": "Deny", "read": {"mode": "deny"}, "list": "ask"}
        agents.add(tx, user, {"name": "a", **fields, **lists, **flags, "permissions": odd}, 1.0)
    assert state(home).agents["a"].permissions == {"write": "deny", "read": "deny", "list": "ask"}
