"""The audit list: every change that was made here."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView
from crocevia.runtime.control import audit

KINDS: Final = (
    "projects", "models", "engines", "recipes", "agents", "teams", "api_keys", "password", "session",
)  # fmt: skip
PER_PAGE: Final = 50


class Context(msgspec.Struct, frozen=True, kw_only=True):
    entries: list[audit.AuditEntry]
    kinds: tuple[str, ...]
    kind: str | None
    older: str | None
    """The id that the next page starts below; None on the last one."""


async def show(request: PageRequest) -> PageResponse:
    kind = next((kind for kind in KINDS if kind == request.query.get("kind")), None)
    before = request.query.get("before") or audit.LAST
    found = await request.services.database.read(
        lambda tx: audit.entries(tx, before=before, most=PER_PAGE + 1, kind=kind)
    )
    entries = found[:PER_PAGE]
    context = Context(entries=entries, kinds=KINDS, kind=kind, older=entries[-1].id if len(found) > PER_PAGE else None)
    return PageView(
        template="audit",
        context=context,
        title=request.t("audit.title"),
        nav="settings",
        breadcrumbs=(Breadcrumb(request.t("nav.settings"), "/panel/settings"),),
    )


PAGES: Final = (Page(path="/panel/audit", get=show),)
