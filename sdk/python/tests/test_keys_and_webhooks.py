"""Key discovery under rotation and flood, and webhooks that come late, twice and out of order."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest
from scenario import load

import envai_client as sdk
from envai_client.core import Core
from envai_client.keys import KeyRing, read_signature, signed_tool_bytes
from envai_client.options import RetryPolicy, read_options
from envai_client.sync_driver import SyncDriver
from envai_client.webhooks import KINDS, receive_webhook, verify_webhook

SIGNED = load("ed25519/vectors.json")
HOOKS = load("webhooks/vectors.json")
KEYS = {key["kid"]: key["jwk"] for key in SIGNED["keys"]}
GOOD = SIGNED["tool_requests"][0]["request"]
MESSAGE = signed_tool_bytes(GOOD["call_id"], GOOD["tool_name"], GOOD["args"])
SIG = GOOD["signature"]["sig"]


class Origin:
    """Serves a key set that can be changed, and counts."""

    def __init__(self, *kids: str) -> None:
        self.kids = kids
        self.status = 200
        self.hangs = False
        self.garbage: bytes | None = None
        self.fetches = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.fetches += 1
        if self.hangs:
            raise httpx2.ReadTimeout("no answer")
        if self.garbage is not None:
            return httpx2.Response(200, content=self.garbage)
        return httpx2.Response(self.status, json={"keys": [KEYS[kid] for kid in self.kids]})


def ring(origin: Origin, **options: Any) -> tuple[KeyRing, SyncDriver]:
    settings = read_options(
        api_key=None, base_url="http://x", jwks_url=None, sdk_name=None, retry=RetryPolicy(max_retries=0)
    )
    core = Core(settings)
    return KeyRing(core, "getJwks", **options), SyncDriver(core, httpx2.MockTransport(origin))


def test_a_flood_of_unknown_kids_costs_one_refresh_and_no_known_key() -> None:
    origin = Origin("sig_a")
    keys, driver = ring(origin)
    for number in range(1000):
        with pytest.raises(sdk.SignatureError):
            driver.run(keys.verify(f"sig_{number}", SIG, MESSAGE))
        if number % 100 == 0:
            driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 2  # the first one, and one forced


def test_a_refresh_that_fails_keeps_the_known_keys() -> None:
    origin = Origin("sig_a")
    keys, driver = ring(origin)
    driver.run(keys.verify("sig_a", SIG, MESSAGE))
    origin.status = 500
    with pytest.raises(sdk.ServerError):
        driver.run(keys.verify("sig_b", SIG, MESSAGE))
    driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 2


TROUBLES = {
    "500": {"status": 500},
    "404": {"status": 404},
    "hanging": {"hangs": True},
    "garbage": {"garbage": b"<html>"},
    "null": {"garbage": b"null"},
    "no keys": {"garbage": b'{"keys": []}'},
    "no usable keys": {"garbage": b'{"keys": [{"kty":"RSA","crv":"","x":"","kid":"sig_a","use":"sig","alg":"RS256"}]}'},
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_good_key_stays_good_while_no_better_set_can_be_had(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("envai_client.clock.source", lambda: now[0])
    origin = Origin("sig_a")
    keys, driver = ring(origin)
    driver.run(keys.verify("sig_a", SIG, MESSAGE))
    for name, value in TROUBLES[trouble].items():
        setattr(origin, name, value)
    now[0] += 301  # beyond the TTL
    for _ in range(100):
        driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 2, "one attempt per cool-down"
    now[0] += 11
    driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 3
    origin.status, origin.hangs, origin.garbage = 200, False, None
    origin.kids = ("sig_b",)
    now[0] += 11
    with pytest.raises(sdk.SignatureError):
        driver.run(keys.verify("sig_a", SIG, MESSAGE))  # a set that came, and has another key, replaces the old one


def test_keys_that_were_never_there_are_a_failure_that_says_so_and_is_tried_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("envai_client.clock.source", lambda: now[0])
    origin = Origin("sig_a")
    origin.status = 500
    keys, driver = ring(origin)
    for _ in range(10):
        with pytest.raises(sdk.ServerError, match="getJwks"):
            driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 1
    origin.status = 200
    now[0] += 1.1
    driver.run(keys.verify("sig_a", SIG, MESSAGE))


def test_after_the_cool_down_a_rotation_is_found() -> None:
    origin = Origin("sig_b")
    keys, driver = ring(origin, cool_down=0.0)
    with pytest.raises(sdk.SignatureError, match="unknown"):
        driver.run(keys.verify("sig_a", SIG, MESSAGE))
    origin.kids = ("sig_a", "sig_b")
    driver.run(keys.verify("sig_a", SIG, MESSAGE))


def test_many_verifications_at_once_share_one_fetch() -> None:
    origin = Origin("sig_a")

    async def slow(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.05)
        return origin(request)

    async def play() -> None:
        client = sdk.AsyncEnvaiClient(base_url="http://x", transport=httpx2.MockTransport(slow))
        keys = client.chats._keys
        await asyncio.gather(*[client.chats._driver.run(keys.verify("sig_a", SIG, MESSAGE)) for _ in range(50)])
        await client.aclose()

    asyncio.run(play())
    assert origin.fetches == 1


def test_a_cache_of_the_applications_own_is_used() -> None:
    class Shared:
        stored: dict[str, bytes] | None = None

        def load(self) -> dict[str, bytes] | None:
            return self.stored

        def store(self, keys: dict[str, bytes]) -> None:
            self.stored = keys

    origin, shared = Origin("sig_a"), Shared()
    for _ in range(2):
        keys, driver = ring(origin, cache=shared)
        driver.run(keys.verify("sig_a", SIG, MESSAGE))
    assert origin.fetches == 1


@pytest.mark.parametrize("text", ["", "=", SIG + "=", SIG[:-1], "é" * 86, SIG.replace(SIG[0], "+", 1)])
def test_only_the_canonical_form_of_a_signature_is_read(text: str) -> None:
    with pytest.raises(sdk.SignatureError):
        read_signature(text)


class HookOrigin(Origin):
    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.fetches += 1
        if self.hangs:
            raise httpx2.ReadTimeout("no answer")
        if self.garbage is not None:
            return httpx2.Response(200, content=self.garbage)
        return httpx2.Response(200, json={"keys": HOOKS["keys"]})


def verify(case: dict[str, Any], headers: Any = None) -> Any:
    keys, driver = ring(HookOrigin())
    body = base64.b64decode(case["body"])
    given = headers if headers is not None else case["headers"]
    return driver.run(verify_webhook(keys, body, given, HOOKS["workspace_id"], HOOKS["now"]))


@pytest.mark.parametrize("case", HOOKS["deliveries"], ids=lambda case: case["name"])
def test_webhook_delivery(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(sdk.ProtocolError):
            verify(case)
        return
    event = verify(case)
    assert event.raw == json.loads(base64.b64decode(case["body"]))
    assert type(event) is KINDS[event.event_type]


def test_headers_are_case_insensitive_and_unique() -> None:
    good = HOOKS["deliveries"][0]
    pairs = [(name.upper(), value) for name, value in good["headers"].items()]
    assert verify(good, pairs).event_id == "whe_1"
    with pytest.raises(sdk.SignatureError, match="exactly once"):
        verify(good, [*pairs, pairs[0]])


def test_parsed_json_is_not_something_to_verify() -> None:
    keys, driver = ring(HookOrigin())
    for body in ({"a": 1}, "text"):
        with pytest.raises(TypeError):
            driver.run(verify_webhook(keys, body, {}, "w"))  # type: ignore[arg-type]


EVENTS = {case["name"]: verify(case) for case in HOOKS["deliveries"][:4]}
THREE = [EVENTS["a file was processed"], EVENTS["a file was deleted"], EVENTS["an operation completed"]]


def note(db: sqlite3.Connection, event: Any) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS jobs (event_id TEXT UNIQUE, file_alive INTEGER)")
    db.execute("INSERT INTO jobs VALUES (?, ?)", (event.event_id, isinstance(event, sdk.FileProcessed)))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_each_event_three_times_in_any_order_leaves_each_job_once(order: tuple[int, ...], tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "inbox.sqlite3")
    said = [(index, receive_webhook(db, THREE[index], note)) for index in [*order, *order, *reversed(order)]]
    jobs = [row[0] for row in db.execute("SELECT event_id FROM jobs ORDER BY rowid")]
    assert len(jobs) == len(set(jobs))
    assert [word for _, word in said].count("accepted") == len(jobs)
    late = order.index(0) > order.index(1)
    assert ("whe_1" in jobs) is not late, "a processed that comes after its deleted revives nothing"
    assert db.execute("SELECT source_revision, deleted FROM envai_webhook_files").fetchall() == [(2, 1)]
    db.close()


def test_one_terminal_per_operation() -> None:
    db = sqlite3.connect(":memory:")
    assert receive_webhook(db, EVENTS["an operation completed"], note) == "accepted"
    other = EVENTS["an operation failed"]
    from msgspec.structs import replace

    assert receive_webhook(db, replace(other, event_id="whe_7"), note) == "stale"
    db.close()


def test_a_job_that_fails_is_tried_again_with_the_next_delivery() -> None:
    db = sqlite3.connect(":memory:")

    def fail(_: sqlite3.Connection, __: Any) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        receive_webhook(db, THREE[0], fail)
    assert receive_webhook(db, THREE[0], note) == "accepted"
    assert receive_webhook(db, THREE[0], fail) == "duplicate"
    db.close()
