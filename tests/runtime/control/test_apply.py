from __future__ import annotations

import re
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia.core.declared import Refused
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.texts import render
from crocevia.runtime.catalogue import load
from crocevia.runtime.control import apply as control
from crocevia.runtime.control.declarations import Declaration, parse, spell
from crocevia.runtime.control.init import init
from crocevia.runtime.control.toml import write
from crocevia.storage import meta
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home, engine_keys
from tests.runtime.control.bad_declarations import BAD

WHOLE = """
[[engines]]
name = "claude"
kind = "anthropic"
api_key = "sk-canary-engine-1"

[[engines]]
name = "fake"
kind = "scripted"
script = [{ when = { contains = "ciao" }, say = [{ text = "salve\\n\\"qui\\"" }] }, { say = [{ text = "…" }] }]

[[models]]
name = "Pepper 7"
engine = "claude"
upstream = "claude-opus-5-5"
reserve = "Pepper 6"
reasoning = "always"
novelty = "Thinks before it answers."
instructions = "Sei Pepper.\\nRispondi in \\\\ italiano \\"sempre\\"."
context_window = 200000
prices = { input = 5, output = 25.5 }

[[models]]
name = "Pepper 6"
engine = "claude"
upstream = "claude-haiku-5"
max_pages = 100

[[projects]]
name = "pepper-home"
key = "canary-project-key"
mode = "agent"
model = "Pepper 7"
hourly_limit = 200
daily_budget_usd = 2.0
soft_threshold_usd = 1.5
timezone = "Europe/Rome"
permissions = { documents = true }

[[projects]]
name = "second"
model = "Pepper 6"

[[recipes]]
encode = "riassunto"
instructions = "Riassumi."

[[agents]]
name = "researcher"
model = "Pepper 7"
system_prompt = "Look things up."
tools = ["read_wiki", "mcp:files"]
permissions = { send_email = "ask" }

[[teams]]
name = "studio"
orchestrator = "main"
members = ["researcher"]
"""


def applied(home: Home, text: str) -> control.Applied:
    return control.apply(home, parse(text.encode()))


def refusal(home: Home, text: str) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        applied(home, text)
    return {problem.place: render(problem.message, "en") for problem in caught.value.problems}


def exported(home: Home) -> str:
    return spell(control.export(home))


def revision(home: Home) -> int:
    with snapshot(home.database) as tx:
        return meta.revision(tx)


def test_a_whole_declaration_is_taken_and_given_back(home: Home) -> None:
    before = revision(home)
    result = applied(home, WHOLE)
    assert {change.what for change in result.changes} == {"created"}
    assert result.revision == before + 1
    assert list(result.new_keys) == ["second"]
    tree = tomllib.loads(exported(home))
    declared = tomllib.loads(WHOLE)
    for table, entries in declared.items():
        secretless = [{k: v for k, v in entry.items() if k not in ("key", "api_key")} for entry in entries]
        assert all(entry in tree[table] for entry in secretless), table


def test_applying_the_same_again_changes_nothing(home: Home) -> None:
    applied(home, WHOLE)
    before, text = revision(home), exported(home)
    again = applied(home, WHOLE)
    assert {change.what for change in again.changes} == {"unchanged"}
    assert again.new_keys == {}
    assert (revision(home), exported(home)) == (before, text)


def test_an_export_applied_to_a_fresh_home_exports_the_same(home: Home, tmp_path: Path) -> None:
    applied(home, WHOLE)
    fresh = Home(tmp_path / "fresh")
    init(fresh, "http://127.0.0.1:8111")
    applied(fresh, exported(home))
    assert exported(fresh) == exported(home)


def test_an_absent_secret_keeps_the_stored_one_and_a_new_one_replaces_it(home: Home) -> None:
    applied(home, WHOLE)
    without = re.sub(r"(?m)^(api_key|key) = .*\n", "", WHOLE)
    assert {change.what for change in applied(home, without).changes} == {"unchanged"}
    assert engine_keys(home) == {"claude": "sk-canary-engine-1"}
    assert project_of(home, "pepper-home", "canary-project-key")
    result = applied(home, WHOLE.replace("sk-canary-engine-1", "sk-other-1").replace("canary-project-key", "other-key"))
    assert {(change.table, change.name) for change in result.changes if change.what == "updated"} == {
        ("engines", "claude"),
        ("projects", "pepper-home"),
    }
    assert engine_keys(home) == {"claude": "sk-other-1"}
    assert project_of(home, "pepper-home", "other-key")
    assert not project_of(home, "pepper-home", "canary-project-key")


def test_a_key_from_the_environment_takes_the_place_of_a_stored_one(home: Home) -> None:
    applied(home, WHOLE)
    applied(home, '[[engines]]\nname = "claude"\nkind = "anthropic"\napi_key_env = "SOME_KEY"')
    assert engine_keys(home) == {}
    with snapshot(home.database) as tx:
        catalogue = load(tx, home)
    assert catalogue.engine_key("claude", {"SOME_KEY": "x"}) == "x"
    assert catalogue.engine_key("claude", {}) is None


def project_of(home: Home, name: str, key: str) -> bool:
    with snapshot(home.database) as tx:
        owner = load(tx, home).owner_of(key.encode())
    return owner is not None and owner.name == name


