"""Webhooks: those of ours that were sent or are to be, with a way to send one again, and whose we can verify.

Ours tell of a project's day over its soft threshold, and of the end of a generated picture.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import note
from crocevia.runtime.control import provider_callbacks
from crocevia.storage import operator_view
from crocevia.storage.images import Generation

MOST: Final = 200


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One of our webhooks."""

    id: str
    kind: Literal["budget", "picture"]
    about: str
    """A project, or a generation's model."""
    detail: str
    """The project's day, or the generation's id."""
    created_at: float
    attempts: int
    status: int | None
    """Of the newest attempt; None: no answer."""
    due_at: float | None
    """Of the next attempt."""
    delivered_at: float | None
    state: Literal["delivered", "due", "given_up"]
    url: str | None
    body: str
    """JSON."""


class Sender(msgspec.Struct, frozen=True):
    """A provider whose webhooks are accepted."""

    name: str
    address: str
    known: bool
    """Whether its secret is here, so that they can be verified."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]
    followed: list[str]
    """Projects with an address for webhooks."""
    senders: list[Sender]


async def show(request: PageRequest) -> PageResponse:
    projects = request.services.catalogue.current.projects
    control = request.services.control
    found = await request.services.database.read(lambda tx: operator_view.alert_page(tx, MOST))
    rows = [_of_budget(row, projects.get(row.project)) for row in found]
    if control.images is not None:
        rows += [_of_picture(made, body) for made, body in await control.images.webhooks(MOST)]
    context = Context(
        rows=sorted(rows, key=lambda row: row.created_at, reverse=True)[:MOST],
        followed=[project.name for project in projects.values() if project.webhook_url is not None],
        senders=[
            Sender(name, f"{request.origin}/api/v1/webhooks/providers/{name}", known)
            for name, known in provider_callbacks.known(control).items()
        ],
    )
    return PageView(template="webhooks", context=context, title=request.t("nav.webhooks"), nav="settings")


def _of_budget(row: Any, project: ProjectSpec | None) -> Row:
    return Row(
        id=row.id,
        kind="budget",
        about=row.project,
        detail=row.day,
        created_at=row.created_at,
        attempts=row.attempts,
        status=row.status,
        due_at=row.due_at,
        delivered_at=row.delivered_at,
        state=_state(row.delivered_at, row.due_at),
        url=project.webhook_url if project is not None else None,
        body=msgspec.json.format(row.body, indent=2),
    )


def _of_picture(made: Generation, body: bytes) -> Row:
    return Row(
        id=made.webhook_event or "",
        kind="picture",
        about=made.model,
        detail=made.id,
        created_at=made.completed_at or made.created_at,
        attempts=made.webhook_attempts,
        status=made.webhook_status,
        due_at=made.webhook_due_at,
        delivered_at=made.webhook_delivered_at,
        state=_state(made.webhook_delivered_at, made.webhook_due_at),
        url=made.webhook_url,
        body=msgspec.json.format(body.decode(), indent=2),
    )


def _state(delivered_at: float | None, due_at: float | None) -> Literal["delivered", "due", "given_up"]:
    if delivered_at is not None:
        return "delivered"
    return "given_up" if due_at is None else "due"


async def redeliver(request: PageRequest) -> PageResponse:
    which = request.query.get("id", "")
    images = request.services.control.images
    found = await request.services.redeliver(which) or (images is not None and await images.redeliver(which))
    if not found:
        raise GatewayError(Reason.NOT_FOUND)

    await note(request, "redelivered", "webhooks", which)
    return Redirect("/panel/webhooks?done=redelivered")


PAGES: Final = (
    Page(path="/panel/webhooks", get=show),
    Page(path="/panel/webhooks/redeliver", post=redeliver),
)
