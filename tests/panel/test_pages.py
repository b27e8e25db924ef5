"""Every page in both languages, its twin, and what must never be in any of them."""

from __future__ import annotations

import json
import re
from collections import deque
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest

from crocevia.config import Auth, GatewaySettings, Settings
from crocevia.panel.pages import PAGES
from crocevia.storage.records import OpenedCall, SettledCall, open_calls, settle_calls
from crocevia.storage.spending import add_alert
from tests.aio import run

from .site import HOSTILE, Place, links, site

QUERIES = {
    "/panel/calls/one": "?id=call_1",
    "/panel/projects/edit": "?name=casa",
    "/panel/models/edit": "?name=Pepper%207",
    "/panel/chats/one": "?id=CHAT",
    "/panel/engines/edit": "?name=claude",
    "/panel/recipes/edit": "?name=riassunto",
    "/panel/agents/edit": "?name=main",
    "/panel/teams/edit": "?name=main",
}
READABLE = [page.path for page in PAGES if page.get is not None]
INSIDE = [page.path for page in PAGES if page.get is not None and not page.public and page.has_json]


async def _call(place: Place, **more: Any) -> None:
    """One settled call in the records."""
    opened = OpenedCall(id="call_1", started_at=1_796_000_000.0, door="pepper", catalogue_revision=1, **more)
    settled = SettledCall(id="call_1", settled_at=1_796_000_001.0, outcome="ok", ended_by="model", cost_usd=0.5)
    await place.service.database.write(lambda tx: (open_calls(tx, [opened]), settle_calls(tx, [settled])))


