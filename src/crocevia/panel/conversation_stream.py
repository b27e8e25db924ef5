"""One message of the playground: the agent call as the project, forwarded as it comes and folded into the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crocevia.asgi.types import Application
from crocevia.core import json
from crocevia.panel.demo_tool import TOOL, Messages
from crocevia.panel.kit_wire import event


class _Delta(msgspec.Struct):
    text: str = ""


class _Done(msgspec.Struct):
    provider_blocks: list[msgspec.Raw] = msgspec.field(name="blocchi", default_factory=list)


class ConversationStream(Response):
    """Runs the agent call within the request.

    on_end: called with the conversation and its answer, if one came. tools: whether the demo tool is offered.
    first: events to send before the model's. question: the text of a confirmation.
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
        self._received = bytearray()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        payload = {"stream": True, "session_id": "playground", "messages": self._messages}
        body = json.encode(payload | ({"tools": self._tools} if self._tools else {}))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-pepper-key", b"-"),  # a signed-in operator needs none
            (b"x-pepper-project", self._project.encode()),
        ]
        inner = dict(scope) | {"method": "POST", "path": "/agent", "headers": headers, "query_string": b""}
        pending: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Any:
            return pending.pop() if pending else await receive()

        async def write(message: Any) -> None:
            if message["type"] == "http.response.body":
                message = self._forward(message)
            elif message.get("status") != 200:
                self._first = b""  # a refusal is no stream
            await send(message)

        await self._call(inner, read, write)

    def _forward(self, message: Any) -> Any:
        """Send the first events, then the model's; at the end store the history and ask for confirmations."""
        body = message.get("body", b"")
        self._received += body
        body, self._first = self._first + body, b""
        if not message.get("more_body"):
            answer = self._answer()
            if answer is not None:
                self._on_end([*self._messages, answer])
                body += self._pending_event(answer)
        return message | {"body": body}

    def _pending_event(self, answer: dict[str, Any]) -> bytes:
        calls = answer.get("tool_calls")
        return event("pending", {"actions": [call | {"text": self._question} for call in calls]}) if calls else b""

    def _answer(self) -> dict[str, Any] | None:
        """The assistant's message that the events add up to; None if the answer did not end."""
        text, calls, done = "", [], None
        for block in bytes(self._received).split(b"\n\n"):
            name, _, data = block.partition(b"\ndata: ")
            if name == b"event: delta":
                text += msgspec.json.decode(data, type=_Delta).text
            elif name == b"event: tool_call":
                calls.append(msgspec.json.decode(data, type=dict[str, Any]))
            elif name == b"event: done":
                done = msgspec.json.decode(data, type=_Done)
        if done is None:
            return None
        message = {"role": "assistant", "content": text, "blocchi": done.provider_blocks}
        return message | ({"tool_calls": calls} if calls else {})
