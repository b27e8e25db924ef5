"""Webhooks that were sent or are to be: each project's day over its soft threshold, with a way to send one again."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from crocevia.core.errors import Code, GatewayError
from crocevia.panel import words
from crocevia.panel.web import Answer, Ask, Moved, Page, Shown
from crocevia.runtime.control import audit
from crocevia.storage import watching
from crocevia.storage.database import Transaction

MOST: Final = 200


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """status: of the newest attempt's answer, None if nobody answered. due_at: of the next attempt. body: JSON."""

    id: str
    project: str
    day: str
    created_at: float
    attempts: int
    status: int | None
    due_at: float | None
    delivered_at: float | None
    state: Literal["delivered", "due", "given_up"]
    url: str | None
    body: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """followed: projects that have an address for webhooks."""

    rows: list[Row]
    followed: list[str]


async def show(ask: Ask) -> Answer:
    projects = ask.services.catalogue.current.projects
    found = await ask.services.database.read(lambda tx: watching.alert_page(tx, MOST))
    rows = [
        Row(
            **row._asdict() | {"body": msgspec.json.format(row.body, indent=2)},
            state="delivered" if row.delivered_at is not None else "given_up" if row.due_at is None else "due",
            url=projects[row.project].webhook_url if row.project in projects else None,
        )
        for row in found
    ]
    followed = [project.name for project in projects.values() if project.webhook_url is not None]
    context = Context(rows=rows, followed=followed)
    return Shown(template="webhooks", context=context, title=words.say(ask.language, "nav.webhooks"), nav="settings")


async def redeliver(ask: Ask) -> Answer:
    which = ask.query.get("id", "")
    if not await ask.services.redeliver(which):
        raise GatewayError(Code.NOT_FOUND)

    def work(tx: Transaction) -> None:
        audit.note(tx, ask.actor, "redelivered", "webhooks", which)

    await ask.services.database.write(work)
    return Moved("/panel/webhooks?done=redelivered")


PAGES: Final = (
    Page(path="/panel/webhooks", get=show),
    Page(path="/panel/webhooks/redeliver", post=redeliver),
)
