"""One question of the playground: the agent call as the project, passed on as it comes, and folded for the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from crocevia.core import json
from crocevia.panel.demo_tool import TOOL, Messages
from crocevia.panel.services import Application, Receive, Scope, Send


class _Delta(msgspec.Struct):
    text: str = ""


class _Done(msgspec.Struct):
    stop_reason: str = ""
    blocchi: list[msgspec.Raw] = []


class Stream(Response):
    """Runs the agent call within the request.

    on_end: told the conversation with its answer, if one came. tools: whether the demo tool is offered.
    first: events that come before the model's. question: what a person is asked before the tool runs.
    """

    def __init__(
        self,
        call: Application,
        project: str,
        messages: Messages,
        on_end: Callable[[Messages], None],
        *,
        tools: bool = False,
        first: bytes = b"",
        question: str = "",
    ) -> None:
        super().__init__()
        self._call = call
        self._project = project
        self._messages = messages
        self._on_end = on_end
        self._tools = [TOOL] if tools else []
        self._first = first
        self._question = question
        self._heard = bytearray()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {"stream": True, "session_id": "playground", "messages": self._messages}
        body = json.encode(asked | ({"tools": self._tools} if self._tools else {}))
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
                message = self._passed_on(message)
            elif message.get("status") != 200:
                self._first = b""  # a refusal is no stream
            await send(message)

        await self._call(inner, read, write)

    def _passed_on(self, message: Any) -> Any:
        """What the model says, after what was to be said first; at the end the history, and what waits for a yes."""
        body = message.get("body", b"")
        self._heard += body
        body, self._first = self._first + body, b""
        if not message.get("more_body"):
            answer = self._answer()
            if answer is not None:
                self._on_end([*self._messages, answer])
                body += self._waiting(answer)
        return message | {"body": body}

    def _waiting(self, answer: dict[str, Any]) -> bytes:
        calls = answer.get("tool_calls")
        return event("pending", {"actions": [call | {"text": self._question} for call in calls]}) if calls else b""

    def _answer(self) -> dict[str, Any] | None:
        """The assistant's message that the events spell; None without an end."""
        text, calls, done = "", [], None
        for heard in bytes(self._heard).split(b"\n\n"):
            name, _, data = heard.partition(b"\ndata: ")
            if name == b"event: delta":
                text += msgspec.json.decode(data, type=_Delta).text
            elif name == b"event: tool_call":
                calls.append(msgspec.json.decode(data, type=dict[str, Any]))
            elif name == b"event: done":
                done = msgspec.json.decode(data, type=_Done)
        if done is None:
            return None
        said = {"role": "assistant", "content": text, "blocchi": done.blocchi}
        return said | ({"tool_calls": calls} if calls else {})


def event(name: str, data: Any) -> bytes:
    """One event of the stream."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.encode(data))
