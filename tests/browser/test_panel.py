"""The panel in a real Chromium: from the setup link to an answer, every page in every guise, hands on the keyboard."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crocevia.storage.database import immediate
from crocevia.storage.spending import add_alert
from tests.browser.conftest import Watch
from tests.live import SCRIPTED, LiveServer, live_server

pytestmark = pytest.mark.browser

PASSWORD = "una frase lunga"
MORE = """
[[models]]
name = "Pepper 7"
engine = "embedded"
upstream = "x"
prices = { input = 5, output = 25 }
[[recipes]]
encode = "riassunto"
instructions = "Riassumi."
[[projects]]
name = "casa"
mode = "agent"
model = "Pepper 7"
daily_budget_usd = 2.0
webhook_url = "https://example.invalid/hook"
[[agents]]
name = "guard"
mode = "primary"
tools = ["write"]
permissions = { write = "ask" }
[[teams]]
name = "guarded"
orchestrator = "guard"
[[engines]]
name = "leading"
kind = "scripted"
script = [
  { when = { after_tool = true }, say = [{ text = "The finder says: {tool_result}" }] },
  { say = [
    { reasoning = "Somebody else knows." },
    { text = "Let me ask." },
    { tool = "delegate_task", arguments = { agent = "finder", task = "find it", mode = "foreground", title = "Find" } },
  ] },
]
[[engines]]
name = "finding"
kind = "scripted"
script = [{ say = [{ text = "It is **behind** the door." }] }]
[[models]]
name = "Lead"
engine = "leading"
[[models]]
name = "Finder"
engine = "finding"
[[agents]]
name = "leader"
mode = "primary"
model = "Lead"
[[agents]]
name = "finder"
model = "Finder"
system_prompt = "Find."
[[teams]]
name = "two"
orchestrator = "leader"
members = ["finder"]
[[engines]]
name = "handing"
kind = "scripted"
script = [
  { when = { after_tool = true }, say = [{ text = "The writer says: {tool_result}" }] },
  { say = [{ tool = "delegate_task", arguments = { agent = "watcher", task = "call camera", title = "Look out" } }] },
]
[[models]]
name = "Hander"
engine = "handing"
deprecated = true
sunset_at = "2027-03-31T00:00:00Z"
[[agents]]
name = "boss"
mode = "primary"
model = "Hander"
"""
PAGES = {
    "overview": "/panel",
    "calls": "/panel/calls",
    "calls-none": "/panel/calls?project=nobody",
    "call": "/panel/calls/one?id=CALL",
    "chats": "/panel/chats",
    "chats-none": "/panel/chats?before=a",
    "chat": "/panel/chats/one?id=CHAT",
    "chat-first-steps": "/panel/chats/one?id=CHAT&step=3",
    "chat-done": "/panel/chats/one?id=DONE",
    "chat-members": "/panel/chats/one?id=SLOW",
    "waiting": "/panel/waiting",
    "files": "/panel/files",
    "file": "/panel/files?path=/wiki/note.md",
    "webhooks": "/panel/webhooks",
    "mcp": "/panel/mcp",
    "projects": "/panel/projects",
    "project": "/panel/projects/edit?name=casa",
    "project-new": "/panel/projects/new",
    "recipes": "/panel/recipes",
    "recipe": "/panel/recipes/edit?name=riassunto",
    "models": "/panel/models",
    "model": "/panel/models/edit?name=Pepper%207",
    "engines": "/panel/engines",
    "engine": "/panel/engines/edit?name=embedded",
    "agents": "/panel/agents",
    "agent": "/panel/agents/edit?name=main",
    "team": "/panel/teams/edit?name=main",
    "keys": "/panel/keys",
    "settings": "/panel/settings",
    "audit": "/panel/audit",
    "api": "/panel/api",
    "playground": "/panel/playground",
    "playground-tool": "/panel/playground?tool=on",
    "playground-team": "/panel/playground?team=guarded",
    "missing": "/panel/nowhere",
}
GUISES = [(1280, "light", "it"), (1280, "dark", "en"), (390, "light", "en"), (390, "dark", "it")]


@dataclass
class Panel:
    """A server whose panel was set up. places: what stands for what in `PAGES`."""

    server: LiveServer
    cookie: str
    places: dict[str, str]

    @property
    def url(self) -> str:
        return self.server.url

    def enter(self, watch: Watch, theme: str = "auto", language: str = "en") -> Any:
        """A page that is signed in."""
        cookies = {"crocevia_session": self.cookie, "crocevia_theme": theme, "crocevia_language": language}
        watch.page.context.add_cookies(
            [{"name": name, "value": value, "url": f"{self.url}/panel"} for name, value in cookies.items()]
        )
        return watch.page


def setup_url(server: LiveServer) -> str:
    return f"{server.url}/panel{server.secrets['setup_url'].partition('/panel')[2]}"


def _call(server: LiveServer, session: str = "s1") -> None:
    body = {"session_id": session, "messages": [{"role": "user", "content": "ciao"}]}
    secrets = server.secrets
    headers = {"x-pepper-key": secrets["project_key"], "x-pepper-project": secrets["project"]}
    request = urllib.request.Request(f"{server.url}/agent", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def _api(server: LiveServer, path: str, body: Any = None) -> Any:
    """A request of the teams' API; the data of its answer."""
    headers = {"authorization": f"Bearer {server.secrets['api_key']}", "content-type": "application/json"}
    headers["x-envai-contract-version"] = "3"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}/api/v1{path}", data, headers), timeout=10) as got:
        answer = json.load(got)
    return answer.get("data", answer)


