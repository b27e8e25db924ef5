from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.config import Settings, load, setting_paths
from crocevia.core.declared import SERVER_TABLES, Refused
from crocevia.core.texts import render


def loaded(home: Path, text: str = "", env: dict[str, str] | None = None, **flags: Any) -> Settings:
    (home / "crocevia.toml").write_text(text, encoding="utf-8")
    return load(home, environment=env or {}, flags={path.replace("__", "."): value for path, value in flags.items()})


def refusal(home: Path, text: str = "", env: dict[str, str] | None = None) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        loaded(home, text, env)
    return {problem.place: render(problem.message, "en") for problem in caught.value.problems}


def test_an_empty_home_has_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, environment={})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8111)
    assert settings.gateway.auth.mode == "token"
    assert not settings.gateway.http.endpoints.responses.enabled
    assert settings.turns.on_restart == "resume"
    assert settings.origin("server.port") == "default"


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    text = "[server]\nhost = '0.0.0.0'\nport = 1\npublic_url = 'https://here.example'"
    settings = loaded(tmp_path, text, {"CROCEVIA_SERVER__PORT": "2", "CROCEVIA_SERVER__HOST": "::1"}, server__port=3)
    assert (settings.server.public_url, settings.server.host, settings.server.port) == (
        "https://here.example",
        "::1",
        3,
    )
    paths = ("server.public_url", "server.host", "server.port", "log.level")
    assert [settings.origin(path) for path in paths] == ["file", "env", "flag", "default"]


def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[server]\nport = 1", server__port=None).origin("server.port") == "file"


def test_the_gateway_tree_keeps_the_names_of_its_specification(tmp_path: Path) -> None:
    text = """
    [gateway.http.endpoints.responses]
    enabled = true
    maxBodyBytes = 7
    files.pdf.maxPages = 2
    [gateway.auth.trustedProxy]
    allowLoopback = true
    """
    settings = loaded(tmp_path, text)
    responses = settings.gateway.http.endpoints.responses
    assert (responses.enabled, responses.max_body_bytes, responses.files.pdf.max_pages) == (True, 7, 2)
    assert settings.gateway.auth.trusted_proxy.allow_loopback
    assert settings.origin("gateway.http.endpoints.responses.files.pdf.maxPages") == "file"


@pytest.mark.parametrize(
    "name",
    [
        "CROCEVIA_GATEWAY__HTTP__ENDPOINTS__RESPONSES__MAX_BODY_BYTES",
        "CROCEVIA_GATEWAY__HTTP__ENDPOINTS__RESPONSES__MAXBODYBYTES",
    ],
)
def test_a_variable_may_be_spelled_with_or_without_underscores(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, env={name: "9"}).gateway.http.endpoints.responses.max_body_bytes == 9


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("on", True), ("off", False), ("0", False)])
def test_truth_in_the_environment(tmp_path: Path, text: str, value: bool) -> None:
    env = {"CROCEVIA_GATEWAY__HTTP__ENDPOINTS__RESPONSES__ENABLED": text}
    assert loaded(tmp_path, env=env).gateway.http.endpoints.responses.enabled is value


def test_lists_in_the_environment_are_comma_separated(tmp_path: Path) -> None:
    env = {"CROCEVIA_SERVER__TRUSTED_PROXIES": "10.0.0.1, 10.0.1.0/24"}
    assert loaded(tmp_path, env=env).server.trusted_proxies == ("10.0.0.1", "10.0.1.0/24")


def test_the_other_names_of_the_token_are_accepted_and_ours_win(tmp_path: Path) -> None:
    env = {"OPENCLAW_GATEWAY_TOKEN": "first-token", "OPENCLAW_GATEWAY_PASSWORD": "opensesame"}
    auth = loaded(tmp_path, env=env).gateway.auth
    assert (auth.token, auth.password) == ("first-token", "opensesame")
    assert loaded(tmp_path, env=env | {"CROCEVIA_GATEWAY__AUTH__TOKEN": "ours-wins"}).gateway.auth.token == "ours-wins"


