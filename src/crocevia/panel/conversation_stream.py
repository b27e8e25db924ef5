"""One question of the playground: the agent call as the project, passed on as it comes, and folded for the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from crocevia.core import json

from .services import Application, Receive, Scope, Send

Messages = list[dict[str, Any]]


class _Delta(msgspec.Struct):
    text: str = ""


class _Done(msgspec.Struct):
    stop_reason: str = ""
    blocchi: list[msgspec.Raw] = []


class Stream(Response):
    """Runs the agent call within the request. on_end: told the conversation with its answer, if one came."""

    def __init__(self, call: Application, project: str, messages: Messages, on_end: Callable[[Messages], None]) -> None:
        super().__init__()
        self._call = call
        self._project = project
        self._messages = messages
        self._on_end = on_end
        self._heard = bytearray()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = json.encode({"stream": True, "session_id": "playground", "messages": self._messages})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-pepper-key", b"-"),  # who is signed in needs none
            (b"x-pepper-project", self._project.encode()),
        ]
        inner = dict(scope) | {"method": "POST", "path": "/agent", "headers": headers, "query_string": b""}
        pending: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Any:
            return pending.pop() if pending else await receive()

        async def write(message: Any) -> None:
            if message["type"] == "http.response.body":
                self._heard += message.get("body", b"")
            await send(message)

        await self._call(inner, read, write)
        answer = self._answer()
        if answer is not None:
            self._on_end([*self._messages, answer])

    def _answer(self) -> dict[str, Any] | None:
        """The assistant's message that the events spell; None without an end."""
        text, done = "", None
        for event in bytes(self._heard).split(b"\n\n"):
            name, _, data = event.partition(b"\ndata: ")
            if name == b"event: delta":
                text += msgspec.json.decode(data, type=_Delta).text
            elif name == b"event: done":
                done = msgspec.json.decode(data, type=_Done)
        if done is None:
            return None
        return {"role": "assistant", "content": text, "blocchi": done.blocchi}
