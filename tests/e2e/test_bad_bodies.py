"""Bad input at every address of every door that takes JSON: one clear refusal, nothing stored, nothing left behind."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.json import check_depth, check_utf8, decode
from tests.aio import run
from tests.doors.atp.house import _digest
from tests.doors.pepper.asgi import Exchange
from tests.doors.responses.house import ENABLED, Answer, House, house, template
from tests.fakes.provider import Provider, answer
from tests.openapi.test_addresses import DOCUMENTS, concrete

from .test_budget import WHOLE

DEEP = 1_000
PLAIN = {"content-type": "application/json"}
# Contract 3 keeps 400 to refusals of its version header, and lists 422 wherever there is a body: not JSON is 422 there.
UNREADABLE = 422
GOOD = b'{"name":"x","model":"openclaw","messages":[{"role":"user","content":"x"}],"input":"x"}'
# Bytes that are no object, at no address.
BODIES: dict[str, tuple[bytes, dict[str, str]]] = {
    "nothing but blanks": (b"  \n", PLAIN),
    "half an object": (b'{"model":"x","messages":[{"role":"user","cont', PLAIN),
    "two objects": (b"{}{}", PLAIN),
    "a list": (b"[]", PLAIN),
    "null": (b"null", PLAIN),
    "text": (b'"x"', PLAIN),
    "a number": (b"5", PLAIN),
    "deep lists": (b"[" * DEEP + b"]" * DEEP, PLAIN),
    "deep lists without an end": (b"[" * 100_000, PLAIN),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, PLAIN),
    "deep in an unknown field": (b'{"zzz":' + b"[" * DEEP + b"]" * DEEP + b"}", PLAIN),
    "invalid UTF-8": (b'{"zzz":"\xff"}', PLAIN),
    "UTF-8 of a surrogate": (b'{"zzz":"\xed\xa0\x80"}', PLAIN),
    "UTF-16": ('{"zzz":1}'.encode("utf-16"), PLAIN),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, PLAIN),
    "a raw line break in a text": (b'{"zzz":"a\nb"}', PLAIN),
    "a lone surrogate for a name": (b'{"\\ud800":1}', PLAIN),
    "NaN": (b'{"zzz":NaN}', PLAIN),
    "a comment": (b'{"zzz":1 /* x */}', PLAIN),
    "a comma too many": (b'{"zzz":1,}', PLAIN),
    "single quotes": (b"{'zzz':1}", PLAIN),
    "a number too large": (b'{"zzz":1e400}', PLAIN),
    "a number too long": (b'{"zzz":' + b"9" * 5_000 + b"}", PLAIN),
    "a form": (b"model=x&messages=y", {"content-type": "application/x-www-form-urlencoded"}),
    "XML": (b"<model>x</model>", {"content-type": "application/xml"}),
    "a multipart form": (
        b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nx\r\n--b--\r\n',
        {"content-type": "multipart/form-data; boundary=b"},
    ),
    "packed": (gzip.compress(GOOD), PLAIN | {"content-encoding": "gzip"}),
}


def identity(home: House, path: str) -> dict[str, Any]:
    """Who asks, as each door wants it."""
    secrets = home.secrets
    if path.startswith("/api/v1"):
        return {"token": secrets.api_key, "headers": {"x-envai-contract-version": "3"} if "/atp/v3/" in path else {}}
    if path.startswith("/v1"):
        return {"token": ""}
    return {"token": None, "headers": {"x-pepper-key": secrets.project_key, "x-pepper-project": secrets.project}}


async def tell(
    home: House, method: str, path: str, raw: bytes, headers: dict[str, str] = PLAIN, length: int | None = None
) -> Answer:
    who = identity(home, path)
    who["headers"] = {**who.get("headers", {}), **headers, "content-length": str(length or len(raw))}
    return await home.ask(concrete(path), method=method, raw=raw, **who)


async def addresses(home: House) -> list[tuple[str, str]]:
    """Every method and path that takes JSON, by the documents; `/chats` only in the version that may write."""
    found = []
    for document in DOCUMENTS:
        paths = (await home.get(document, token=None)).json()["paths"]
        found += [
            (method.upper(), path)
            for path, item in paths.items()
            for method, operation in item.items()
            if "application/json" in operation.get("requestBody", {}).get("content", {})
        ]
    assert len(found) > 30
    return found


@asynccontextmanager
async def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """A house in which what happens inside the block must leave no trace."""
    template()  # made once, and kept
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    async with house(tmp_path, settings=ENABLED) as home:
        before = await home.service.database.read(_digest), files(home)
        yield home
        assert home.service.gateway.active == 0
        assert home.service.gateway.admission.running() == 0
        assert (await home.service.database.read(_digest), files(home)) == before
        assert not list(scratch.iterdir())


def files(home: House) -> list[str]:
    root = home.service.home.path
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and ".db" not in path.name)


def refused(answer: Answer, told: Any) -> str:
    """The sentence of a refusal that is the caller's fault."""
    assert 400 <= answer.status < 500 and answer.status not in (401, 403, 405, 426), (told, answer.status, answer.body)
    assert answer.headers["content-type"] == "application/json", told
    sentence = answer.error["message"]
    assert sentence and "msgspec" not in sentence and "Traceback" not in sentence, told
    return str(sentence)


