"""The house agent keeps the three rules of the tool loop, and says clearly what went wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.pepper_server import Pepper, delta, done, pepper, stream, tool_call
from tests.live import clean_env, free_port

PROGRAM = Path(__file__).parents[2] / "examples" / "house_agent.py"
STATUS = stream(delta("Let me "), delta("look. è🧭"), tool_call("get_home_status"), done("tool_use", {"type": "x"}))
FINAL = stream(delta("It is 19.5 degrees."), done("end_turn"))


def house(url: str, *arguments: str, key: str = "secret-key") -> subprocess.CompletedProcess[str]:
    env = clean_env() | {"CROCEVIA_URL": url, "CROCEVIA_PROJECT": "home", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error", str(PROGRAM), *arguments]
    if key:
        env["CROCEVIA_PROJECT_KEY"] = key
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)


def sent(server: Pepper, which: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = server.requests[which][1]["messages"]
    return messages


def test_a_question_goes_through_a_tool_to_an_answer() -> None:
    with pepper(STATUS, FINAL) as server:
        ran = house(server.url)
    assert ran.returncode == 0, ran.stderr
    assert "It is 19.5 degrees." in ran.stdout and "get_home_status() -> " in ran.stdout
    assert "rounds 2, tokens in 50, out 10" in ran.stdout
    headers, body = server.requests[0]
    assert (headers["X-Pepper-Key"], headers["X-Pepper-Project"], body["path"]) == ("secret-key", "home", "/agent")


def test_the_answer_goes_back_as_one_message_word_for_word() -> None:
    with pepper(STATUS, FINAL) as server:
        house(server.url, "and now?")
    question, assistant, result = sent(server, 1)
    assert question == {"role": "user", "content": "and now?"}
    assert assistant == {
        "role": "assistant",
        "content": "Let me look. è🧭",
        "tool_calls": [{"id": "toolu_1", "name": "get_home_status", "arguments": {}}],
        "blocchi": [{"type": "x"}],
    }
    assert (result["role"], result["tool_call_id"]) == ("tool", "toolu_1")


def results(*arguments: str) -> list[object]:
    calls = stream(
        tool_call("set_climate", "a", target="salone", action="off"),
        tool_call("set_climate", "b", target="garden", action="off"),
        tool_call("fly", "c"),
        tool_call("get_home_status", "d"),
        done("tool_use"),
    )
    with pepper(calls, FINAL) as server:
        assert house(server.url, *arguments).returncode == 0
    given = sent(server, 1)[2:]
    assert [message["tool_call_id"] for message in given] == ["a", "b", "c", "d"]
    assert sent(server, 1)[1]["content"] is None
    return [json.loads(str(message["content"])) for message in given]


def test_every_call_gets_its_result_and_what_needs_a_confirmation_waits() -> None:
    first, second, unknown, status = results()
    assert first == second == {"status": "in_attesa_conferma"}
    assert "error" in unknown  # type: ignore[operator]
    assert status["climate"]["salone"] == "on"  # type: ignore[index]


def test_yes_confirms_beforehand() -> None:
    first, second, _, status = results("--yes")
    assert first == {"ok": True, "target": "salone", "climate": "off"}
    assert "error" in second  # type: ignore[operator]
    assert status["climate"]["salone"] == "off"  # type: ignore[index]


def test_it_stops_after_eight_rounds() -> None:
    with pepper(STATUS) as server:
        ran = house(server.url)
    assert (ran.returncode, len(server.requests)) == (1, 8)
    assert "8 rounds" in ran.stderr


BROKEN = [
    (
        (429, {"Retry-After": "12"}, b'{"error": {"code": "troppe_richieste", "message": "Troppe."}}'),
        "The server answered 429, troppe_richieste: Troppe. (try again in 12 s)",
    ),
    ((502, {}, b"<html>"), "The server answered 502, Bad Gateway"),
    (stream(delta("Half"), ("error", {"code": "errore_ai", "message": "Guasto."})), "errore_ai: Guasto."),
    (stream(delta("Half")), "closed before the answer was complete"),
]


@pytest.mark.parametrize(("answer", "said"), BROKEN)
def test_a_failure_is_said_in_one_line(answer: tuple[int, dict[str, str], bytes], said: str) -> None:
    with pepper(answer) as server:
        ran = house(server.url)
    assert ran.returncode == 1
    assert said in ran.stderr and len(ran.stderr.splitlines()) == 1


def test_a_server_that_is_not_there_is_said_with_what_to_do() -> None:
    ran = house(f"http://127.0.0.1:{free_port()}")
    assert ran.returncode == 1 and "make run" in ran.stderr


def test_a_missing_key_is_said_with_where_it_was_printed() -> None:
    ran = house("http://127.0.0.1:1", key="")
    assert ran.returncode == 1 and "CROCEVIA_PROJECT_KEY" in ran.stderr and "make run" in ran.stderr
