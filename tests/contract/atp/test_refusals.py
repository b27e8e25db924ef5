"""Who may ask, which version is spoken, and what is never read to its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crocevia.asgi.answers import refuse
from crocevia.asgi.document import document as document_of
from crocevia.asgi.http import Operation, Response
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.doors.atp import negotiation
from crocevia.doors.atp.caller import Request, VersionRule
from crocevia.doors.atp.document import ABOUT
from tests.contract.requirements import requirement
from tests.doors.atp.contract import document, operations
from tests.doors.atp.house import THREE, VERSION, House, live, site_of

WIKI = [row for row in operations() if "Wiki" in row[0]]


@requirement("A-AUTH-1")
def test_every_way_of_having_no_key_is_the_same_401() -> None:
    async def work(place: House) -> None:
        key = place.ada.key
        other_end = key[:-4] + ("AAAA" if not key.endswith("AAAA") else "BBBB")
        wrong: list[list[tuple[str, str]]] = [
            [],
            [("authorization", "")],
            [("authorization", "Bearer")],
            [("authorization", f"Basic {key}")],
            [("authorization", f"Bearer {key}x")],
            [("authorization", f"Bearer {other_end}")],
            [("authorization", f"Bearer {key.lower()}")],
            [("authorization", "Bearer envai_sk_" + "0" * 26 + key[35:])],
            [("authorization", "Bearer " + "x" * 5000)],
            [("authorization", "Bearer caffè")],
            [("authorization", f"Bearer {key}"), ("authorization", f"Bearer {key}")],
        ]
        bodies = set()
        for headers in wrong:
            reply = await place.call("GET", "/workspaces", key=None, headers=headers)
            assert (reply.status, reply.header("www-authenticate")) == (401, "Bearer")
            bodies.add(reply.raw)
        assert len(bodies) == 1
        assert (
            await place.call("GET", "/workspaces", key=None, headers=[("authorization", f"bearer  {key}")])
        ).status == 200

    live(work)


@requirement("A-AUTH-3")
def test_a_cookie_is_no_key_and_no_such_way_in_is_documented() -> None:
    async def work(place: House) -> None:
        without = await place.call("GET", "/workspaces", key=None)
        for value in ("session=x", f"session={place.ada.key}", f"authorization=Bearer {place.ada.key}"):
            reply = await place.call("GET", "/workspaces", key=None, headers=[("cookie", value)])
            assert (reply.status, reply.raw) == (401, without.raw)
        schemes = document_of(ABOUT, place.door.doors[0].table)["components"]["securitySchemes"]
        assert [scheme["type"] for scheme in schemes.values()] == ["http"]

    live(work)


@requirement("A-AUTH-2")
def test_anybody_may_ask_for_health_and_the_keys() -> None:
    async def work(place: House) -> None:
        up = await place.call("GET", "/up", key=None)
        assert (up.status, up.data["status"], up.data["app"]) == (200, "ok", "crocevia")
        keys = (await place.call("GET", "/.well-known/jwks.json", key=None)).json["keys"]
        assert set(keys[0]) == {"kty", "crv", "x", "kid", "use", "alg"}

    live(work)


@requirement("A-ERR-3")
@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_3:4", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("è", False)]
)
def test_a_request_id_that_may_travel_is_kept_and_any_other_replaced(given: str, kept: bool) -> None:
    async def work(place: House) -> None:
        for path in ("/workspaces", "/nowhere"):
            reply = await place.call("GET", path, headers={"x-request-id": given})
            assert (reply.header("x-request-id") == given) is kept

    live(work)


async def _spoken(request: Request) -> Response:
    return Response(200, {"version": request.caller.version and request.caller.version.name})


NEGOTIATED = tuple(Operation(rule.name, "GET", f"/{rule.name}", _spoken, "", rule=rule) for rule in VersionRule)


@requirement("A-NEG-1", "A-NEG-2")
@pytest.mark.parametrize("values", [[], ["2"], ["3"], [" 3 "], ["4"], [""], ["3,3"], ["3", "3"], ["2", "3"], ["three"]])
@pytest.mark.parametrize("rule", VersionRule)
def test_every_rule_answers_every_header_as_the_table_says(rule: VersionRule, values: list[str]) -> None:
    column = {(): 0, ("2",): 1, ("3",): 2, (" 3 ",): 2}.get(tuple(values))

    async def work(place: House) -> None:
        place.door, place.strict = site_of(place.control, NEGOTIATED), False
        reply = await place.call("GET", f"/{rule.name}", headers=[(VERSION, value) for value in values])
        if rule is VersionRule.PLAIN:
            assert (reply.status, reply.json, reply.all(VERSION)) == (200, {"version": None}, [])
            return
        assert len(reply.all(VERSION)) == 1 and reply.all("vary") == ["X-Envai-Contract-Version"]
        chosen = None if column is None else negotiation.TABLE[rule][column]
        if column is None:
            assert (reply.status, reply.json["error"]["code"]) == (400, "unsupported_contract_version")
        elif chosen is None:
            assert (reply.status, reply.json["error"]["code"]) == (426, "contract_upgrade_required")
            assert reply.header("x-envai-required-contract-version") == "3"
        else:
            assert (reply.status, reply.json) == (200, {"version": chosen.name})
            assert reply.header(VERSION) == str(chosen.number)

    live(work)


@requirement("A-NEG-2")
def test_refusals_of_negotiated_operations_acknowledge_too() -> None:
    async def work(place: House) -> None:
        path = f"/workspaces/{place.made.workspace_id}/chats/cht_x/completions"
        for key, status in ((None, 401), ("", 404)):
            reply = await place.call("GET", path, key=key, headers=THREE)
            assert (reply.status, reply.all(VERSION)) == (status, ["3"] if key is not None else ["2"])

    live(work)


@requirement("A-WIKI-1")
@pytest.mark.parametrize("row", WIKI, ids=lambda row: row[0])
def test_wiki_operations_are_not_there_in_the_form_of_the_contract(row: tuple[str, str, str]) -> None:
    _, method, path = row

    async def work(place: House) -> None:
        reply = await place.call(method, path.replace("{", "").replace("}", ""), headers=THREE)
        assert (reply.status, reply.json["error"]["type"]) == (404, "not_found")

    live(work)


DEEP = b'{"name":"a","metadata":' + b'{"a":' * 1000 + b"1" + b"}" * 1001
BODIES: list[tuple[list[bytes], int, str | None]] = [
    ([b""], 422, None),
    ([b"{"], 422, None),
    ([b"[]"], 422, None),
    ([b"null"], 422, None),
    ([b'"a"'], 422, None),
    ([b'{"name":"\xff"}'], 422, None),
    ([b'{"name":"\\ud800"}'], 422, None),
    ([b'{"name":NaN}'], 422, None),
    ([b'{"name":1e400}'], 422, None),
    ([DEEP], 422, None),
    ([b'{"name":"a","metadata":' + b'{"a":' * 62 + b"1" + b"}" * 63], 201, None),
    ([b'{"name":"a","metadata":' + b'{"a":' * 64 + b"1" + b"}" * 65], 422, None),
    ([b'{"name":"a","metadata":' + b"[" * 100_000], 422, None),
    ([b'{"na', b'me":"a"}'], 201, None),
    ([b'{"name":"a"}' + b" " * (1024 * 1024)], 413, None),
    ([b'{"name":"a"}', *[b" " * 65536] * 17], 413, "chunked"),
    ([b'{"name":"a","name":"b"}'], 201, None),
    ([b'{"name":"a","metadata":{"n":123456789012345678901234567890,"z":"\\u0000"}}'], 201, None),
]


@requirement("A-BODY-1")
@pytest.mark.parametrize(("pieces", "status", "coding"), BODIES, ids=[str(index) for index in range(len(BODIES))])
def test_bodies_are_bounded_in_size_and_depth(pieces: list[bytes], status: int, coding: str | None) -> None:
    async def work(place: House) -> None:
        headers = [("transfer-encoding", coding), ("content-length", "")] if coding else []
        reply = await place.call("POST", "/workspaces", raw=pieces, headers=headers)
        assert reply.status == status, reply.raw
        if status == 201:  # what was taken can be given back
            assert (await place.call("GET", "/workspaces")).data[-1] == reply.data

    live(work)


@requirement("A-BODY-1")
def test_a_body_that_stops_midway_changes_nothing_and_is_not_answered() -> None:
    async def work(place: House) -> None:
        before = await place.stored()
        sent: list[Any] = []
        messages = [{"type": "http.request", "body": b'{"name":', "more_body": True}, {"type": "http.disconnect"}]

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/workspaces",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {place.ada.key}".encode()), (b"content-length", b"50")],
        }
        await place.door(scope, receive, send)
        assert (sent, await place.stored()) == ([], before)

    live(work)


@requirement("A-ERR-1", "A-ERR-2")
@pytest.mark.parametrize("code", Code)
def test_every_code_has_its_place_in_the_contract(code: Code) -> None:
    async def work(place: House) -> Response:
        return refuse(place.door.doors[0], GatewayError(Reason(code), allowed="GET"))

    answer: Response = live(work)
    kinds = document(3)["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["type"]["enum"]
    error = json.loads(json.dumps(answer.content))["error"]
    assert error["type"] in kinds and error["message"]
    headers = dict(answer.headers)
    if answer.status == 429:
        assert set(error) == {"type", "message"}
        assert int(headers[b"retry-after"]) >= 1
    else:
        assert error["details"] is None


@requirement("A-ERR-2")
def test_more_keys_than_sixty_a_minute_are_refused_and_counted_per_user() -> None:
    async def work(place: House) -> None:
        answers = [await place.ask("POST", "/api-keys", {"name": ""}) for _ in range(61)]
        assert {reply.status for reply in answers[:60]} == {422}
        assert answers[60].status == 429
        place.check("POST", "/api-keys", answers[60])
        assert 1 <= int(answers[60].header("retry-after")) <= 60
        assert (await place.call("POST", "/api-keys", {"name": "k"}, key=place.eve.key)).status == 201

    live(work)


@requirement("A-ERR-1")
def test_addresses_and_methods_that_are_not_there_say_so_in_the_same_form() -> None:
    async def work(place: House) -> None:
        for path in ("/nowhere", "/workspaces/", "//workspaces", "/workspaces/%ff", "/Workspaces", "/tools/a/b"):
            assert (await place.call("GET", path)).status == 404, path
        reply = await place.call("PATCH", "/workspaces")
        assert (reply.status, reply.header("allow")) == (405, "GET, POST")
        assert reply.all("x-envai-contract-version") == []
        chat = f"/workspaces/{place.made.workspace_id}/chats/cht_01j5abcdefghjkmnpqrstvwxyz"
        for path, said, acknowledged in (
            (f"{chat}/attachments", {VERSION: "3"}, "3"),
            (f"{chat}/attachments", {VERSION: "9"}, "3"),
            (f"{chat}/completions", {}, "2"),
            (f"{chat}/completions", {VERSION: "2"}, "2"),
            (f"{chat}/completions", {VERSION: "3"}, "3"),
        ):
            reply = await place.call("PUT", path, headers=said)
            assert (reply.status, reply.all("x-envai-contract-version")) == (405, [acknowledged]), path
        assert (
            await place.call("GET", f"/workspaces/{place.made.workspace_id}/chats?per_page=1&per_page=2")
        ).status == 422
        assert (await place.call("GET", "/workspaces?" + "&".join("a=1" for _ in range(80)))).status == 422
        assert (await place.call("GET", "/workspaces?a=%ff")).status == 422

    live(work)


@requirement("A-ERR-1")
def test_a_fault_of_ours_is_a_500_that_says_nothing() -> None:
    async def broken(request: Request) -> Response:
        raise RuntimeError("the password is hunter2")

    async def work(place: House) -> None:
        place.door, place.strict = site_of(place.control, (Operation("x", "GET", "/x", broken, ""),)), False
        reply = await place.call("GET", "/x")
        assert (reply.status, reply.json["error"]["type"]) == (500, "server_error")
        assert b"hunter2" not in reply.raw

    live(work)


@requirement("A-BODY-1")
def test_a_refused_caller_is_answered_before_its_body_is_read() -> None:
    async def work(place: House) -> None:
        taken = 0

        async def receive() -> Any:
            nonlocal taken
            taken += 65536
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"x" * 65536, "more_body": taken < 4 * 1024 * 1024}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"4194304")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/workspaces",
            "query_string": b"",
            "headers": headers,
        }
        await place.door(scope, receive, send)
        assert (sent[0]["status"], taken) == (401, 0)

    live(work)