def test_what_is_no_object_is_refused_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with untouched(tmp_path, monkeypatch) as home:
            for method, path in await addresses(home):
                for name, (raw, headers) in BODIES.items():
                    answer = await tell(home, method, path, raw, headers)
                    refused(answer, (method, path, name))
                    assert answer.status == (UNREADABLE if path.startswith("/api/v1") else 400), (path, name)

    run(work(), timeout=55)


class Halting(Exchange):
    """A caller that sends half of what it announced, and hangs up."""

    async def receive(self) -> dict[str, Any]:
        if not self._pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._pieces.pop(0), "more_body": True}


def test_a_body_that_stops_midway_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with untouched(tmp_path, monkeypatch) as home:
            monkeypatch.setattr("tests.doors.responses.house.Exchange", Halting)
            for method, path in await addresses(home):
                answer = await tell(home, method, path, GOOD, length=1_000)
                assert answer.status == 0, (method, path, answer.body)

    run(work(), timeout=55)


def nested(depth: int) -> str:
    return '{"a":' * depth + '"x"' + "}" * depth


def placed(place: str, inside: str) -> tuple[str, bytes]:
    """The address and the body with some JSON at a place."""
    path, make = (PLACES | ANSWERED)[place]
    text = json.dumps(make({"deep": 0})).replace('"deep": 0', f'"deep": {inside}')
    escaped = inside.replace("\\", "\\\\").replace('"', '\\"')  # in a text that is JSON itself
    return path, text.replace('\\"deep\\": 0', f'\\"deep\\": {escaped}').encode()


