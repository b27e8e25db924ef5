"""A mock provider that must never be the bottleneck: one hand-written protocol, answers prepared as bytes.

It speaks two dialects, `/v1/chat/completions` and `/v1/messages`, whole or streamed (`tokens` pieces, `spacing`
seconds apart, the first at once). It trusts its clients: Content-Length bodies only, one request at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from typing import Any, cast

import uvloop

TOKEN = "zyx "
"""The text of every token: nothing else on the wire looks like it, so that a reader can count tokens by it."""

_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Dialect:
    """Ready bytes. whole: an answer to a call that does not stream; the rest: chunks of one that does."""

    whole: bytes
    opening: bytes
    token: bytes
    closing: bytes


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _whole(value: Any) -> bytes:
    body = _json(value)
    return _JSON % (len(body), body)


def _chunk(*events: bytes) -> bytes:
    data = b"".join(events)
    return b"%x\r\n%s\r\n" % (len(data), data)


def _openai(tokens: int) -> Dialect:
    usage = {"prompt_tokens": 12, "completion_tokens": tokens, "total_tokens": 12 + tokens}
    head: dict[str, Any] = {"id": "chatcmpl-1", "created": 1, "model": "mock"}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + _json({**head, "object": "chat.completion.chunk", "choices": [choice]}) + b"\n\n"

    message = {"role": "assistant", "content": TOKEN * 8}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    final = _json({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Dialect(
        whole=_whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage}),
        opening=_STREAM + _chunk(event({"role": "assistant", "content": ""})),
        token=_chunk(event({"content": TOKEN})),
        closing=_chunk(event({}, "stop"), b"data: " + final + b"\n\n", b"data: [DONE]\n\n") + b"0\r\n\r\n",
    )


def _anthropic(tokens: int) -> Dialect:
    usage = {"input_tokens": 12, "output_tokens": tokens}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "stop_sequence": None,
    }

    def event(kind: str, **fields: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), _json({"type": kind, **fields}))

    start: dict[str, Any] = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    said = [{"type": "text", "text": TOKEN * 8}]
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return Dialect(
        whole=_whole({**message, "content": said, "stop_reason": "end_turn", "usage": usage}),
        opening=_STREAM
        + _chunk(
            event("message_start", message=start),
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        ),
        token=_chunk(event("content_block_delta", index=0, delta={"type": "text_delta", "text": TOKEN})),
        closing=_chunk(
            event("content_block_stop", index=0),
            event("message_delta", delta=delta, usage=usage),
            event("message_stop"),
        )
        + b"0\r\n\r\n",
    )


class Provider(asyncio.Protocol):
    """One connection. A request is answered when all of it is here."""

    def __init__(self, dialects: dict[bytes, Dialect], tokens: int, spacing: float) -> None:
        self._dialects, self._tokens, self._spacing = dialects, tokens, spacing
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._left = 0
        self._dialect = dialects[b"/v1/chat/completions"]
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class is not a subclass

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if found and len(body) >= content_length(head):
            self._received = b""
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        path = head[head.index(b" ") + 1 : head.index(b" ", head.index(b" ") + 1)]
        dialect = self._dialects.get(path)
        if dialect is None:
            self._transport.write(_whole({"object": "list", "data": [{"id": "mock", "object": "model"}]}))
        elif b'"stream":true' in body or b'"stream": true' in body:
            self._dialect, self._left = dialect, self._tokens
            self._transport.write(dialect.opening)
            self._next()
        else:
            self._transport.write(dialect.whole)

    def _next(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._timer = None
            self._transport.write(self._dialect.closing)
            return
        self._transport.write(self._dialect.token)
        self._timer = self._loop.call_later(self._spacing, self._next)


def content_length(head: bytes) -> int:
    """The Content-Length of a head, 0 when there is none."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


async def listen(port: int, *, tokens: int = 64, spacing: float = 0.01) -> asyncio.Server:
    """Serve on 127.0.0.1; `port` 0 takes a free one."""
    dialects = {b"/v1/chat/completions": _openai(tokens), b"/v1/messages": _anthropic(tokens)}
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: Provider(dialects, tokens, spacing), "127.0.0.1", port, backlog=1024)


async def _serve(port: int, tokens: int, spacing: float) -> None:
    server = await listen(port, tokens=tokens, spacing=spacing)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until killed; prints the port."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--spacing-ms", type=float, default=10)
    chosen = options.parse_args()
    uvloop.run(_serve(chosen.port, chosen.tokens, chosen.spacing_ms / 1000))


if __name__ == "__main__":
    main()
