"""Every shared fixture, on both clients. The ids of the tests are the names of the fixtures."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from scenario import EDITIONS, Play, load

from envai_client import errors
from envai_client.errors import ProtocolError
from envai_client.events import parse_event
from envai_client.jcs import canonical_json
from envai_client.keys import read_keys, read_signature, signed_tool_bytes, valid
from envai_client.models import JwksDocument
from envai_client.models.base import decode
from envai_client.sse import SSEDecoder

SCENARIOS = [
    case
    for name in ("http/scenarios", "atp/streams", "tools/scenarios", "flows/scenarios")
    for case in load(f"{name}.json")
]
DECODER = load("sse/decoder.json")
EVENTS = load("atp/events.json")
VECTORS = load("jcs/vectors.json")
SIGNED = load("ed25519/vectors.json")


def named(case: dict[str, Any]) -> str:
    return f"{case['bullet']} {case['name']}" if "bullet" in case else case["name"]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("case", SCENARIOS, ids=named)
def test_scenario(case: dict[str, Any], edition: str, tmp_path: Path) -> None:
    asyncio.run(Play(case, edition, tmp_path).run())


@pytest.mark.parametrize("case", DECODER, ids=named)
def test_sse_decoder(case: dict[str, Any]) -> None:
    decoder = SSEDecoder(case.get("max_frame", 1024))
    chunks = [base64.b64decode(chunk) for chunk in case["chunks"]]
    if "error" in case:
        with pytest.raises(getattr(errors, case["error"])):
            [decoder.feed(chunk) for chunk in chunks]
        return
    assert [frame.decode() for chunk in chunks for frame in decoder.feed(chunk)] == case["frames"]


@pytest.mark.parametrize("case", EVENTS, ids=named)
def test_event(case: dict[str, Any]) -> None:
    frame = json.dumps(case["event"]).encode()
    if case["valid"]:
        event = parse_event(frame)
        assert event.raw == case["event"]
        return
    with pytest.raises(ProtocolError) as caught:
        parse_event(frame)
    assert caught.value.raw == case["event"]


@pytest.mark.parametrize("case", VECTORS["documents"], ids=named)
def test_canonical_document(case: dict[str, Any]) -> None:
    assert canonical_json(json.loads(case["json"])) == case["canonical"].encode()


@pytest.mark.parametrize("case", VECTORS["numbers"], ids=lambda case: case["ieee754"])
def test_canonical_number(case: dict[str, Any]) -> None:
    assert canonical_json(struct.unpack(">d", bytes.fromhex(case["ieee754"]))[0]).decode() == case["canonical"]


def test_what_has_no_canonical_form_is_refused() -> None:
    values = [json.loads(case["json"]) for case in VECTORS["refused"]]
    values += [struct.unpack(">d", bytes.fromhex(bits))[0] for bits in VECTORS["refused_numbers"]]
    for value in values:
        with pytest.raises(ValueError, match="no canonical form"):
            canonical_json({"a": [value]})


@pytest.mark.parametrize("case", SIGNED["tool_requests"], ids=named)
def test_signature(case: dict[str, Any]) -> None:
    keys = read_keys(decode(JwksDocument, {"keys": [key["jwk"] for key in SIGNED["keys"]]}))
    request = case["request"]

    def verdict() -> bool:
        try:
            given = read_signature(request["signature"]["sig"])
        except errors.SignatureError:
            return False
        message = signed_tool_bytes(request["call_id"], request["tool_name"], request["args"])
        return valid(keys.get(request["signature"]["kid"]), given, message)

    assert verdict() is case["valid"]


def test_every_bullet_of_the_suite_has_a_fixture() -> None:
    covered = {case["bullet"] for case in [*SCENARIOS, *DECODER]}
    assert covered == set(load("bullets.json"))
