"""The front hall: a door in a few lines, what every answer carries, pages of other origins, and whom a proxy names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crocevia.asgi.http import Front
from crocevia.asgi.site import Site
from crocevia.core.forwarding import networks
from tests.aio import run

from .echo_door import echo_door

FRONT = Front(ping_seconds=0.02)
KEY = {"x-echo-key": "open"}


class Answer:
    """What came of a request."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status: int = messages[0]["status"]
        self.lines = [(name.decode(), value.decode()) for name, value in messages[0]["headers"]]
        self.headers = dict(self.lines)
        self.body = b"".join(message.get("body", b"") for message in messages[1:])
        assert not messages[-1].get("more_body")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(path: str, body: bytes = b"", *, method: str = "POST", front: Front = FRONT, **more: Any) -> Answer:
    """One request. more: `peer`, and headers."""
    headers = {**KEY, **more.pop("headers", {})}
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": query.encode(),
        "client": (more.pop("peer", "198.51.100.9"), 1),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if value is not None],
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    run(Site((echo_door(),), front)(scope, receive, send))
    return Answer(sent)


def test_a_door_is_a_table_an_authenticator_an_error_table_a_decoder_and_an_encoder() -> None:
    assert ask("/echo", b'{"say":"hi"}').json == {"said": "hi"}
    assert ask("/echo/up", method="GET", headers={"x-echo-key": None}).json == {"up": True}
    stream = ask("/echo", b'{"say":"hi","stream":true}')
    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    frames = stream.body.split(b"\n\n")
    assert [frame for frame in frames if frame != b": ping"] == [b"data: h", b"data: i", b""]
    assert frames[0] == b"data: h" and b": ping" in frames


REFUSALS: list[tuple[str, str, bytes, dict[str, Any], int, str, dict[str, str]]] = [
    ("POST", "/echo", b"{}", {"x-echo-key": None}, 401, "who", {"www-authenticate": "Echo"}),
    ("POST", "/echo", b"{}", {"x-echo-key": "shut"}, 401, "who", {"www-authenticate": "Echo"}),
    ("POST", "/echo", b"{", {}, 400, "what", {}),
    ("POST", "/echo", b'{"say":1}', {}, 400, "what", {}),
    ("POST", "/echo?a=%ff", b'{"say":"hi"}', {}, 400, "what", {}),
    ("POST", "/echo", b'{"say":"%s"}' % (b"x" * 200), {}, 413, "large", {"connection": "close"}),
    ("POST", "/echo", b'{"say":"later"}', {}, 503, "later", {"retry-after": "7"}),
    ("POST", "/echo", b'{"say":"crash"}', {}, 500, "ours", {}),
    ("POST", "/echo", b'{"say":"crash","stream":true}', {}, 500, "ours", {}),
    ("PUT", "/echo", b"", {}, 405, "how", {"allow": "POST"}),
    ("POST", "/echo/up", b"", {}, 405, "how", {"allow": "GET, HEAD"}),
    ("GET", "/echo/nowhere", b"", {}, 404, "where", {}),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status", "word", "more"), REFUSALS)
def test_a_refusal_is_a_row_of_the_error_table_with_what_its_status_needs(
    method: str, path: str, body: bytes, headers: dict[str, Any], status: int, word: str, more: dict[str, str]
) -> None:
    answer = ask(path, body, method=method, headers=headers)
    assert (answer.status, answer.json) == (status, {"error": word})
    assert answer.headers.items() >= more.items()


@pytest.mark.parametrize(("given", "kept"), [("a-1~", True), ("x" * 128, True), ("x" * 129, False), ("a b", False)])
@pytest.mark.parametrize(
    ("path", "body"),
    [("/echo", b'{"say":"hi"}'), ("/echo", b'{"say":"hi","stream":true}'), ("/no", b""), ("/echo", b"")],
)
def test_every_answer_has_an_id_and_keeps_browsers_from_guessing(
    path: str, body: bytes, given: str, kept: bool
) -> None:
    answer = ask(path, body, headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) is kept
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["referrer-policy"] == "no-referrer"
    names = [name for name, _ in answer.lines]
    assert len(names) == len(set(names)) and "access-control-allow-origin" not in names


def test_two_requests_without_an_id_have_two() -> None:
    ids = {ask("/echo/up", method="GET").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


ORIGIN = {"origin": "https://app.example"}
PREFLIGHT = {
    **ORIGIN,
    "x-echo-key": None,
    "access-control-request-method": "POST",
    "access-control-request-headers": "x-echo-key, content-type",
}


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [((), None), (("https://other.example",), None), (("https://app.example",), "https://app.example"), (("*",), "*")],
)
def test_pages_of_named_origins_alone_may_ask_and_read(origins: tuple[str, ...], allowed: str | None) -> None:
    front = Front(cors_origins=origins)
    asked = ask("/echo", method="OPTIONS", headers=PREFLIGHT, front=front)
    if allowed is None:
        assert asked.status == 405
    else:
        assert (asked.status, asked.body) == (204, b"")
        assert asked.headers["access-control-allow-methods"] == "POST"
        assert asked.headers["access-control-allow-headers"] == "x-echo-key, content-type"
    for body in (b'{"say":"hi"}', b"{", b'{"say":"hi","stream":true}'):
        answer = ask("/echo", body, headers=ORIGIN, front=front)
        assert answer.headers.get("access-control-allow-origin") == allowed
        if allowed is not None:
            assert "X-Request-Id" in answer.headers["access-control-expose-headers"]
            assert answer.headers["vary"] == "Origin" and "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("peer", "headers", "client", "origin"),
    [
        ("198.51.100.9", {"x-forwarded-for": "9.9.9.9", "x-forwarded-host": "evil"}, "198.51.100.9", "http://own:1"),
        ("192.0.2.1", {}, "192.0.2.1", "http://own:1"),
        ("192.0.2.1", {"x-forwarded-for": "9.9.9.9"}, "9.9.9.9", "http://own:1"),
        ("192.0.2.1", {"x-forwarded-for": "8.8.8.8, 9.9.9.9, 192.0.2.3"}, "9.9.9.9", "http://own:1"),
        ("192.0.2.1", {"forwarded": 'for="[2001:db8::1]:80";proto=https'}, "2001:db8::1", "http://own:1"),
        (
            "192.0.2.1",
            {"x-forwarded-proto": "https", "x-forwarded-host": "a.example"},
            "192.0.2.1",
            "https://a.example",
        ),
        ("192.0.2.1", {"x-forwarded-proto": "gopher", "x-forwarded-host": "a/b"}, "192.0.2.1", "http://localhost"),
        ("192.0.2.1", {"x-forwarded-for": "nonsense"}, "None", "http://own:1"),
    ],
)
def test_forwarding_headers_are_believed_from_trusted_proxies_only(
    peer: str, headers: dict[str, str], client: str, origin: str
) -> None:
    front = Front(proxies=networks(["192.0.2.0/24"]))
    answer = ask("/echo/from", method="GET", peer=peer, headers={"host": "own:1", **headers}, front=front)
    assert answer.json == {"client": client, "origin": origin}


def test_what_is_said_to_be_the_public_address_is_it() -> None:
    front = Front(public_url="https://public.example/")
    answer = ask("/echo/from", method="GET", headers={"host": "own:1"}, front=front)
    assert answer.json["origin"] == "https://public.example"