def _chat(server: LiveServer, team: str, message: str) -> str:
    """A chat with this team in which this was said."""
    team_id = next(item["id"] for item in _api(server, "/teams") if item["name"] == team)
    chat: str = _api(server, f"/workspaces/{server.secrets['workspace_id']}/chats", {"team_id": team_id})["id"]
    _api(server, f"/atp/v3/chats/{chat}/messages", {"message": message})
    return chat


def _until(server: LiveServer, cookie: str, chat: str, state: str) -> None:
    """Until the panel says that the chat is in this state; the test's own time limit bounds it."""
    while _twin(server.url, cookie, f"/panel/chats/one.json?id={chat}")["chat"]["state"] != state:
        pass


def _people_at_work(server: LiveServer, cookie: str) -> dict[str, str]:
    """Chats that wait for an approval and for the app, and one that is done."""
    name = [{"name": "camera"}]
    agent = {"name": "porter", "mode": "primary", "system_prompt": "Watch.", "external_tools_enabled": name}
    _api(server, "/tools", {"name": "camera", "parameters": {"type": "object"}, "timeout_seconds": 600})
    porter = _api(server, "/agents", agent)["id"]
    _api(server, "/teams", {"name": "gate", "orchestrator_id": porter})
    watcher = _api(server, "/agents", agent | {"name": "watcher", "mode": "subagent"})["id"]
    boss = next(item["id"] for item in _api(server, "/agents") if item["name"] == "boss")
    _api(server, "/teams", {"name": "office", "orchestrator_id": boss, "members": [{"agent_definition_id": watcher}]})
    chats = {
        "CHAT": _chat(server, "guarded", "Please call write for me"),
        "TOOL": _chat(server, "gate", "call camera"),
        "DONE": _chat(server, "two", "Where is it?"),
        "SLOW": _chat(server, "office", "Write it"),
    }
    for place, state in (("CHAT", "waiting"), ("TOOL", "waiting"), ("DONE", "succeeded"), ("SLOW", "waiting")):
        _until(server, cookie, chats[place], state)
    files = server.home / "files" / str(server.secrets["workspace_id"]) / "wiki"
    files.mkdir(parents=True)
    (files / "note.md").write_text("# A note\n\nIt is behind the door.\n")
    return chats


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _cookie(server: LiveServer) -> str:
    form = f"password={PASSWORD}&again={PASSWORD}".replace(" ", "+").encode()
    request = urllib.request.Request(setup_url(server), form, {"sec-fetch-site": "same-origin"})
    try:
        urllib.request.build_opener(_Stay).open(request, timeout=20)
    except urllib.error.HTTPError as moved:
        with moved:
            assert moved.status == 303
            return str(moved.headers["set-cookie"]).partition("=")[2].partition(";")[0]
    raise AssertionError("the setup link did not lead on")


