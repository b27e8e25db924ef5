from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crocevia.cli import main
from crocevia.cli.first import address
from crocevia.config import ServerSettings
from crocevia.storage.home import Home, engine_keys, serving

SCRIPTED = "[[engines]]\nname = 'embedded'\nkind = 'scripted'\nscript = [{ say = [{ text = 'Tokyo it is' }] }]\n"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("CROCEVIA_", "OPENCLAW_", "LC_", "LANG")):
            monkeypatch.delenv(name)


def crocevia(*args: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(args), input=given)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    home = tmp_path_factory.mktemp("made") / "home"
    result = crocevia("init", "--json", "--home", str(home))
    assert result.exit_code == 0, result.output
    return home, json.loads(result.stdout)


@pytest.fixture
def home(tmp_path: Path, made: tuple[Path, dict[str, str]]) -> Path:
    return shutil.copytree(made[0], tmp_path / "home")


def declared(home: Path, text: str) -> Result:
    return crocevia("apply", "-", "--home", str(home), given=text)


def test_the_link_of_init_is_for_the_port_that_will_be_served(tmp_path: Path) -> None:
    result = crocevia("init", "--json", "--home", str(tmp_path / "home"), "--port", "9123", "--host", "::1")
    assert json.loads(result.stdout)["setup_url"].startswith("http://[::1]:9123/panel/setup?token=")


def test_init_prints_one_object_and_a_second_one_changes_nothing(made: tuple[Path, dict[str, str]], home: Path) -> None:
    assert made[1]["setup_url"].startswith("http://127.0.0.1:8111/")
    before = (home / "crocevia.db").read_bytes()
    again = crocevia("init", "--json", "--home", str(home))
    assert again.exit_code == 1
    assert again.stdout == ""
    assert "already initialised" in again.stderr
    assert "--home" in again.stderr, "says what to do"
    assert (home / "crocevia.db").read_bytes() == before


def test_init_for_a_person_shows_every_secret_exactly_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home).mkdir()
    (home / "crocevia.toml").write_text("[server]\nport = 9999")
    output = crocevia("init", "--home", str(home)).output
    for secret in re.findall(r"(?:pk_|op_|envai_sk_|token=)[\w.-]+", output):
        assert output.count(secret) == 1, secret
    assert output.count("http://127.0.0.1:9999/agent") == 2
    assert "get_home_status" in output
    assert re.search(r"^export CROCEVIA_PROJECT_KEY=pk_[\w-]{43}$", output, re.MULTILINE)


def test_apply_then_export_then_apply(home: Path) -> None:
    text = "[[projects]]\nname = 'mine'\nmodel = 'Pepper mini'\nkey = 'canary-given-key'\n"
    result = declared(home, text + "[[projects]]\nname = 'yours'\nmodel = 'Pepper mini'\n")
    assert result.exit_code == 0, result.output
    assert "canary-given-key" not in result.output, "a key that was given is known already"
    (key,) = re.findall(r"pk_[\w-]{43}", result.output)
    assert result.stdout.count(key) == 1
    exported = crocevia("export", "--home", str(home))
    assert key not in exported.stdout
    again = declared(home, exported.stdout)
    assert again.exit_code == 0
    assert again.stdout == ""
    assert "created" not in again.stderr and "updated" not in again.stderr


def test_a_refused_declaration_names_every_place_and_exits_with_2(home: Path) -> None:
    result = declared(home, "[server]\nport = 1\n[[projects]]\nname = 'p'\nmodle = 'canary'\n")
    assert result.exit_code == 2
    assert 'projects "p".modle' in result.stderr and "did you mean" in result.stderr
    assert "server: this table is a server setting: put it into crocevia.toml" in result.stderr
    assert "canary" not in result.output
    assert "Traceback" not in result.output


def test_a_script_that_cannot_be_played_is_refused_at_apply(home: Path) -> None:
    result = declared(home, "[[engines]]\nname = 'e'\nkind = 'scripted'\nscript = [{ sya = [] }]")
    assert result.exit_code == 2
    assert 'engines "e"' in result.stderr


