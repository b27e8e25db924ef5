"""Pages that an answer rests on, as OpenAI-like providers list them."""

from __future__ import annotations

from typing import Any

from crocevia.core.events import Cited


def read(annotations: Any) -> list[Cited]:
    """The citations of pages among them; what is anything else, or malformed, is left out."""
    if not isinstance(annotations, list):
        return []
    return [cited for cited in map(_one, annotations) if cited is not None]


def _one(given: Any) -> Cited | None:
    if not isinstance(given, dict) or given.get("type") != "url_citation":
        return None
    told = given.get("url_citation", given)  # chat completions have it one level deeper
    if not isinstance(told, dict):
        return None
    url, title = told.get("url"), told.get("title") or ""
    start, end = told.get("start_index"), told.get("end_index")
    if not isinstance(url, str) or not isinstance(title, str):
        return None
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end:
        return None
    return Cited(url, title, start, end)
