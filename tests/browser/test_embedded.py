"""The whole way with the embedded model for real: setup link, project, key, and a page of one's own that answers and
runs a tool after a yes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Watch
from tests.browser.test_chat_page import example, watched
from tests.browser.test_kit import finished, say
from tests.browser.test_panel import PASSWORD, setup_url
from tests.engines.llama.test_model import MODELS
from tests.live import live_server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.model,
    pytest.mark.timeout(400),
    pytest.mark.skipif(MODELS is None, reason="NO WEIGHTS: run 'crocevia model pull' or set CROCEVIA_TEST_MODELS"),
]
PATIENCE = 180_000  # ms: the model runs on whatever processor there is
EMBEDDED = '[[engines]]\nname = "embedded"\nkind = "llama"\n'


def new_project(page: Any, link: str) -> str:
    """From the setup link to a project called `home`; its key, as the page shows it once."""
    page.goto(link)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password and enter").click()
    page.get_by_role("link", name="Projects", exact=True).click()
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name").fill("home")
    page.get_by_role("button", name="Create").click()
    return str(page.locator("#secret").inner_text())


def test_from_the_setup_link_to_a_tool_that_the_embedded_model_asked_for(
    tmp_path: Path, new_page: Callable[..., Watch], axe: Callable[[Any], list[str]]
) -> None:
    assert MODELS is not None
    (tmp_path / "models").symlink_to(MODELS)
    with live_server(tmp_path, declaration=EMBEDDED) as server:
        panel = new_page()
        key = new_project(panel.page, setup_url(server))
        panel.check()
        with example(server, "server_with_tools.py", CROCEVIA_PROJECT="home", CROCEVIA_PROJECT_KEY=key) as url:
            chat = new_page()
            chat.page.context.set_default_timeout(PATIENCE)
            page = watched(chat, url, key)
            page.wait_for_selector(".pc-nome:has-text('Pepper mini')")
            say(page, "Switch the light on, please.")
            page.get_by_role("button", name="Approve").click()
            page.wait_for_selector(".pc-tool-ok")
            finished(page, 2)
            assert page.locator(".pc-risposta").last.locator(".pc-testo").inner_text().strip()
            assert page.locator(".pc-errore").count() == 0
            assert axe(page) == []
            chat.check()
            assert page.leaks == [] and key not in page.content()
        panel.page.goto(f"{server.url}/panel/calls?project=home&outcome=ok")
        panel.page.locator("table.rows tbody tr").nth(1).wait_for()
        panel.check()
