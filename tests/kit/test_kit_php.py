"""`GET /kit.php`: two files, a version, the name of a model, and nothing that anybody could learn a secret from."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from crocevia import kit
from tests.aio import run
from tests.app.serving import read_answer, request, serving
from tests.doors.pepper.house import house, site_of

MODELS = {"casa": "Pepper 7", "officina è": "Pepper 6"}


def ask(query: bytes | str = b"", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": "/kit.php",
        "query_string": query.encode() if isinstance(query, str) else query,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    run(site_of(house().gateway, **MODELS)(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(("short", "kind"), [("js", "text/javascript"), ("css", "text/css")])
def test_a_file_comes_with_its_tag_and_is_kept_by_the_browser(short: str, kind: str) -> None:
    status, headers, body = ask(f"f={short}")
    assert (status, headers["content-type"], body) == (200, f"{kind}; charset=utf-8", kit.load()[short].content)
    assert headers["cache-control"] == "public, no-cache" and headers["content-length"] == str(len(body))
    tag = headers["etag"]
    assert tag.startswith('"') and tag.endswith('"')
    for held in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = ask(f"f={short}", if_none_match=held)
        assert (again[0], again[2], again[1]["etag"]) == (304, b"", tag)
        assert again[1]["cache-control"] == "public, no-cache" and again[1]["access-control-allow-origin"] == "*"
    assert ask(f"f={short}", if_none_match='"other"')[0] == 200


def test_the_tags_of_the_two_files_differ() -> None:
    assert len({file.etag for file in kit.load().values()}) == 2


def test_without_parameters_it_says_which_kit_there_is() -> None:
    status, headers, body = ask()
    assert status == 200 and headers["content-type"] == "application/json"
    assert json.loads(body) == {"versione": kit.version()}
    assert kit.version().startswith(kit.RELEASE + "+")


@pytest.mark.parametrize("name", MODELS)
def test_a_project_is_answered_with_the_name_of_its_model(name: str) -> None:
    status, _, body = ask(urlencode({"progetto": name}))
    assert (status, json.loads(body)) == (200, {"modello": MODELS[name]})


@pytest.mark.parametrize("name", ["", "nobody", "CASA", "casa ", "../casa", "%00", "x" * 5000])
def test_an_unknown_project_is_answered_like_a_known_one(name: str) -> None:
    known, unknown = ask(urlencode({"progetto": "casa"})), ask(urlencode({"progetto": name}))
    assert (unknown[0], json.loads(unknown[2])) == (200, {"modello": None})
    own = {"content-length", "x-request-id"}
    assert {name: value for name, value in unknown[1].items() if name not in own} == {
        name: value for name, value in known[1].items() if name not in own
    }


@pytest.mark.parametrize("query", ["", "f=js", "progetto=casa", "f=nothing", "f=js&progetto=casa"])
def test_every_page_may_read_it_and_none_with_its_cookies(query: str) -> None:
    headers = ask(query)[1]
    assert headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in headers and "set-cookie" not in headers


@pytest.mark.parametrize("query", ["f=", "f=exe", "f=../app", "f=JS", "f=pepper-chat.js"])
def test_another_file_is_not_there(query: str) -> None:
    status, headers, body = ask(query)
    assert (status, headers["content-type"]) == (404, "application/json")
    assert json.loads(body)["error"]["code"] == "non_trovato"


@pytest.mark.parametrize("query", [b"\xff\xfe=1", b"progetto=%ff%fe", b"&&&", b"f", b"=", b"a=" + b"%" * 100])
def test_odd_queries_are_answered(query: bytes) -> None:
    assert ask(query)[0] in (200, 404)


def test_a_flood_of_parameters_is_refused() -> None:
    assert ask("&".join(f"a{n}=1" for n in range(5000)))[0] == 400


def test_head_has_the_headers_and_no_body() -> None:
    whole, head = (ask("f=js", method, x_request_id="same") for method in ("GET", "HEAD"))
    assert (head[0], head[1], head[2]) == (200, whole[1], b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_is_only_read(method: str) -> None:
    status, headers, body = ask("f=js", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert json.loads(body)["error"]["code"] == "metodo_non_valido"


def test_a_server_answers_it_without_a_key() -> None:
    async def check() -> None:
        async with serving() as place:
            for query, expected in (
                ("?progetto=casa", {"modello": "Pepper 7"}),
                ("?progetto=altra", {"modello": None}),
                ("", {"versione": kit.version()}),
            ):
                async with place.open() as (reader, writer):
                    blank = {"x-pepper-key": "", "x-pepper-project": ""}
                    writer.write(request(f"/kit.php{query}", b"", "GET", **blank))
                    status, _, body = await asyncio.wait_for(read_answer(reader), 10)
                assert (status, json.loads(body)) == (200, expected)

    run(check(), timeout=30)
