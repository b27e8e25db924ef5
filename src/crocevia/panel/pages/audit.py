"""The audit list: every change that was made here."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.panel import words
from crocevia.panel.web import Answer, Ask, Crumb, Page, Shown
from crocevia.runtime.control import audit

KINDS: Final = (
    "projects", "models", "engines", "recipes", "agents", "teams", "api_keys", "password", "session",
)  # fmt: skip
PER_PAGE: Final = 50


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """older: the id that the next page starts below; None on the last one."""

    entries: list[audit.Entry]
    kinds: tuple[str, ...]
    kind: str | None
    older: str | None


async def show(ask: Ask) -> Answer:
    kind = next((kind for kind in KINDS if kind == ask.query.get("kind")), None)
    before = ask.query.get("before") or audit.LAST
    found = await ask.services.database.read(lambda tx: audit.entries(tx, before=before, most=PER_PAGE + 1, kind=kind))
    entries = found[:PER_PAGE]
    context = Context(entries=entries, kinds=KINDS, kind=kind, older=entries[-1].id if len(found) > PER_PAGE else None)
    return Shown(
        template="audit",
        context=context,
        title=words.say(ask.language, "audit.title"),
        nav="settings",
        crumbs=(Crumb(words.say(ask.language, "nav.settings"), "/panel/settings"),),
    )


PAGES: Final = (Page(path="/panel/audit", get=show),)
