"""Is it well, and what does it cost? One page about a period."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from crocevia.panel import chart, words
from crocevia.panel.web import Answer, Ask, Page, Shown
from crocevia.runtime.control import overview
from crocevia.runtime.control.calls import CallFilter

_FILTERS: Final = ("project", "model", "encode", "outcome")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """running: calls under way now. filters: what the address narrows it to. fresh: no call was ever made."""

    overview: overview.Overview
    chart: chart.Chart
    periods: tuple[str, ...]
    filters: dict[str, str]
    running: int
    fresh: bool
    projects: int


async def show(ask: Ask) -> Answer:
    asked = ask.query.get("period")
    period: overview.Period = next((name for name in overview.PERIODS if name == asked), "day")
    filters = {name: ask.query[name] for name in _FILTERS if ask.query.get(name)}
    wanted = msgspec.convert(filters, CallFilter)
    until = time.time()
    found = await ask.services.database.read(lambda tx: overview.overview(tx, period, until, wanted))
    ever = await ask.services.database.read(lambda tx: overview.figures(tx, overview.ALL).calls)
    context = Context(
        overview=found,
        chart=chart.bars([bar.calls for bar in found.bars], [bar.failed for bar in found.bars]),
        periods=tuple(overview.PERIODS),
        filters=filters,
        running=ask.services.gateway.active,
        fresh=ever == 0,
        projects=len(ask.services.catalogue.current.projects),
    )
    return Shown(template="overview", context=context, title=words.say(ask.language, "nav.overview"), nav="overview")


PAGES: Final = (Page(path="/panel", get=show),)