SCHEMA = {"type": "object", "properties": {}}
SAID = [{"role": "user", "content": "x"}]
# Good requests with one place for anything: a tool's schema, the form of the answer.
PLACES: dict[str, tuple[str, Any]] = {
    "agent tool": ("/agent", lambda it: {"messages": SAID, "tools": [{"name": "t", "parameters": SCHEMA | it}]}),
    "verify tool": (
        "/agent/verifica",
        lambda it: {"messages": SAID, "tools": [{"name": "t", "parameters": SCHEMA | it}]},
    ),
    "response tool": (
        "/v1/responses",
        lambda it: {
            "model": "openclaw",
            "input": "x",
            "tools": [{"type": "function", "name": "t", "parameters": SCHEMA | it}],
        },
    ),
    "response form": (
        "/v1/responses",
        lambda it: {
            "model": "openclaw",
            "input": "x",
            "text": {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA | it}},
        },
    ),
    "chat tool": (
        "/v1/chat/completions",
        lambda it: {
            "model": "openclaw",
            "messages": SAID,
            "tools": [{"type": "function", "function": {"name": "t", "parameters": SCHEMA | it}}],
        },
    ),
    "workspace": ("/api/v1/workspaces", lambda it: {"name": "x", "metadata": it}),
    "tool": ("/api/v1/tools", lambda it: {"name": "t", "description": "x", "parameters": SCHEMA | it}),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_too_deep_is_refused_wherever_anything_may_stand(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never a fault, at no depth; and never so deep that what was taken cannot be given on."""

    async def work() -> None:
        async with untouched(tmp_path, monkeypatch) as home:
            for depth in (200, 500, 800, 900, 950, 990, 1_000):
                path, body = placed(place, nested(depth))
                answer = await tell(home, "POST", path, body)
                if path == "/agent/verifica" and answer.status == 200:
                    assert answer.json()["accettata"] is False
                else:
                    assert refused(answer, (place, depth))

    run(work(), timeout=55)


POISON = {
    "half a surrogate": '"\\ud800"',
    "half a surrogate in a name": '{"\\udfff":1}',
    "a number too large": "1e999",
    "NaN": "NaN",
}


@pytest.mark.parametrize("place", PLACES)
def test_what_nobody_could_read_is_refused_wherever_anything_may_stand(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with untouched(tmp_path, monkeypatch) as home:
            for name, inside in POISON.items():
                path, body = placed(place, inside)
                answer = await tell(home, "POST", path, body)
                if path == "/agent/verifica" and answer.status == 200:
                    assert answer.json()["accettata"] is False
                else:
                    assert refused(answer, (place, name))

    run(work(), timeout=55)


# Calls of the past, which have their results: their conversation must go on, whatever a model once made of them.
ANSWERED: dict[str, tuple[str, Any]] = {
    "agent arguments": (
        "/agent",
        lambda it: {
            "messages": [
                *SAID,
                {"role": "assistant", "tool_calls": [{"id": "c", "name": "t", "arguments": it}]},
                {"role": "tool", "tool_call_id": "c", "content": "x"},
            ]
        },
    ),
    "response arguments": (
        "/v1/responses",
        lambda it: {
            "model": "openclaw",
            "input": [
                {"type": "function_call", "call_id": "c", "name": "t", "arguments": json.dumps(it)},
                {"type": "function_call_output", "call_id": "c", "output": "x"},
            ],
        },
    ),
    "chat arguments": (
        "/v1/chat/completions",
        lambda it: {
            "model": "openclaw",
            "messages": [
                *SAID,
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "t", "arguments": json.dumps(it)}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "content": "x"},
            ],
        },
    ),
}


@pytest.mark.parametrize("place", ANSWERED)
def test_arguments_that_nobody_could_read_reach_a_model_as_an_object_once_they_have_a_result(
    place: str, tmp_path: Path
) -> None:
    bad = POISON | {f"{depth} deep": nested(depth) for depth in (200, 900, 1_000)}

    async def work() -> None:
        async with Provider(answer(200, json.dumps(WHOLE).encode())) as provider:
            engine = {"kind": "openai-chat", "base_url": f"{provider.url}/v1"}
            async with house(tmp_path, engine=engine, model={"upstream": "m"}) as home:
                for name, inside in bad.items():
                    path, body = placed(place, inside)
                    told = await tell(home, "POST", path, body)
                    if told.status == 400 and path == "/agent" and name in (*POISON, "1000 deep"):
                        continue  # there arguments are JSON of the body itself, which nobody could read
                    assert told.status == 200, (place, name, told.body)
                    check_utf8(provider.requests[-1].body)
                    (asked,) = [one for one in provider.requests[-1].json()["messages"] if one.get("tool_calls")]
                    given = decode(asked["tool_calls"][0]["function"]["arguments"].encode())
                    assert isinstance(given, dict), (place, name)
                    check_depth([given], None)

    run(work(), timeout=50)


IGNORED = {
    "pieces": (
        "/agent",
        b'{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"x",'
        b'"blocchi":[{"type":"text","text":"x","more":%b}]},{"role":"user","content":"y"}]}',
    ),
    "an unknown field": ("/agent", b'{"messages":[{"role":"user","content":"x"}],"more":%b}'),
    "a summary": (
        "/v1/responses",
        b'{"model":"openclaw","input":[{"type":"reasoning","summary":[%b]},{"role":"user","content":"y"}]}',
    ),
    "an unknown field of a response": ("/v1/responses", b'{"model":"openclaw","input":"x","more":%b}'),
}


@pytest.mark.parametrize("place", IGNORED)
def test_what_is_ignored_is_ignored_at_any_depth_that_can_be_read(place: str, tmp_path: Path) -> None:
    """Nobody's to look into, such as `blocchi` that are not recognised: left out, or refused as too much; no fault."""

    async def work() -> None:
        path, body = IGNORED[place]
        async with house(tmp_path) as home:
            found = [
                (await tell(home, "POST", path, body % (b"[" * depth + b"]" * depth))).status
                for depth in (200, 800, 900, 950, 970, 980, 990, 1_000, 100_000)
            ]
            assert set(found) == {200, 400} and found == sorted(found), found

    run(work(), timeout=50)


# What looks the same is the same, whichever way a keyboard or a file system spells it.
COMPOSED, DECOMPOSED = "caff\u00e8", "caffe\u0300"


def test_names_that_differ_only_in_form_are_one_name(tmp_path: Path) -> None:
    agents = f'[[agents]]\nname = "{COMPOSED}"\nmode = "subagent"\nmodel = "Pepper mini"\n'
    recipes = '[[recipes]]\nencode = "r"\ninstructions = "x"\n'

    async def work() -> None:
        async with house(tmp_path, declared=agents + recipes) as home:
            for name in (COMPOSED, DECOMPOSED):
                body = json.dumps({"model": f"openclaw/{name}", "messages": SAID}, ensure_ascii=False).encode()
                assert (await tell(home, "POST", "/v1/chat/completions", body)).status == 200
            said = [await talk(home, name) for name in (COMPOSED, DECOMPOSED)]
            assert said[1] > said[0], "the second call remembers the first"
            for path, more in (("/workspaces", {}), ("/agents", {"mode": "primary", "system_prompt": "x"})):
                first, second = [
                    await tell(home, "POST", f"/api/v1{path}", json.dumps({"name": name, **more}).encode())
                    for name in ("Sal\u00f2", "Salo\u0300")
                ]
                told = (path, first.body, second.body)
                assert first.status == 201, told
                same = second.status in (409, 422) or second.json()["data"]["name"] == first.json()["data"]["name"]
                assert same, told

    run(work(), timeout=50)


async def talk(home: House, name: str) -> int:
    """One classic call in a conversation; the tokens that the model read."""
    body = json.dumps({"encode": "r", "contenuto": "ciao", "conversazione": name}).encode()
    answer = await tell(home, "POST", "/api.php", body)
    assert answer.status == 200, answer.body
    assert answer.json()["conversazione"] == COMPOSED
    return int(answer.json()["usage"]["input_tokens"])


INJECTED = "a%0d%0ax-evil:%20yes%0d%0a"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_nothing_of_a_request_becomes_a_header_of_the_answer(document: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with house(tmp_path) as home:
            paths = (await home.get(document, token=None)).json()["paths"]
            for path, item in paths.items():
                for method in item:
                    who = identity(home, path)
                    who["headers"] = {**who.get("headers", {}), "x-request-id": "a\r\nx-evil: yes"}
                    address = f"{path.replace('{', '').replace('}', '')}?f={INJECTED}&path={INJECTED}&name={INJECTED}"
                    answer = await home.ask(address, method=method.upper(), raw=GOOD, **who)
                    for name, value in answer.headers.items():
                        assert name != "x-evil" and not {"\r", "\n", "\0"} & set(name + value), (path, method, name)

    run(work(), timeout=50)
