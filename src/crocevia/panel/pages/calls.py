"""The monitor: calls as they come, filtered by the query, and one call in full."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.panel import samples
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView
from crocevia.runtime.control.calls import CallFilter, CallPage, CallRow, call, calls

_TEXTS: Final = ("project", "encode", "model", "engine", "door", "session", "outcome")
PER_PAGE: Final = 50


class Context(msgspec.Struct, frozen=True, kw_only=True):
    calls: CallPage
    filters: dict[str, str]
    """As they stand in the URL."""
    projects: tuple[str, ...]
    encodes: tuple[str, ...]
    running: int
    first_page: bool
    etag: str
    """Changes whenever a row does."""


class One(msgspec.Struct, frozen=True, kw_only=True):
    call: CallRow
    samples: list[samples.Sample]


async def show(request: PageRequest) -> PageResponse:
    filters = {
        name: request.query[name].strip() for name in (*_TEXTS, "min_cost") if request.query.get(name, "").strip()
    }
    given: dict[str, object] = {name: filters[name] for name in _TEXTS if name in filters}
    wanted = msgspec.convert(given | {"min_cost": _cost(filters)}, CallFilter)
    before = request.query.get("before")
    found = await request.services.database.read(lambda tx: calls(tx, wanted, most=PER_PAGE, before=before))
    catalogue = request.services.catalogue.current
    newest = found.rows[0] if found.rows else None
    unsettled = sum(row.outcome is None for row in found.rows)
    context = Context(
        calls=found,
        filters=filters,
        projects=tuple(catalogue.projects),
        encodes=("agente", *catalogue.recipes),
        running=request.services.gateway.active,
        first_page=before is None,
        etag=f"{newest.id if newest else ''}/{unsettled}",
    )
    return PageView(template="calls", context=context, title=request.t("nav.calls"), nav="calls")


async def show_one(request: PageRequest) -> PageResponse:
    found = await request.services.database.read(lambda tx: call(tx, request.query.get("id", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return PageView(
        template="call",
        context=One(call=found, samples=samples.agent_call(request.origin, found.project) if found.project else []),
        title=found.id,
        nav="calls",
        breadcrumbs=(Breadcrumb(request.t("nav.calls"), "/panel/calls"),),
    )


def _cost(filters: dict[str, str]) -> float | None:
    try:
        value = float(filters.get("min_cost", "").replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


PAGES: Final = (Page(path="/panel/calls", get=show), Page(path="/panel/calls/one", get=show_one))
