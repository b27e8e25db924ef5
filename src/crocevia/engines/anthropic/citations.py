"""Pages of the web that an answer of Claude's rests on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from crocevia.core.events import Cited

_WEB = "web_search_result_location"


class _Citation(msgspec.Struct):
    type: str = ""
    url: str | None = None
    title: str | None = None


_citation = msgspec.json.Decoder(_Citation)
_citations = msgspec.json.Decoder(list[Raw] | None)


def listed(spelled: Raw) -> list[Raw]:
    """The citations that a block lists; none where it lists nothing, or something else."""
    if not bytes(spelled):
        return []
    try:
        return _citations.decode(spelled) or []
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []


def pages(citations: Iterable[Raw], start: int, end: int) -> list[Cited]:
    """The pages among them: a text from `start` to `end` rests on every one. Places in documents have no address."""
    found: dict[str, Cited] = {}
    for raw in citations:
        try:
            told = _citation.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if told.type == _WEB and told.url:
            found.setdefault(told.url, Cited(told.url, told.title or "", start, end))
    return list(found.values())
