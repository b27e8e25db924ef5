"""Writes conformance/*/*.json from scripts/fixtures: python make_fixtures.py CONFORMANCE_FOLDER"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fixtures import flow_cases, http_cases, stream_cases, tool_cases, webhook_cases

BULLETS = {
    "22.1.1": "base URL, prefix and bearer token",
    "22.1.2": "decoding of resource, collection, pagination, 204 and binary",
    "22.1.3": "complete mapping of the error envelope",
    "22.1.4": "no unsafe automatic retry of mutations",
    "22.1.5": "Retry-After",
    "22.1.6": "multipart upload and streaming download",
    "22.2.1": "event split across TCP chunks",
    "22.2.2": "several events in one chunk",
    "22.2.3": "several data lines",
    "22.2.4": "comments and unknown SSE fields",
    "22.2.5": "invalid JSON",
    "22.2.6": "unsupported ATP version",
    "22.2.7": "unknown event type",
    "22.2.8": "reconnection with after=last_seq",
    "22.2.9": "deduplication by seq",
    "22.2.10": "live gap found and replayed",
    "22.2.11": "ReplayGapError when the cursor precedes the retained buffer",
    "22.2.12": "checkpoint from before an eviction or restart",
    "22.2.13": "event emitted between replay and subscribe",
    "22.2.14": "subscriber buffer overflow",
    "22.2.15": "ping with seq 0 outside the cursor",
    "22.2.16": "local cancellation",
    "22.2.17": "interleaving of parent and subagent",
    "22.2.18": "the turn's only terminal event",
    "22.3.1": "valid Ed25519 verification",
    "22.3.2": "unknown kid followed by a JWKS refresh",
    "22.3.3": "invalid signature without running the handler",
    "22.3.4": "RFC 8785 with nested objects, Unicode and numbers",
    "22.3.5": "unknown local tool",
    "22.3.6": "local and server timeout",
    "22.3.7": "string serialisation of structured output",
    "22.3.8": "the 128 KiB limit",
    "22.3.9": "409 tool_already_resolved",
    "22.3.10": "409 tool_timed_out",
    "22.3.11": "404 for the same call_id after the terminal",
    "22.3.12": "bounded concurrency",
    "22.3.13": "replay of a request running or resolved",
    "22.3.14": "local cancellation on a server result or terminal",
    "22.4.1": "chat created, stream opened, message sent, deltas and turn.completed",
    "22.4.2": "second message during a turn: 409 turn_in_progress",
    "22.4.3": "cancel followed by turn.cancelled",
    "22.4.4": "steer with and without target",
    "22.4.5": "restore without opening a turn",
    "22.4.6": "fork into a chat just created",
    "22.4.7": "short reconnection within one runtime instance",
    "22.4.8": "error or explicit policy when a resume crosses eviction or restart",
    "delivery": "an output is delivered, refused by name, or the turn is over",
    "claims": "a call is claimed before it runs, where the server announces claims",
    "alpha": "recorded behaviour of the original alpha",
}


def outputs() -> dict[str, Any]:
    return {
        "bullets.json": BULLETS,
        "http/scenarios.json": [
            {"options": {"contract_version": 3, "retry": {"base_delay": 0.01}}, **case} for case in http_cases.cases()
        ],
        "sse/decoder.json": stream_cases.decoder_cases(),
        "atp/events.json": stream_cases.event_cases(),
        "atp/streams.json": stream_cases.stream_cases(),
        "jcs/vectors.json": tool_cases.vectors(),
        "ed25519/vectors.json": tool_cases.signatures(),
        "tools/scenarios.json": tool_cases.flow_cases(),
        "flows/scenarios.json": flow_cases.cases(),
        "webhooks/vectors.json": webhook_cases.cases(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, value in outputs().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
