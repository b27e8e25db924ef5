"""Where an answer has its words from: what the engine says, else passages found again in the extracted text.

Strategy for the second: runs of words that answer and page share. Runs shorter than MIN_WORDS prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

MIN_WORDS: Final = 6
MOST: Final = 20
MOST_PASSAGE: Final = 500  # characters
MOST_ANSWER_WORDS: Final = 20_000

_WORD: Final = re.compile(r"\w+")


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """origin: `engine` said so, `text` was found by us, `web` is a page of a search. page counts from 1."""

    origin: Literal["engine", "text", "web"]
    document: str | None = None
    page: int | None = None
    passage: str | None = None
    title: str | None = None
    url: str | None = None


class _Cited(msgspec.Struct):
    type: str = ""
    cited_text: str | None = None
    document_index: int | None = None
    document_title: str | None = None
    start_page_number: int | None = None


class _Block(msgspec.Struct):
    citations: list[Any] | None = None


def told(blocks: Iterable[Raw], documents: Sequence[str]) -> list[Citation]:
    """What the pieces of an answer cite, in order, each once. documents: names, as the engine counts them."""
    found: dict[Citation, None] = {}
    for block in blocks:
        for cited in _cited(block):
            index = cited.document_index
            known = documents[index] if index is not None and 0 <= index < len(documents) else None
            found[
                Citation(
                    origin="engine",
                    document=known or cited.document_title,
                    page=cited.start_page_number,
                    passage=_short(cited.cited_text or "") or None,
                )
            ] = None
    return list(found)[:MOST]


def _cited(block: Raw) -> list[_Cited]:
    try:
        citations = msgspec.json.decode(block, type=_Block).citations or []
        return [msgspec.convert(cited, _Cited) for cited in citations if isinstance(cited, dict)]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []


class _Run(msgspec.Struct, frozen=True):
    """`words` words of the answer from `start` on are on this page, from character `begin` to `end`."""

    start: int
    words: int
    document: int
    page: int
    begin: int
    end: int


def locate(answer: str, documents: Sequence[tuple[str, Sequence[str]]]) -> list[Citation]:
    """Passages of the documents (name, text of each page) that the answer repeats, the longest for each place in it.

    One pass over the documents: its time grows with their length, not with that of the answer.
    """
    said = [match.group().casefold() for match in _WORD.finditer(answer)][:MOST_ANSWER_WORDS]
    places: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(said) - MIN_WORDS + 1):
        places.setdefault(tuple(said[at : at + MIN_WORDS]), []).append(at)
    if not places:
        return []
    runs = [
        run
        for number, (_, pages) in enumerate(documents)
        for page, text in enumerate(pages, 1)
        for run in _runs(said, places, text, number, page)
    ]
    found: list[Citation] = []
    for run in _longest(runs):
        name, pages = documents[run.document]
        passage = _short(pages[run.page - 1][run.begin : run.end])
        found.append(Citation(origin="text", document=name, page=run.page, passage=passage))
    return list(dict.fromkeys(found))[:MOST]


def _runs(
    said: list[str], places: dict[tuple[str, ...], list[int]], text: str, document: int, page: int
) -> Iterator[_Run]:
    matches = list(_WORD.finditer(text))
    words = [match.group().casefold() for match in matches]
    at = 0
    while at <= len(words) - MIN_WORDS:
        starts = places.get(tuple(words[at : at + MIN_WORDS]))
        if starts is None:
            at += 1
            continue
        start, length = max(((s, _length(said, s, words, at)) for s in starts[:8]), key=lambda pair: pair[1])
        yield _Run(start, length, document, page, matches[at].start(), matches[at + length - 1].end())
        at += length


def _length(said: list[str], start: int, words: list[str], at: int) -> int:
    length = MIN_WORDS
    while start + length < len(said) and at + length < len(words) and said[start + length] == words[at + length]:
        length += 1
    return length


def _longest(runs: list[_Run]) -> list[_Run]:
    """Without those whose words of the answer a longer one covers; in the order of the answer."""
    kept: list[_Run] = []
    for run in sorted(runs, key=lambda run: (-run.words, run.document, run.page)):
        if len(kept) == MOST:
            break
        if not any(other.start <= run.start and run.start + run.words <= other.start + other.words for other in kept):
            kept.append(run)
    return sorted(kept, key=lambda run: run.start)


def _short(passage: str) -> str:
    line = " ".join(passage.split())
    return line if len(line) <= MOST_PASSAGE else f"{line[: MOST_PASSAGE - 1]}…"