def test_variables_that_are_not_settings_are_left_alone(tmp_path: Path) -> None:
    env = {"CROCEVIA_HOME": "/x", "CROCEVIA_PROJECT_KEY": "k", "CROCEVIA_URL": "u"}
    assert loaded(tmp_path, env=env) == loaded(tmp_path, env={})


def test_json5_with_the_same_tree_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "crocevia.json5").write_text("{server: {port: 5}, gateway: {auth: {mode: 'none'}}} // no token")
    settings = load(tmp_path, environment={})
    assert (settings.server.port, settings.gateway.auth.mode) == (5, "none")


BAD = {
    "a misspelt table": ("[sever]\nport = 1", "sever", "«server»"),
    "a misspelt field": ("[server]\nprot = 1", "server.prot", "«port»"),
    "a snake where a camel lives": ("[gateway.auth]\nrate_limit = 1", "gateway.auth.rate_limit", "«rateLimit»"),
    "a wrong type": ("[server]\nport = 'http'", "server.port", "whole number"),
    "a truth as a number": ("[server]\nport = true", "server.port", "whole number"),
    "a table as a value": ("server = 1", "server", "table"),
    "a port out of range": ("[server]\nport = 70000", "server.port", "65535"),
    "an endless timeout": ("[calls]\noverall_seconds = inf", "calls.overall_seconds", "more than 0"),
    "a choice that is none": ("[turns]\non_restart = 'maybe'", "turns.on_restart", "resume, fail"),
    "a declared table": ("[[models]]\nname = 'x'", "models", "crocevia apply"),
    "broken TOML": ("[server]\nport 1", "crocevia.toml", "line 2"),
    "a weak token": ("[gateway.auth]\ntoken = 'undefined'", "gateway.auth.token", "guess"),
    "a blank token": ("[gateway.auth]\ntoken = ' '", "gateway.auth.token", "guess"),
    "a password mode without one": ("[gateway.auth]\nmode = 'password'", "gateway.auth.password", "missing"),
    "origins": ("[origins]\nx = 'file'", "origins", "no such field"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_setting_is_refused_at_its_place(tmp_path: Path, case: str) -> None:
    text, place, said = BAD[case]
    found = refusal(tmp_path, text)
    assert said in found[place], found


def test_every_problem_is_told_at_once_and_no_value_is_repeated(tmp_path: Path) -> None:
    canary = "canary-3f9a"
    found = refusal(
        tmp_path,
        f"[server]\nport = '{canary}'\nhots = '{canary}'\n[turns]\non_restart = '{canary}'",
        {"CROCEVIA_LOG__LEVEL": canary, "CROCEVIA_SERVER__PRT": canary},
    )
    assert set(found) == {
        "server.port",
        "server.hots",
        "turns.on_restart",
        "CROCEVIA_LOG__LEVEL",
        "CROCEVIA_SERVER__PRT",
    }
    assert "CROCEVIA_SERVER__PORT" in found["CROCEVIA_SERVER__PRT"]
    assert canary not in str(found)


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        load(tmp_path, file=tmp_path / "other.toml", environment={})


def test_secrets_do_not_show_in_a_representation(tmp_path: Path) -> None:
    settings = loaded(tmp_path, env={"OPENCLAW_GATEWAY_TOKEN": "canary-token"})
    assert "canary-token" not in repr(settings)


def test_every_table_is_known_to_the_command_that_must_refuse_it() -> None:
    assert set(SERVER_TABLES) == {path.partition(".")[0] for path in setting_paths(Settings)}


@given(st.binary(max_size=60))
def test_whatever_the_file_holds_it_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "crocevia.toml").write_bytes(data)
    try:
        assert isinstance(load(home, environment={}), Settings)
    except Refused as refused:
        assert refused.problems


def test_the_defaults_are_a_value_that_reads_back(tmp_path: Path) -> None:
    settings = load(tmp_path, environment={})
    assert msgspec.convert(msgspec.to_builtins(settings), Settings) == settings
