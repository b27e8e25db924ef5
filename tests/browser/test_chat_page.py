"""The example pages in Chromium, on a real server: page -> its server -> Crocevia, and no key reaches the page."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crocevia.panel.samples import chat_server
from tests.browser.conftest import Watch
from tests.browser.test_kit import finished, say
from tests.live import LiveServer, live_server

pytestmark = pytest.mark.browser

EXAMPLES = Path(__file__).parents[2] / "examples" / "chat_page"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@contextmanager
def example(server: LiveServer, name: str, **env: str) -> Iterator[str]:
    """Its address, as it printed it."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    process = subprocess.Popen(
        command, env=server.env | {"PORT": "0"} | env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=10)
        process.stdout.close()


def watched(watch: Watch, url: str, secret: str) -> Any:
    """The page, with a check that nothing it receives holds the key."""
    page = watch.page
    leaks: list[str] = []
    page.on("response", lambda answer: secret in str(answer.all_headers()) and leaks.append(answer.url))
    page.on("requestfinished", lambda asked: secret in str(asked.all_headers()) and leaks.append(asked.url))
    page.goto(url)
    page.leaks = leaks
    return page


@pytest.mark.parametrize("name", ["server.py", "server_with_tools.py"])
def test_a_page_of_ones_own_talks_to_the_model(
    server: LiveServer, page_watch: Watch, axe: Callable[[Any], list[str]], name: str
) -> None:
    with example(server, name) as url:
        page = watched(page_watch, url, str(server.secrets["project_key"]))
        page.wait_for_selector(".pc-nome:visible")
        for count, said in enumerate(("one", "two"), 1):
            say(page, said)
            finished(page, count)
        assert page.locator(".pc-risposta .pc-testo").all_inner_texts() == ["You said: one", "You said: two"]
        assert axe(page) == []
        page.click(".pc-nuova")
        page.wait_for_selector(".pc-invito:visible")
        page_watch.check()
        assert page.leaks == [] and str(server.secrets["project_key"]) not in page.content()


@pytest.mark.parametrize(("button", "result"), [("Approve", '"light"'), ("Deny", "said no")])
def test_a_tool_runs_when_it_was_approved_and_only_then(
    server: LiveServer, page_watch: Watch, button: str, result: str
) -> None:
    with example(server, "server_with_tools.py") as url:
        page = watched(page_watch, url, str(server.secrets["project_key"]))
        say(page, "call set_light")
        page.wait_for_selector("text=waiting for approval")
        page.click(f"button:has-text('{button}')")
        page.wait_for_selector(f".pc-risposta .pc-testo:has-text('{result}')")
        finished(page, 2)
        assert page.locator(".pc-tool-ok").count() == (1 if button == "Approve" else 0)
        page_watch.check()


def test_the_shorter_example_is_what_it_says() -> None:
    source = (EXAMPLES / "server.py").read_text(encoding="utf-8")
    assert "in sixty lines" in source and source.count("\n") <= 60


def test_an_answer_is_part_of_the_conversation_and_a_page_of_another_site_is_not(server: LiveServer) -> None:
    with example(server, "server.py") as url:
        said = {"tipo": "messaggio", "conversazione": "c1", "testo": "one", "allegati": []}
        for _ in range(2):
            status, text = post(url, said)
            assert status == 200 and "event: done" in text
        assert post(url, said, "text/plain")[0] == 415
        assert post(url, said | {"tipo": "riprendi"})[0] == 404
        assert post(url, said | {"tipo": "nuova"})[0] == 204
        assert post(url, said | {"allegati": [{"tipo": "documento", "nome": "a.pdf", "dati": "JVBERi0="}]})[0] in (
            403,
            400,
        )


def post(url: str, body: dict[str, Any], kind: str = "application/json") -> tuple[int, str]:
    request = urllib.request.Request(f"{url}/chat", json.dumps(body).encode(), {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_the_page_that_the_panel_offers_runs_as_it_is_pasted(
    server: LiveServer, page_watch: Watch, axe: Callable[[Any], list[str]], tmp_path: Path
) -> None:
    program = tmp_path / "chat.py"
    program.write_text(chat_server(server.url, str(server.secrets["project"])).code, encoding="utf-8")
    with example(server, str(program)) as url:
        page = watched(page_watch, url, str(server.secrets["project_key"]))
        for count, said in enumerate(("one", "two"), 1):
            say(page, said)
            finished(page, count)
        assert page.locator(".pc-risposta .pc-testo").all_inner_texts() == ["You said: one", "You said: two"]
        assert axe(page) == []
        page_watch.check()
        assert page.leaks == [] and str(server.secrets["project_key"]) not in page.content()


def test_a_wrong_key_is_a_sentence_not_a_broken_page(server: LiveServer, page_watch: Watch) -> None:
    page_watch.allow.append("401")
    with example(server, "server.py", CROCEVIA_PROJECT_KEY="wrong") as url:
        page_watch.page.goto(url)
        say(page_watch.page, "one")
        page_watch.page.wait_for_selector("[role=alert]:visible")
        page_watch.check()
