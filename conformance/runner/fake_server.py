"""A loopback HTTP server that plays a script, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter, defaultdict, deque
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl


class Asked:
    """One recorded request."""

    def __init__(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> None:
        self.method = method
        self.path, _, self.raw_query = target.partition("?")
        self.query = dict(parse_qsl(self.raw_query, keep_blank_values=True))
        self.headers = {name.lower(): value for name, value in headers}
        self.header_lines = headers
        self.body = body

    @property
    def route(self) -> str:
        return f"{self.method} {self.path}"

    def json(self) -> Any:
        return json.loads(self.body)


class FakeServer:
    """`script` is a list of {"on": "METHOD path", "replies": [...]}: each request takes the next reply of its route.

    A reply has status, headers and json, text, base64, repeat or stream; `end` is keep (default), close, hold, cut or
    reset. `mark(key)` is how the test tells a stream that waits for something.
    """

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self._replies: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
        for entry in script:
            self._replies[entry["on"]].extend(entry["replies"])
        self.asked: list[Asked] = []
        self.surprises: list[str] = []
        self.closed_by_client = 0
        self._marks: Counter[str] = Counter()
        self._waits: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeServer:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def mark(self, key: str) -> None:
        """From any thread: something streams may wait for has happened."""
        self._loop.call_soon_threadsafe(self._mark, key)

    def _mark(self, key: str) -> None:
        self._marks[key] += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Any, timeout: float = 10.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                await self._changed.wait()

    async def _wait_mark(self, key: str) -> None:
        self._waits[key] += 1
        wanted = self._waits[key]
        await self.until(lambda: self._marks[key] >= wanted)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await read_request(reader)
        if asked is None:
            return False
        self.asked.append(asked)
        self._mark("asked")
        replies = self._replies.get(asked.route)
        if not replies:
            self.surprises.append(asked.route)
            replies = deque([{"status": 599, "text": "not in the script"}])
        reply = replies.popleft()
        if reply.get("end") == "reset" and "stream" not in reply:
            writer.transport.abort()
            self._mark(asked.route)
            return False
        if "stream" in reply:
            await self._stream(reply, reader, writer)
            return False
        body = body_of(reply)
        cut = reply.get("end") == "cut"
        writer.write(head_of(reply, {"Content-Length": str(len(body))} if reply["status"] != 204 else {}))
        writer.write(body[: len(body) // 2] if cut else body)
        await writer.drain()
        self._mark(asked.route)
        return not cut

    async def _stream(self, reply: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head_of(reply, {"Transfer-Encoding": "chunked"}))
        for item in reply["stream"]:
            await self._item(item, writer)
        if reply["end"] == "reset":
            await writer.drain()
            writer.transport.abort()
        elif reply["end"] == "close":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            await writer.drain()
            with suppress(ConnectionResetError):  # some runtimes leave by a reset
                await reader.read(1)  # until the client goes away
            self.closed_by_client += 1
            self._mark("closed")

    async def _item(self, item: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if "wait" in item:
            await self._wait_mark(item["wait"])
        elif "wait_run" in item:
            await self._wait_mark(f"run {item['wait_run']}")
        elif "sleep" in item:
            await asyncio.sleep(item["sleep"])
        else:
            data = chunk_of(item)
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)


def chunk_of(item: dict[str, Any]) -> bytes:
    if "event" in item:
        text = json.dumps(item["event"], ensure_ascii=False, separators=(",", ":"))
        return f"data: {text}\n\n".encode()
    return base64.b64decode(item["base64"]) if "base64" in item else item["text"].encode()


def body_of(reply: dict[str, Any]) -> bytes:
    if "json" in reply:
        return json.dumps(reply["json"]).encode()
    if "base64" in reply:
        return base64.b64decode(reply["base64"])
    if "repeat" in reply:
        return str(reply["repeat"]["text"]).encode() * int(reply["repeat"]["times"])
    return str(reply.get("text", "")).encode()


def head_of(reply: dict[str, Any], more: dict[str, str]) -> bytes:
    headers = {**reply.get("headers", {}), **more}
    lines = [f"HTTP/1.1 {reply['status']} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    fields = {name.lower(): value for name, value in headers}
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    if fields.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    return Asked(method, target, headers, body)