@pytest.mark.parametrize("command", [("export",), ("apply", "-"), ("ask", "hello")])
def test_an_empty_home_is_said_with_what_to_do(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = crocevia(*command, "--home", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "crocevia init" in result.stderr
    assert not (tmp_path / "none").exists()


def test_settings_that_are_wrong_stop_serve_with_every_problem(home: Path) -> None:
    (home / "crocevia.toml").write_text("[[models]]\nname = 'x'\n[server]\nprot = 1")
    result = crocevia("serve", "--home", str(home))
    assert result.exit_code == 2
    assert "server.prot" in result.stderr and "crocevia apply FILE" in result.stderr


def test_a_second_server_on_a_home_is_refused_with_a_message(home: Path) -> None:
    with serving(Home(home)):
        result = subprocess.run(
            [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(home), "--port", "0"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert result.returncode == 1
    assert str(os.getpid()) in result.stderr
    assert "Traceback" not in result.stderr


def test_ask_starts_the_engine_here_when_nobody_serves(home: Path) -> None:
    assert declared(home, SCRIPTED).exit_code == 0
    result = crocevia("ask", "What is the capital of Japan?", "--home", str(home))
    assert (result.exit_code, result.stdout) == (0, "Tokyo it is\n")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("ask", " "), 2, "empty"),
        (("ask", "hi", "--url", "http://127.0.0.1:1"), 2, "CROCEVIA_PROJECT_KEY"),
        (("ask", "hi", "--url", "http://127.0.0.1:1", "--key", "canary-key"), 1, "cannot be reached"),
        (("ask", "hi", "--url", "ftp://x", "--key", "canary-key"), 2, "http://"),
        (("ask", "hi", "--project", "nobody"), 1, "no project 'nobody'"),
        (("apply", "missing.toml"), 2, "missing.toml"),
        (("serve", "--port", "70000"), 2, "65535"),
        (("serve", "--config", "missing.toml"), 2, "no such file"),
        (("model", "pull", "nothing-like-it"), 1, "nothing-like-it"),
        (("model", "pull", "x", "--quality"), 2, "--quality"),
        (("frobnicate",), 2, "No such command"),
    ],
)
def test_a_mistake_is_one_clear_line_and_a_code(home: Path, args: tuple[str, ...], code: int, said: str) -> None:
    place = () if args == ("frobnicate",) else ("--home", str(home))
    result = crocevia(*args, *place)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output and "canary-key" not in result.output


def test_a_damaged_database_is_said_without_a_traceback(home: Path) -> None:
    (home / "crocevia.db").write_bytes(b"not a database at all, but long enough to be read as one" * 100)
    for command in (("export",), ("apply", "-"), ("serve", "--port", "0"), ("doctor",), ("init",)):
        result = crocevia(*command, "--home", str(home), given="")
        assert result.exit_code == 1, (command, result.output)
        assert "cannot be read" in result.output, command
        assert "Traceback" not in result.output


def test_doctor_says_ok_line_by_line(home: Path) -> None:
    declared(home, SCRIPTED)
    result = crocevia("doctor", "--home", str(home))
    assert result.exit_code == 0, result.output
    assert {line.split()[1] for line in result.stdout.splitlines() if line.startswith("ok")} >= {
        "settings",
        "keys",
        "store",
        "engine",
    }


def test_doctor_says_what_is_bad_and_what_to_do(home: Path) -> None:
    declared(home, "[[engines]]\nname = 'claude'\nkind = 'anthropic'\napi_key_env = 'CROCEVIA_TEST_NO_KEY'\n")
    (home / "keys" / "digest.secret").chmod(0o644)
    result = crocevia("doctor", "--home", str(home), "--url", "http://127.0.0.1:1", "--key", "canary-key")
    assert result.exit_code == 1
    assert "CROCEVIA_TEST_NO_KEY is not set" in result.stdout
    assert "digest.secret" in result.stdout and "chmod 600" in result.stdout
    assert "cannot be reached" in result.stdout
    assert result.stdout.count("→") >= 3
    assert "canary-key" not in result.output


def test_the_home_comes_from_the_option_then_the_environment(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROCEVIA_HOME", str(home))
    assert crocevia("export").exit_code == 0
    assert crocevia("export", "--home", str(tmp_path / "none")).exit_code == 1


def test_the_reader_is_spoken_to_in_italian_when_the_environment_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "it_IT.UTF-8")
    assert "già inizializzata" in crocevia("init", "--home", str(home)).stderr


def test_engine_keys_given_to_apply_end_in_a_closed_file(home: Path) -> None:
    result = declared(home, "[[engines]]\nname = 'c'\nkind = 'anthropic'\napi_key = 'canary-engine-key'\n")
    assert result.exit_code == 0
    assert "canary" not in result.output
    assert engine_keys(Home(home)) == {"c": "canary-engine-key"}
    assert (home / "keys" / "engines.json").stat().st_mode & 0o777 == 0o600
    assert b"canary" not in (home / "crocevia.db").read_bytes()


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (ServerSettings(), "http://127.0.0.1:8111"),
        (ServerSettings(host="0.0.0.0", port=1), "http://127.0.0.1:1"),
        (ServerSettings(host="::", port=1), "http://[::1]:1"),
        (ServerSettings(public_url="https://here.example/"), "https://here.example"),
    ],
)
def test_the_printed_address_is_one_that_can_be_called(server: ServerSettings, url: str) -> None:
    assert address(server) == url


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from crocevia.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in ('sqlalchemy', 'aiohttp', 'alembic', 'rich', 'uvicorn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "doctor" in done.stdout
