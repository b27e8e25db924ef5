"""Nothing that the kit shows can run or load anything, even on a page whose policy allows everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Watch
from tests.browser.kit_site import Reply, Site, delta, done, event, kit_site, stream
from tests.browser.test_kit import finished, open_chat, say
from tests.kit.test_script import HOSTILE

pytestmark = pytest.mark.browser

RUNS = [
    "<img src=x onerror=ran()>",
    "<script>ran()</script>",
    "<svg/onload=ran()>",
    "<iframe srcdoc='<script>parent.ran()</script>'></iframe>",
    "<details open ontoggle=ran()>",
    "<style>@import url(http://127.0.0.1:1/x.css)</style>",
    "![x](http://127.0.0.1:1/x.png)",
    "[x](javascript:ran())",
    "[x](data:text/html,<script>opener.ran()</script>)",
    "<a href=javascript:ran() autofocus onfocus=ran()>x</a>",
    '"><input autofocus onfocus=ran()>',
    *HOSTILE,
]


@pytest.fixture
def site() -> Iterator[Site]:
    with kit_site() as running:
        running.strict = False
        running.before = "window.runs = 0; window.ran = window.alert = () => { window.runs += 1; };"
        running.options = {"funzioni": {"conferme": True, "lettura": True}}
        yield running


def as_delta(text: str) -> Reply:
    return stream(*[delta(letter) for letter in text], done())


def as_texts_around(text: str) -> Reply:
    """Tool name, arguments, action, model, novelty, error code."""
    return stream(
        delta("Ok."),
        event("tool_call", {"id": text, "name": text, "arguments": {text: text}}),
        event("pending", {"actions": [{"id": text, "name": text, "text": text, "arguments": {text: text}}]}),
        done(versione=text, novita=text),
    )


def as_error(text: str) -> Reply:
    return stream(delta("x"), event("error", {"code": text, "message": text}))


def as_refusal(text: str) -> Reply:
    body = json.dumps({"error": {"code": text, "message": text}}).encode()
    return Reply([body], 500, "application/json", {"Retry-After": "soon"})


@pytest.mark.parametrize("made", [as_delta, as_texts_around, as_error, as_refusal], ids=lambda made: made.__name__)
def test_what_arrives_never_runs_and_never_loads(site: Site, page_watch: Watch, made: Any) -> None:
    site.play = lambda body: made(body["testo"])
    page = open_chat(site, page_watch)
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for count, text in enumerate(RUNS, 1):
        page.evaluate("(text) => void chat.invia(text)", text)
        finished(page, count)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("runs") == 0
    assert [url for url in asked if not url.endswith("/chat")] == []
    tags = "script, img, iframe, object, embed, style, link, meta, base, input:not([type=file]), [onerror], [onload]"
    assert page.locator(".pepper-chat").locator(tags).count() == 0
    addresses = page.evaluate("[...document.querySelectorAll('.pepper-chat a')].map((one) => one.protocol)")
    assert set(addresses) <= {"http:", "https:"}


def test_a_stored_history_and_a_models_name_are_texts_too(site: Site, page_watch: Watch) -> None:
    history: list[dict[str, Any]] = []
    for number, text in enumerate(RUNS):
        file = {"tipo": "documento", "nome": text}
        history.append({"role": "user", "content": [{"tipo": "testo", "testo": text}, file]})
        call = {"id": str(number), "name": text, "arguments": {}}
        history.append({"role": "assistant", "content": text, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": text})
    site.options["storia"] = [*history, {"role": "system"}, None, 7, {"role": "user", "content": None}]
    site.model = RUNS[0]
    page = open_chat(site, page_watch)
    page.wait_for_selector(f".pc-modello:has-text('{RUNS[0]}')")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("runs") == 0
    assert page.locator(".pc-mio").count() == len(RUNS) + 1
    assert page.locator(".pepper-chat").locator("script, img, iframe, style").count() == 0
    assert page.locator(".pc-voce p").count() == 0  # what was said before is not read out again
    say(page, "go")
