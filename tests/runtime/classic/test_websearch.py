"""The search backend over a real socket: what is asked, what is taken, and every way it can fail."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Raw

from crocevia.app.classic import _search
from crocevia.config import Search
from crocevia.core.errors import Code, GatewayError
from crocevia.core.messages import ToolCall
from crocevia.engines.upstream.http import HttpClient
from crocevia.runtime.classic.websearch import MOST_EXCERPT, MOST_QUERY, TOOL, WebSearch
from tests.aio import run
from tests.fakes.provider import CUT, Play, Provider, answer, play, silence

RESULTS = {
    "query": "x",
    "results": [
        {"url": f"https://example.com/{number}", "title": f"t{number}", "content": "c" * 5000, "score": 1.5}
        for number in range(30)
    ],
}


def searching(backend: Provider, http: HttpClient, **settings: object) -> WebSearch:
    made = _search(Search(url=f"{backend.url}/", **settings), http)  # type: ignore[arg-type]  # the settings' own types
    assert made is not None
    return made


def test_the_backend_is_asked_as_searxng_expects_and_results_are_bounded() -> None:
    async def work() -> None:
        http = HttpClient()
        async with Provider(answer(200, json.dumps(RESULTS).encode())) as backend:
            pages = await searching(backend, http, results=3, language="it").search("meteo & Roma? " + "x" * 900)
            assert [page.title for page in pages] == ["t0", "t1", "t2"]
            assert all(len(page.excerpt) == MOST_EXCERPT for page in pages)
            asked = urlsplit(backend.requests[0].path)
            query = parse_qs(asked.query)
            assert (asked.path, query["format"], query["language"]) == ("/search", ["json"], ["it"])
            assert query["q"][0].startswith("meteo & Roma? ") and len(query["q"][0]) == MOST_QUERY
        await http.close()

    run(work())


@pytest.mark.parametrize(
    "reply",
    [
        answer(500, b"{}"),
        answer(403, b"no"),
        answer(302, b"", Location="http://127.0.0.1:1/"),
        answer(200, b"<html>"),
        answer(200, b"[1]"),
        answer(200, b'{"results":[{"url":7}]}'),
        answer(200, b'{"results":' + b"[" * 100_000),
        answer(200, b'{"results":["' + b"x" * 3_000_000 + b'"]}'),
        play(b'{"resu', CUT),
        silence(),
    ],
)
def test_a_backend_that_fails_is_a_value_for_the_model(reply: Play) -> None:
    async def work() -> None:
        http = HttpClient()
        async with Provider(reply) as backend:
            search = searching(backend, http, timeout_seconds=2)
            with pytest.raises(GatewayError) as caught:
                await search.search("x")
            assert caught.value.code is Code.UPSTREAM_FAILED
            told, pages, failed = await search.run(ToolCall(id="1", name=TOOL.name, arguments=Raw(b'{"query":"x"}')))
            assert failed and pages == [] and "error" in json.loads(told)
        await http.close()

    run(work(), timeout=20)


def test_a_backend_that_never_answers_is_given_up_in_time() -> None:
    async def work() -> None:
        http = HttpClient()
        never = asyncio.Event()
        async with Provider(silence(never)) as backend:
            with pytest.raises(GatewayError):
                await asyncio.wait_for(searching(backend, http, timeout_seconds=0.2).search("x"), 5)
        await http.close()

    run(work())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("other", b'{"query":"x"}'), (TOOL.name, b"{}"), (TOOL.name, b'{"query":" "}'), (TOOL.name, b'{"query":7}')],
)
def test_a_call_that_makes_no_sense_searches_nothing(name: str, arguments: bytes) -> None:
    async def work() -> None:
        async def get(url: str) -> bytes:
            raise AssertionError

        search = WebSearch("http://x", get)
        _, pages, failed = await search.run(ToolCall(id="1", name=name, arguments=Raw(arguments)))
        assert failed and pages == []

    run(work())


def test_without_an_address_there_is_no_search() -> None:
    assert _search(Search(), HttpClient()) is None
