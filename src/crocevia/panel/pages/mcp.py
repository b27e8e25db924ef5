"""Servers of the Model Context Protocol: which are there, what they offer, and how one was last lost."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.errors import GatewayError
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.runtime.turns.tools.mcp_servers import ServerState


class Context(msgspec.Struct, frozen=True):
    rows: list[ServerState]


async def show(request: PageRequest) -> PageResponse:
    context = Context(request.services.mcp.states())
    return PageView(template="mcp", context=context, title=request.t("nav.mcp"), nav="settings")


async def look(request: PageRequest) -> PageResponse:
    """Reach one now and list its tools again; how that went is on the page."""
    try:
        await request.services.mcp.look(request.query.get("name", ""))
    except GatewayError:
        return Redirect("/panel/mcp")
    return Redirect("/panel/mcp?done=checking")


PAGES: Final = (Page(path="/panel/mcp", get=show), Page(path="/panel/mcp/look", post=look))
