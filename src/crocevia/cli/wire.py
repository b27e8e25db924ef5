"""The agent call from outside, as any program makes it: one POST, read as it comes. Blocking, standard library only."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.upstream.sse import SseDecoder


class Read(msgspec.Struct, frozen=True):
    """One read of the answer's body."""

    at: float
    """Seconds since the request was sent."""
    data: bytes
    events: list[tuple[str, Any]]
    """(name, data), complete ones."""


class Opened(msgspec.Struct, frozen=True):
    """The answer's head."""

    status: int
    headers: dict[str, str]
    """Lower-case names."""
    at: float
    """Seconds since the request was sent."""


def stream(url: str, project: str, key: str, question: str, *, timeout: float) -> Iterator[Opened | Read]:
    """Ask `question` over POST /agent: the head first, then every read until the end.

    timeout: seconds of silence. Raises GatewayError(UNAVAILABLE) if the server cannot be reached or falls silent.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise GatewayError(Reason.CLI_BAD_URL)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": question}]}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "X-Pepper-Key": key,
        "X-Pepper-Project": project,
    }
    try:
        with closing(kind(parts.hostname, parts.port, timeout=timeout)) as connection:
            began = time.monotonic()
            connection.request("POST", f"{parts.path.rstrip('/')}/agent", body, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            yield Opened(answer.status, found, time.monotonic() - began)
            yield from _reads(answer, began)
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        raise GatewayError(Reason.CLI_UNREACHABLE, reason=_reason(error)) from error


def _reads(answer: http.client.HTTPResponse, began: float) -> Iterator[Read]:
    decoder = SseDecoder()
    plain = not answer.headers.get("Content-Type", "").startswith("text/event-stream")
    while data := answer.read1(65536):
        events = [] if plain else [(event.name.decode(), _json(event.data)) for event in decoder.feed(data)]
        yield Read(time.monotonic() - began, data, events)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__
