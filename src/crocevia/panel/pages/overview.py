"""The overview of a period: health, usage and cost."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from crocevia.panel import chart
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView
from crocevia.runtime.control import overview
from crocevia.runtime.control.calls import CallFilter

_FILTERS: Final = ("project", "model", "encode", "outcome")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    overview: overview.Overview
    chart: chart.Chart
    periods: tuple[str, ...]
    filters: dict[str, str]
    """As they stand in the URL."""
    running: int
    """Calls under way now."""
    fresh: bool
    """Whether no call was ever made."""
    projects: int


async def show(request: PageRequest) -> PageResponse:
    asked = request.query.get("period")
    period: overview.Period = next((name for name in overview.PERIODS if name == asked), "day")
    filters = {name: request.query[name] for name in _FILTERS if request.query.get(name)}
    wanted = msgspec.convert(filters, CallFilter)
    until = time.time()
    found = await request.services.database.read(lambda tx: overview.overview(tx, period, until, wanted))
    ever = await request.services.database.read(lambda tx: overview.figures(tx, overview.ALL).calls)
    context = Context(
        overview=found,
        chart=chart.bars([bar.calls for bar in found.bars], [bar.failed for bar in found.bars]),
        periods=tuple(overview.PERIODS),
        filters=filters,
        running=request.services.gateway.active,
        fresh=ever == 0,
        projects=len(request.services.catalogue.current.projects),
    )
    return PageView(template="overview", context=context, title=request.t("nav.overview"), nav="overview")


PAGES: Final = (Page(path="/panel", get=show),)
