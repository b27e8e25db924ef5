"""Every event that is encoded in a test's process is held against the published schema of its version."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

from crocevia.doors.atp.events import Encoder

Event = dict[str, Any]
SEEN: Counter[str] = Counter()  # by type: what was encoded
WRONG: list[str] = []  # what is not as the contract says; a test that leaves something here fails


@cache
def schema(version: int) -> Draft202012Validator:
    name = "events.json" if version == 3 else "events-v2.json"
    document = json.loads((files("envai") / "_contracts" / name).read_text(encoding="utf-8"))
    return Draft202012Validator(document | {"$ref": "#/$defs/Event"})


def problems(event: Event, version: int) -> list[str]:
    """What the contract has against an event."""
    # Unknown costs are null in both versions; the older schema has no word for that (requirement T-SSE-4).
    known = event if version == 3 else {**event, "data": _numbers(event["data"])}
    found = [f"{event['type']}: {error.message[:300]}" for error in schema(version).iter_errors(known)]
    return found if event["v"] == version else [*found, f"version {event['v']}, not {version}"]


def check_event(event: Event, version: int) -> None:
    assert problems(event, version) == []


def _numbers(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    costs = ("cost", "chat_cost", "cost_usd")
    return {key: 0 if key in costs and value is None else _numbers(value) for key, value in data.items()}


class CheckedEncoder(Encoder):
    """What stands in for the methods of `Encoder` while the suite runs."""

    def frame(self, chat_id: str, epoch: str, seq: int, body: bytes) -> bytes:
        return _noted(self, _frame(self, chat_id, epoch, seq, body))

    def ping(self, chat_id: str, at: int) -> bytes:
        return _noted(self, _ping(self, chat_id, at))


_frame, _ping = Encoder.frame, Encoder.ping


def _noted(encoder: Encoder, frame: bytes) -> bytes:
    event = json.loads(frame.rpartition(b"data: ")[2])
    SEEN[event["type"]] += 1
    WRONG.extend(problems(event, encoder.version))
    return frame