class _Document(HTMLParser):
    """Collects what a strict policy and assistive technology care about."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.inline: list[str] = []
        self.headings = 0
        self.ids: list[str] = []
        self.lang = ""
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.headings += tag == "h1"
        self._script = tag in ("script", "style")
        if tag == "script":
            self.scripts.append(given.get("src") or "")
        if tag == "html":
            self.lang = given.get("lang") or ""

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.inline.append(data)


def parsed(html: str) -> _Document:
    document = _Document()
    document.feed(html)
    return document


def test_an_agent_whose_rules_mean_nothing_is_marked() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            assert "permissions.write" not in (await place.get("/panel/agents")).text
            stored = '{"write": "Deny", "read": "ask"}'
            await place.service.database.write(
                lambda tx: tx.connection.execute("UPDATE agents SET permissions = ? WHERE name = 'main'", (stored,))
            )
            page = (await place.get("/panel/agents")).text
            assert "permissions.write" in page and "permissions.read" not in page

    run(work())


@pytest.mark.parametrize("language", ["it", "en"])
def test_every_page_is_there_in_both_languages_with_its_twin(language: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            await _call(place, project="casa", model="Pepper mini", engine="embedded", encode="agente")
            chat_id = await place.chat("call write")
            for path in INSIDE:
                query = QUERIES.get(path, "").replace("CHAT", chat_id)
                page = await place.get(path + query, **{"accept-language": f"{language};q=0.9, de"})
                document = parsed(page.text)
                assert page.status_code == 200, path
                assert (document.lang, document.headings) == (language, 1), path
                assert not document.inline, path
                assert all(source.startswith(("/panel/static/", "/kit.php")) for source in document.scripts), path
                assert len(document.ids) == len(set(document.ids)), path
                assert page.headers["cache-control"] == "no-store"
                assert page.headers["content-security-policy"].startswith("default-src 'none'")
                address = "/panel/overview.json" if path == "/panel" else f"{path}.json"
                twin = await place.get(address + query)
                assert twin.status_code == 200, path
                assert isinstance(twin.json(), dict)

    run(work(), 50)


def test_no_link_of_any_page_is_dead() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            await _call(place, project="casa", model="Pepper 7", engine="claude", session_id="s/1?&")
            files = place.service.home.files / place.initialised.workspace_id / "a ?&"
            files.mkdir(parents=True)
            (files / "#note.txt").write_text("ciao")
            await place.chat("call write")
            seen, waiting = {"/panel"}, deque(["/panel", "/panel/calls/one?id=call_1"])
            while waiting:
                path = waiting.popleft()
                page = await place.get(path)
                assert page.status_code == 200, path
                for found in sorted(links(page.text)) if "html" in page.headers["content-type"] else ():
                    if found not in seen and len(seen) < 150:
                        seen.add(found)
                        waiting.append(found)
            assert len(seen) > 30

    run(work(), 55)


def test_hostile_text_in_every_field_stays_text() -> None:
    name = HOSTILE.replace("\u202e", "")  # a name must be printable

    async def work() -> None:
        async with site() as place:
            await place.enter()
            for path, form in {
                "/panel/engines/new": {"name": name, "kind": "scripted"},
                "/panel/models/new": {"name": name, "engine": name, "instructions": HOSTILE, "novelty": name},
                "/panel/recipes/new": {"encode": name, "instructions": HOSTILE},
                "/panel/agents/new": {"name": name, "mode": "primary", "system_prompt": HOSTILE, "tools": name},
                "/panel/teams/new": {"name": name, "orchestrator": name, "members": "helper"},
            }.items():
                answer = await place.post(path, form)
                assert answer.status_code == 303, (path, re.findall(r'class="error"[^>]*>.*?</p>', answer.text, re.S))
            key = await place.post("/panel/keys", {"name": name, "days": "30"})
            assert key.status_code == 200
            texts = {"encode": HOSTILE, "project": HOSTILE, "model": HOSTILE, "engine": HOSTILE, "session_id": HOSTILE}
            await _call(place, **texts, agent=HOSTILE, user_id=HOSTILE)
            chat_id = await place.chat(f"call write {HOSTILE}", attached=name)
            alert = {"project": HOSTILE, "day": HOSTILE, "event": "evt_1", "body": json.dumps(HOSTILE), "now": 1.0}
            await place.service.database.write(lambda tx: add_alert(tx, **alert))
            edits = [f"/panel/{table}/edit?name={quote(name, safe='')}" for table in ("engines", "models", "recipes")]
            edits += [f"/panel/{table}/edit?name={quote(name, safe='')}" for table in ("agents", "teams")]
            filters = f"/panel/calls?project={quote(HOSTILE)}&session={quote(HOSTILE)}&outcome={quote(HOSTILE)}"
            for path in (*INSIDE, *edits, filters, f"/panel?project={quote(HOSTILE)}&period=month"):
                page = await place.get(path + QUERIES.get(path, "").replace("CHAT", chat_id))
                assert page.status_code == 200, path
                assert "<script>alert" not in page.text and "49" not in re.findall(r"\{\{7\*7\}\}|>49<", page.text), (
                    path
                )
                assert not parsed(page.text).inline, path
            twin = (await place.get("/panel/recipes.json")).json()
            assert HOSTILE in [row["instructions"] for row in twin["rows"]]

    run(work(), 55)


def test_no_page_twin_or_log_line_holds_a_secret() -> None:
    settings = Settings(gateway=GatewaySettings(auth=Auth(token="a-gateway-token-that-is-secret")))

    async def work() -> None:
        async with site(settings) as place:
            await place.enter()
            made = place.initialised
            secrets = [made.operator_token, made.api_key, made.project_key, "sk-ant-never-shown"]
            secrets += ["a-gateway-token-that-is-secret", place.client.cookies["crocevia_session"]]
            for path in INSIDE:
                query = QUERIES.get(path, "")  # the chat of nobody: a failure must not tell either
                for address in (path, "/panel/overview.json" if path == "/panel" else f"{path}.json"):
                    text = (await place.get(address + query)).text
                    assert not [secret for secret in secrets if secret in text], address
            assert not [line for line in place.log for secret in secrets if secret in json.dumps(line, default=str)]

    run(work(), 50)


@pytest.mark.parametrize(
    "path",
    [
        "/panel/nowhere",
        "/panel/nowhere.json",
        "/panel/projects/edit?name=nobody",
        "/panel/calls/one?id=nothing",
        "/panel/projects/edit.json?name=",
        "/panel/static/../app.py",
        "/panel/static/app.py",
        "/panel/chats/one?id=nothing",
        "/panel/files/download?workspace=nothing&path=/a",
        "/panel/files/attachment?id=nothing",
        "/panel/files?path=/nowhere",
    ],
)
def test_what_is_not_there_is_a_404(path: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            assert (await place.get(path)).status_code == 404

    run(work(), 30)


@pytest.mark.parametrize(
    "path",
    [
        "/panel/calls?before=nan/x&min_cost=inf",
        "/panel/calls?before=/&min_cost=1e999",
        "/panel/calls?min_cost=-1,5&outcome=%00&project=%ff",
        "/panel?period=century&project=%00",
        "/panel/audit?before=%00&kind=nothing",
        "/panel/projects?done=<script>",
        "/panel/api?project=nobody",
        "/panel/playground?project=nobody",
        "/panel/chats?before=%00&open=2",
        "/panel/files?workspace=nobody&path=../../etc/passwd",
        "/panel/files?path=%00",
    ],
)
def test_odd_addresses_still_show_their_page(path: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            assert (await place.get(path)).status_code == 200

    run(work(), 30)


def test_static_files_are_kept_by_their_digest_and_answer_304() -> None:
    async def work() -> None:
        async with site() as place:
            page = await place.get("/panel/login")
            for address in re.findall(r'"(/panel/static/[^"]+)"', page.text):
                file = await place.get(address)
                assert "immutable" in file.headers["cache-control"]
                again = await place.get(address.partition("?")[0], **{"if-none-match": file.headers["etag"]})
                assert again.status_code == 304

    run(work(), 30)


def test_language_and_colours_are_remembered_and_lead_back() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = await place.post("/panel/preferences", {"language": "it", "back": "/panel/calls?project=a"})
            assert answer.headers["location"] == "/panel/calls?project=a"
            await place.post("/panel/preferences", {"theme": "dark", "back": "https://evil.test"})
            page = (await place.get("/panel", **{"accept-language": "en"})).text
            assert 'lang="it"' in page and 'data-theme="dark"' in page

    run(work(), 30)


def test_every_readable_page_is_in_the_list_that_is_tested() -> None:
    assert set(QUERIES) <= set(INSIDE) < set(READABLE)
    assert len(INSIDE) >= 22


def test_the_list_of_agents_names_those_that_said_something_which_was_ignored() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            words = "Means nothing, so it denies or is not set: "

            def store(permissions: str, config: str) -> Any:
                sql = "UPDATE agents SET permissions = ?, config = ? WHERE name = 'main'"
                return place.service.database.write(lambda tx: tx.connection.execute(sql, (permissions, config)))

            english = {"accept-language": "en"}
            assert words not in (await place.get("/panel/agents", **english)).text
            await store('{"write":"Deny","read":"ask"}', '{"max_rounds":"3"}')
            assert f"{words}permissions.write, config.max_rounds" in (await place.get("/panel/agents", **english)).text
            await store("[", "{}")
            unreadable = await place.get("/panel/agents", **english)
            assert unreadable.status_code == 200 and f"{words}permissions" in unreadable.text

    run(work(), 40)
