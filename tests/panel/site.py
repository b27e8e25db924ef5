"""A panel over a real home, without sockets: `async with site(folder) as place: await place.enter()`."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import msgspec
import structlog

from crocevia.app.service import Service, open_service
from crocevia.config import ServerSettings, Settings
from crocevia.core.ids import new_id
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.runtime.control.init import Initialised, init
from crocevia.storage import agents, attachments, chats, teams, user_tools
from crocevia.storage.database import Transaction
from crocevia.storage.home import Home

PASSWORD = "una frase lunga"
ORIGIN = "http://panel.test"
OURS = {"sec-fetch-site": "same-origin"}

# Fields that a person may fill are hostile here: markup, quotes, template syntax, bidirectional and astral characters.
HOSTILE = "\"><script>alert(1)</script>{{7*7}}'&\u202e🙂"
DECLARED = """
[[engines]]
name = "embedded"
kind = "scripted"
[[engines]]
name = "claude"
kind = "anthropic"
base_url = "http://127.0.0.1:9"
api_key = "sk-ant-never-shown"
[[models]]
name = "Pepper 7"
engine = "claude"
upstream = "claude-opus-5-5"
reserve = "Pepper mini"
reasoning = "always"
prices = { input = 5, output = 25 }
[[projects]]
name = "casa"
mode = "agent"
model = "Pepper mini"
daily_budget_usd = 2.0
[[recipes]]
encode = "riassunto"
instructions = "Riassumi."
[[agents]]
name = "helper"
system_prompt = "Aiuta."
[[agents]]
name = "guard"
mode = "primary"
tools = ["write"]
permissions = { write = "ask" }
[[teams]]
name = "guarded"
orchestrator = "guard"
"""


@cache
def _template() -> tuple[Path, Initialised]:
    """An initialised home, made once and copied by every test."""
    folder = Path(tempfile.mkdtemp(prefix="crocevia-panel-"))
    home = Home(folder)
    initialised = init(home, ORIGIN)
    apply(home, parse(DECLARED.encode()))
    return folder, initialised


@dataclass
class Place:
    client: httpx.AsyncClient
    service: Service
    initialised: Initialised
    log: list[dict[str, Any]]

    @property
    def setup_path(self) -> str:
        return self.initialised.setup_url.removeprefix(ORIGIN)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, form: dict[str, str] | None = None, **headers: str) -> httpx.Response:
        """As a browser on a page of ours would."""
        return await self.client.post(path, data=form or {}, headers=OURS | headers)

    async def enter(self) -> httpx.Response:
        """Choose the password with the setup link, and be signed in."""
        answer = await self.post(self.setup_path, {"password": PASSWORD, "again": PASSWORD})
        assert answer.status_code == 303, answer.text
        return answer

    async def form(self, path: str) -> dict[str, str]:
        """The fields of the page's form, as a browser would send them."""
        page = await self.get(path)
        assert page.status_code == 200
        return fields(page.text)

    async def chat(self, message: str, *, attached: str | None = None) -> str:
        """A chat of the operator in which the guarded team was told this; it has asked for something, or is done.

        The scripted model calls the tool that the message names: `write` wants an approval, `camera` is the app's.
        """
        made, database = self.initialised, self.service.database
        chat_id = await database.write(lambda tx: _chat(tx, made.user_id, made.workspace_id, attached))
        await self.service.turns.send(made.user_id, chat_id, message)
        await self.until(chat_id, "running", wanted=False)
        return chat_id

    async def until(self, chat_id: str, state: str, *, wanted: bool = True) -> dict[str, Any]:
        """The twin of the chat's page, as soon as its state is (not) this. The test's own deadline bounds it."""
        while True:
            twin: dict[str, Any] = (await self.get(f"/panel/chats/one.json?id={chat_id}")).json()
            if (twin["chat"]["state"] == state) is wanted:
                return twin

    async def audited(self) -> list[tuple[str, str, str]]:
        twin = (await self.get("/panel/audit.json")).json()
        return [(entry["action"], entry["kind"], entry["name"]) for entry in twin["entries"]]


@asynccontextmanager
async def site(settings: Settings | None = None, address: str = "127.0.0.1") -> AsyncIterator[Place]:
    template, initialised = _template()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        shutil.copytree(template, home.path)
        lines: list[dict[str, Any]] = []
        log = structlog.wrap_logger(None, processors=[lambda _, __, event: lines.append(event) or _drop()])
        async with open_service(settings or Settings(server=ServerSettings()), home, log) as service:

            async def app(scope: Any, receive: Any, send: Any) -> None:
                await service.site(scope, receive, send)

            transport = httpx.ASGITransport(app=app, client=(address, 4000))
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                yield Place(client, service, initialised, lines)


def _chat(tx: Transaction, user_id: str, workspace_id: str, attached: str | None) -> str:
    if user_tools.find(tx, user_id, "camera") is None:
        user_tools.add(tx, user_id, "camera", None, {"type": "object"}, 600, 1.0)
        guard = agents.find(tx, user_id, agents.find_named(tx, user_id, "guard") or "")
        assert guard is not None
        agents.save(tx, msgspec.structs.replace(guard, external_tools_enabled=[{"name": "camera"}]))
    team_id = teams.find_named(tx, user_id, "guarded")
    assert team_id is not None
    chat_id = chats.add(tx, user_id, workspace_id, team_id, 1.0).id
    if attached is not None:
        file = attachments.StoredAttachment(
            id=new_id("att"), workspace_id=workspace_id, chat_id=chat_id, user_id=user_id, name=attached,
            mime_type="text/plain", size=5, sha256="", idempotency_key="k", revision=1,
            created_at=1.0, expires_at=9e9,
        )  # fmt: skip
        attachments.add(tx, file)
    return chat_id


def _drop() -> Any:
    raise structlog.DropEvent


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.active = False
        self._select: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.active = given.get("class", "").startswith("card") and not self.found
        elif not self.active:
            return
        elif tag == "input" and given.get("name") and given.get("type") != "checkbox":
            self.found[given["name"]] = given.get("value", "")
        elif tag == "input" and given.get("name") and "checked" in given:
            self.found[given["name"]] = "on"
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select and ("selected" in given or self._select not in self.found):
            self.found[self._select] = given["value"]
        elif tag == "textarea":
            self._area = given["name"]
            self.found[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.active = False
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area:
            self.found[self._area] += data


def fields(html: str) -> dict[str, str]:
    """What the first big form of a page would send."""
    parser = _Fields()
    parser.feed(html)
    return parser.found


def links(html: str) -> set[str]:
    """Addresses of the panel that a page links to, without fragments."""
    found = re.findall(r'(?:href|src)="(/panel[^"#]*)', html)
    return {address.replace("&amp;", "&") for address in found}
