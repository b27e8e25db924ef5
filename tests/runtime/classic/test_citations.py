"""Passages are found where they are, and nowhere else."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from crocevia.core import json
from crocevia.core.calls import ModelRequest
from crocevia.core.messages import FilePart, UserMessage
from crocevia.engines.anthropic.messages import AnthropicDialect
from crocevia.runtime.classic.citations import MIN_WORDS, MOST, MOST_PASSAGE, Citation, locate, told

WORDS = st.lists(st.sampled_from(["alfa", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]), max_size=40)


def page(number: int, length: int = 400) -> str:
    return " ".join(f"p{number}w{index}" for index in range(length))


def test_the_page_and_the_words_are_those_of_the_document() -> None:
    documents = [
        ("a.pdf", [page(1), page(2)]),
        ("b.pdf", [page(3), page(4) + " Il  canone è di\n500 euro al mese, IVA esclusa."]),
    ]
    [found] = locate("Risposta: il canone è di 500 euro al mese!", documents)
    assert found == Citation(origin="text", document="b.pdf", page=2, passage="Il canone è di 500 euro al mese")


@given(before=WORDS, passage=st.integers(MIN_WORDS, 30), at=st.integers(0, 300), after=WORDS)
@settings(deadline=None)
def test_any_passage_that_is_repeated_is_found_with_its_page(
    before: list[str], passage: int, at: int, after: list[str]
) -> None:
    pages = [page(number) for number in range(5)]
    quoted = " ".join(pages[3].split()[at : at + passage])
    found = locate(" ".join([*before, quoted, *after]), [("x", pages)])
    assert [(cited.page, cited.passage) for cited in found] == [(4, quoted)]


@given(answer=st.text(max_size=300), texts=st.lists(st.text(max_size=300), max_size=4))
@settings(deadline=None)
def test_whatever_the_texts_nothing_is_made_up(answer: str, texts: list[str]) -> None:
    for cited in locate(answer, [("x", texts)]):
        assert cited.page is not None and cited.passage
        assert cited.passage.rstrip("…") in " ".join(texts[cited.page - 1].split())


def test_short_coincidences_prove_nothing() -> None:
    assert locate("uno due tre quattro cinque", [("x", ["uno due tre quattro cinque sei"])]) == []
    assert locate("", [("x", ["a"])]) == []


def test_citations_are_few_and_short_and_a_covered_one_is_left_out() -> None:
    pages = [page(number) for number in range(60)]
    answer = " ".join(" ".join(text.split()[:8]) for text in pages)
    assert len(locate(answer, [("x", pages)])) == MOST
    [long] = locate(pages[0], [("x", [pages[0], " ".join(pages[0].split()[5:20])])])
    assert (long.page, len(long.passage or "")) == (1, MOST_PASSAGE)


def test_a_long_document_full_of_repetitions_takes_little_time() -> None:
    pages = ["la la la " * 500 for _ in range(100)]
    began = time.process_time()
    locate("la la la " * 2000, [("x", pages)])
    assert time.process_time() - began < 5


def test_what_the_engine_says_is_taken_once_and_nonsense_is_left_out() -> None:
    cited = b'{"type":"page_location","cited_text":"x  y","document_index":1,"start_page_number":3}'
    blocks = [
        Raw(b'{"type":"text","text":"a","citations":[' + cited + b"," + cited + b',7,{"document_index":"q"}]}'),
        Raw(
            b'{"type":"text","text":"a","citations":['
            + cited
            + b',{"cited_text":"z","document_title":"t","document_index":9}]}'
        ),
        Raw(b'{"type":"text","text":"a","citations":null}'),
        Raw(b"[]"),
        Raw(b'{"citations":"no"}'),
    ]
    assert told(blocks, ["a.pdf", "b.pdf"]) == [
        Citation(origin="engine", document="b.pdf", page=3, passage="x y"),
        Citation(origin="engine", document="t", passage="z"),
    ]


def test_a_file_that_is_to_be_cited_says_so_to_the_provider() -> None:
    part = FilePart(kind="document", media_type="application/pdf", data=b"%PDF", name="a.pdf")
    for cite in (True, False):
        request = ModelRequest(model="x", messages=(UserMessage(parts=(replace(part, cite=cite),)),))
        sent = json.decode(AnthropicDialect("http://x", None).encode(request))
        block = sent["messages"][0]["content"][0]
        assert block["type"] == "document"
        assert block.get("citations") == ({"enabled": True} if cite else None)