def test_secrets_are_in_no_file_but_the_closed_ones(home: Home) -> None:
    result = applied(home, WHOLE)
    secrets = ["sk-canary-engine-1", "canary-project-key", *result.new_keys.values()]
    for path in home.path.rglob("*"):
        if path.is_file():
            found = [secret for secret in secrets if secret.encode() in path.read_bytes()]
            assert found == (["sk-canary-engine-1"] if path.parent == home.keys and path.suffix == ".json" else [])
    assert {oct(path.stat().st_mode & 0o777) for path in home.keys.iterdir()} == {"0o600"}
    assert home.keys.stat().st_mode & 0o777 == 0o700
    assert not any(secret in repr(result) + repr(parse(WHOLE.encode())) for secret in secrets)
    assert not any(secret in exported(home) for secret in secrets)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_declaration_is_refused_at_its_place_and_changes_nothing(home: Home, case: str) -> None:
    text, place, said = BAD[case]
    before = (exported(home), revision(home), engine_keys(home))
    good = (
        "\n[[recipes]]\nencode = 'good'\ninstructions = 'i'\n" if "TOML" not in place and "recipes" not in text else ""
    )
    found = refusal(home, text + good)
    assert said in found.get(place, ""), found
    assert (exported(home), revision(home), engine_keys(home)) == before


def test_every_problem_is_told_at_once_and_no_value_is_repeated(home: Home) -> None:
    text = """
    [[engines]]
    name = "e"
    kind = "canary-1"
    api_key = "canary key with blanks"
    [[models]]
    name = "m"
    engine = "embedded"
    max_pages = "canary-2"
    reasoning = "canary-3"
    [turns]
    """
    found = refusal(home, text)
    assert {'engines "e".kind', 'engines "e".api_key', 'models "m".max_pages', 'models "m".reasoning', "turns"} == set(
        found
    )
    assert "canary" not in str(found)


def test_a_broken_line_with_a_key_is_not_quoted(home: Home) -> None:
    assert "canary" not in str(refusal(home, "[[engines]]\napi_key = canary-key"))


def test_a_voice_cannot_change_under_a_project_that_uses_it(home: Home) -> None:
    applied(home, WHOLE)
    loud = "[[models]]\nname = 'Pepper 6'\nengine = 'claude'\nupstream = 'x'\nvoice_in_apps = true\n"
    found = refusal(home, loud + "[[recipes]]\nencode = 'new'\ninstructions = 'i'")
    assert "project uses" in found['models "Pepper 6".voice_in_apps']
    assert "new" not in exported(home)
    applied(home, loud + "[[projects]]\nname = 'second'\nmodel = 'Pepper 7'")
    assert "voice_in_apps = true" in exported(home)


def test_a_key_of_another_project_is_refused(home: Home) -> None:
    applied(home, WHOLE)
    found = refusal(home, "[[projects]]\nname = 'p'\nmodel = 'Pepper 6'\nkey = 'canary-project-key'")
    assert "another project" in found['projects "p".key']


def test_an_engine_that_cannot_be_built_is_refused(home: Home) -> None:
    def check(spec: Any) -> None:
        raise GatewayError(Reason.JSON_MALFORMED)

    with pytest.raises(Refused):
        control.apply(home, parse(b"[[engines]]\nname = 'e'\nkind = 'scripted'"), check_engine=check)


def test_nothing_is_applied_to_a_home_without_init(tmp_path: Path, home: Home) -> None:
    with sqlite3.connect(home.database) as connection:
        connection.execute("DELETE FROM meta")
    connection.close()
    with pytest.raises(GatewayError) as caught:
        control.apply(home, Declaration())
    assert caught.value.message.reason == "home_not_initialised"


def test_a_store_that_cannot_be_written_leaves_the_key_files_as_they_were(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(home, WHOLE)

    def fail(*args: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    original = control.apply_in

    def late(*args: Any, **kwargs: Any) -> control.Applied:
        original(*args, **kwargs)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(control, "apply_in", late)
    with pytest.raises(GatewayError) as caught:
        applied(home, WHOLE.replace("sk-canary-engine-1", "sk-lost-for-ever"))
    assert caught.value.code is Code.UNAVAILABLE
    assert engine_keys(home) == {"claude": "sk-canary-engine-1"}


words = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
values = st.recursive(
    st.one_of(words, st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False)),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(words, below, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(words, values, max_size=5))
def test_what_is_written_reads_back(entry: dict[str, Any]) -> None:
    text = write({"things": [entry, entry]})
    assert tomllib.loads(text) == {"things": [entry, entry]} or not entry


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    names=st.lists(
        st.text(st.characters(categories=("L", "N")), min_size=1, max_size=12), min_size=1, max_size=4, unique=True
    ),
    texts=words,
    pages=st.integers(1, 10**6),
    price=st.floats(0, 1e6),
    flags=st.booleans(),
)
def test_any_export_applies_and_exports_the_same(
    home: Home, names: list[str], texts: str, pages: int, price: float, flags: bool
) -> None:
    models = [
        {
            "name": name,
            "engine": "embedded",
            "instructions": texts,
            "max_pages": pages,
            "prices": {"input": price, "output": price / 3},
            "reserve": names[index - 1],
        }
        if index
        else {"name": name, "engine": "embedded"}
        for index, name in enumerate(names)
    ]
    agents = [{"name": name, "system_prompt": texts, "mode": "primary" if flags else "subagent"} for name in names]
    text = write({"models": models, "agents": agents, "recipes": [{"encode": names[0], "instructions": texts}]})
    applied(home, text)
    first = exported(home)
    again = applied(home, first)
    assert {change.what for change in again.changes} == {"unchanged"}
    assert exported(home) == first