def _twin(panel_url: str, cookie: str, path: str) -> Any:
    request = urllib.request.Request(panel_url + path, headers={"cookie": f"crocevia_session={cookie}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    with live_server(tmp_path_factory.mktemp("home"), declaration=SCRIPTED + MORE) as server:
        cookie = _cookie(server)
        for _ in range(3):
            _call(server)
        rows: list[Any] = []
        while not [row for row in rows if row["outcome"]]:
            rows = _twin(server.url, cookie, "/panel/calls.json")["calls"]["rows"]
        event = {"project": "casa", "day": "2026-03-01", "event": "evt_1", "body": '{"id": "evt_1"}', "now": 1.0}
        with immediate(server.home / "crocevia.db") as tx:
            add_alert(tx, **event)
        yield Panel(server, cookie, {"CALL": rows[0]["id"]} | _people_at_work(server, cookie))


def _keep(page: Any, name: str) -> None:
    """Screenshots for people, where somebody asked for them."""
    folder = os.environ.get("CROCEVIA_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "theme", "language"), GUISES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_self_contained_and_fits(
    name: str,
    width: int,
    theme: str,
    language: str,
    panel: Panel,
    new_page: Callable[..., Watch],
    axe: Callable[[Any], list[str]],
) -> None:
    watch = new_page(width=width, reduced_motion=True)
    if name == "missing":
        watch.allow.append("404")
    page = panel.enter(watch, theme, language)
    path = PAGES[name]
    for place, found in panel.places.items():
        path = path.replace(place, found)
    page.goto(panel.url + path)
    assert page.get_attribute("html", "lang") == language
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    _keep(page, f"{name}-{width}-{theme}-{language}")
    watch.check()


@pytest.mark.parametrize(("width", "theme", "language"), GUISES)
@pytest.mark.parametrize("path", ["/panel/login", "/panel/setup?token=x"])
def test_the_entrance_is_accessible_too(
    path: str,
    width: int,
    theme: str,
    language: str,
    panel: Panel,
    new_page: Callable[..., Watch],
    axe: Callable[[Any], list[str]],
) -> None:
    watch = new_page(width=width, theme=theme, language=language)
    watch.page.goto(panel.url + path)
    assert axe(watch.page) == []
    _keep(watch.page, f"{path.split('/')[2].split('?')[0]}-{width}-{theme}-{language}")
    watch.check()


def test_from_the_setup_link_to_a_project_its_key_and_an_answer(
    tmp_path: Path, new_page: Callable[..., Watch], axe: Callable[[Any], list[str]]
) -> None:
    with live_server(tmp_path) as server:
        watch = new_page(language="it-IT")
        page = watch.page
        page.goto(setup_url(server))
        page.get_by_label("Password nuova").fill(PASSWORD)
        page.get_by_label("Ancora la stessa").fill(PASSWORD)
        page.get_by_role("button", name="Imposta la password ed entra").click()
        page.get_by_role("heading", name="Panoramica").wait_for()
        page.get_by_role("link", name="Progetti", exact=True).click()
        page.get_by_role("link", name="Progetto nuovo").click()
        page.get_by_label("Nome").fill("nuovo")
        page.get_by_role("button", name="Crea").click()
        key = page.locator("#secret").inner_text()
        assert axe(page) == []
        page.get_by_role("link", name="L'ho copiata").click()
        assert key not in page.content()
        page.get_by_role("link", name="Provalo").click()
        page.get_by_role("textbox").fill("ciao")
        page.keyboard.press("Enter")
        page.locator("#raw", has_text="event: done").wait_for()
        assert page.locator("#chat").get_by_text("ciao", exact=True).first.is_visible()
        assert key not in page.content()
        assert axe(page) == []
        _keep(page, "playground-answered")
        page.get_by_role("link", name="Con un attrezzo da confermare").click()
        page.get_by_role("textbox").fill("call set_light")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Approva").wait_for()
        assert axe(page) == []
        _keep(page, "playground-asks")
        page.get_by_role("button", name="Approva").click()
        page.locator("#chat").get_by_text('"light":').first.wait_for()
        page.locator("#raw", has_text="event: tool_done").wait_for()
        assert axe(page) == []
        _keep(page, "playground-confirmed")
        watch.check()


def _tab_to(page: Any, name: str) -> None:
    """Press Tab until the thing with this text (its first line) has the focus, as somebody without a mouse would."""
    for _ in range(60):
        page.keyboard.press("Tab")
        text = page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).innerText || ''")
        if text.strip().partition("\n")[0] == name:
            return
    raise AssertionError(f"Tab never came to {name!r}")


def test_with_the_keyboard_alone_from_the_login_to_a_key(panel: Panel, new_page: Callable[..., Watch]) -> None:
    watch = new_page()
    page = watch.page
    page.goto(f"{panel.url}/panel/projects")
    page.keyboard.type(PASSWORD)  # the field has the focus already
    page.keyboard.press("Enter")
    page.wait_for_url("**/panel/projects")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    _tab_to(page, "New project")
    page.keyboard.press("Enter")
    page.wait_for_url("**/new")
    _tab_to(page, "Name")
    page.keyboard.type("bad name")
    page.keyboard.press("Enter")
    page.locator("[aria-invalid=true]:focus").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("by-hand")
    page.keyboard.press("Enter")
    page.locator("#secret").wait_for()
    assert page.locator("#secret").inner_text().startswith("pk_")
    watch.allow.append("422")
    watch.check()


def test_with_the_keyboard_alone_from_the_login_to_an_approval(
    panel: Panel, new_page: Callable[..., Watch], axe: Callable[[Any], list[str]]
) -> None:
    watch = new_page()
    page = watch.page
    chat = _chat(panel.server, "guarded", "call write")
    _until(panel.server, panel.cookie, chat, "waiting")
    page.goto(f"{panel.url}/panel/login")
    page.keyboard.type(PASSWORD)  # the field has the focus already
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    assert int(page.locator(".count").inner_text()) >= 1
    _tab_to(page, "Waiting room")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Waiting room").wait_for()
    while chat not in page.evaluate("document.activeElement.form?.action ?? ''"):
        page.keyboard.press("Tab")
    page.keyboard.type("go ahead")  # why
    _tab_to(page, "Approve")
    page.keyboard.press("Enter")
    page.get_by_text("Approved: the turn goes on.").wait_for()
    assert axe(page) == []
    _until(panel.server, panel.cookie, chat, "succeeded")
    steps = _twin(panel.url, panel.cookie, f"/panel/chats/one.json?id={chat}")["steps"]
    assert [step["text"] for step in steps if step["type"] == "approval.response"] == ["go ahead"]
    watch.check()


def test_a_chat_is_followed_its_steps_are_wound_back_and_its_turn_is_cancelled(
    panel: Panel, new_page: Callable[..., Watch]
) -> None:
    watch = new_page()
    page = panel.enter(watch)
    chat = _chat(panel.server, "guarded", "call write")
    page.goto(f"{panel.url}/panel/chats/one?id={chat}")
    page.locator(".steps").get_by_text("Asks for approval").wait_for()
    page.get_by_label("Up to step").focus()
    page.keyboard.press("Home")
    assert page.locator(".steps > li:visible").count() == 1
    page.get_by_text("1 of ").wait_for()
    page.keyboard.press("ArrowRight")
    assert page.locator(".steps > li:visible").count() == 2
    page.get_by_role("button", name="Cancel the turn").click()
    page.locator(".steps").get_by_text("Turn cancelled").wait_for()
    watch.check()


def test_a_member_at_work_is_told_something(panel: Panel, new_page: Callable[..., Watch]) -> None:
    watch = new_page()
    page = panel.enter(watch)
    chat = _chat(panel.server, "office", "Write it")
    _until(panel.server, panel.cookie, chat, "waiting")
    page.goto(f"{panel.url}/panel/chats/one?id={chat}")
    page.get_by_label("To whom").select_option(label="watcher · Look out")
    page.get_by_label("What to say").fill("In capitals")
    page.get_by_role("button", name="Say it").click()
    page.locator(".steps").get_by_text("In capitals").wait_for()
    page.get_by_role("button", name="Cancel the turn").click()
    page.locator(".steps").get_by_text("Turn cancelled").wait_for()
    watch.check()


def test_a_file_is_uploaded_and_edited(panel: Panel, new_page: Callable[..., Watch]) -> None:
    watch = new_page()
    page = panel.enter(watch)
    page.goto(f"{panel.url}/panel/files?path=/wiki")
    page.get_by_text("New file").click()
    page.get_by_label("From a text file").set_input_files(
        {"name": "lista.txt", "mimeType": "text/plain", "buffer": b"pane\nlatte\n"}
    )
    page.wait_for_function("document.getElementById('new-name').value === 'lista.txt'")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Created.").wait_for()
    assert page.get_by_label("Text").input_value() == "pane\nlatte\n"
    page.get_by_label("Text").fill("pane")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved.").wait_for()
    assert page.get_by_label("Text").input_value() == "pane"
    watch.check()


def test_a_team_is_talked_to_and_its_approval_given_in_the_chat(
    panel: Panel, new_page: Callable[..., Watch], axe: Callable[[Any], list[str]]
) -> None:
    watch = new_page()
    page = panel.enter(watch)
    page.goto(f"{panel.url}/panel/playground?to=team/guarded")
    page.get_by_role("textbox").fill("call write")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve").wait_for()
    assert axe(page) == []
    _keep(page, "playground-team-asks")
    page.get_by_role("button", name="Approve").click()
    page.locator("#raw", has_text="event: done").wait_for()
    page.locator(".pc-tool-ok").wait_for()
    page.wait_for_function("!document.querySelector('.pc-viva')")
    assert axe(page) == []
    _keep(page, "playground-team-answered")
    watch.check()


def test_the_monitor_follows_new_calls_until_it_is_told_to_stop(panel: Panel, new_page: Callable[..., Watch]) -> None:
    watch = new_page()
    page = panel.enter(watch)
    page.goto(f"{panel.url}/panel/calls?session=followed")
    page.get_by_text("No call matches").wait_for()
    _call(panel.server, "followed")
    page.locator("table.rows tbody tr").first.wait_for()
    page.get_by_role("button", name="Live").click()
    assert page.get_by_role("button", name="Live").get_attribute("aria-pressed") == "false"
    watch.check()


def test_a_wrong_price_is_seen_before_it_is_saved_and_a_model_can_be_tested(
    panel: Panel, new_page: Callable[..., Watch]
) -> None:
    watch = new_page()
    page = panel.enter(watch)
    page.goto(f"{panel.url}/panel/models/edit?name=Pepper%207")
    page.get_by_label("Prompt").fill("5000")
    page.get_by_role("button", name="Preview the prices").click()
    page.locator("#prices").get_by_text("10.01").wait_for()
    page.get_by_role("button", name="Test", exact=True).click()
    page.get_by_text("It answered in").wait_for()
    assert page.get_by_label("Prompt").input_value() == "5"
    watch.check()


def test_pages_work_without_any_script(panel: Panel, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{panel.url}/panel/login?next=/panel/recipes/new")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Encode").fill("senza-script")
        page.get_by_label("Instructions").fill("Funziona.")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("Created.").wait_for()
    finally:
        context.close()
