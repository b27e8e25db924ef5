"""Pepper in front of a provider that speaks Anthropic's protocol over loopback, for tests of whole conversations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from crocevia.engines.upstream.driver import UpstreamEngine
from crocevia.engines.upstream.http import HttpClient
from crocevia.engines.upstream.retry import RetryPolicy
from tests.doors.pepper.asgi import Exchange, ask
from tests.doors.pepper.house import House, house
from tests.engines.dialects import dialect
from tests.fakes.provider import Play, Provider, answer, play

TOOLS = [{"name": "get_home_status", "description": "Stato.", "parameters": {"type": "object", "properties": {}}}]
REJECTED = answer(400, b'{"type":"error","error":{"type":"invalid_request_error","message":"signature"}}')


def thought(text: str = "", signature: str = "EqQB+/==") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def asks(call_id: str = "toolu_01", **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "get_home_status", "input": input}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def message(*blocks: dict[str, Any], usage: dict[str, int] | None = None) -> bytes:
    """A whole answer of the provider."""
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    figures = usage or {"input_tokens": 10, "output_tokens": 5}
    return json.dumps(
        {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop, "usage": figures}
    ).encode()


def whole(*blocks: dict[str, Any], usage: dict[str, int] | None = None) -> Play:
    return answer(200, message(*blocks, usage=usage))


def streamed(*blocks: dict[str, Any]) -> Play:
    """The same as a stream: every block from a bare start and its deltas."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": {"input_tokens": 10}}}]
    for index, block in enumerate(blocks):
        start, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = json.loads(message(*blocks))["stop_reason"]
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return play(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}] if block["thinking"] else []
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return block | {"thinking": "", "signature": ""}, deltas
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in block["text"]]
    if block["type"] == "tool_use":
        spelled = json.dumps(block["input"])
        halves = [spelled[:1], spelled[1:]] if block["input"] else []
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in halves]
    return block, []


@dataclass
class App:
    """A program that talks to Pepper as the specification says."""

    place: House
    provider: Provider
    spare: Provider
    system: str | None = "Regole."
    tools: list[dict[str, Any]] = field(default_factory=lambda: [dict(tool) for tool in TOOLS])
    messages: list[dict[str, Any]] = field(default_factory=list)
    stream: bool = False
    keeps_blocks: bool = True

    def user(self, content: Any) -> None:
        self.messages.append({"role": "user", "content": content})

    def results(self, content: str = '{"presenza":"Andrea"}') -> None:
        """A result for each call of the last answer."""
        self.messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": content} for call in self.messages[-1]["tool_calls"]
        ]

    async def send(self) -> Exchange:
        """One call, without a look at its outcome."""
        body: dict[str, Any] = {"messages": self.messages, "tools": self.tools, "stream": self.stream}
        return await ask(self.place.agent, body | ({"system": self.system} if self.system else {}))

    async def call(self) -> dict[str, Any]:
        """One call that must succeed; its answer is kept in the history. The JSON form, whether streamed or not."""
        exchange = await self.send()
        assert exchange.status == 200, exchange.body
        reply = self._joined(exchange) if self.stream else exchange.json()
        self.place.nothing_left()
        said = {"role": "assistant", "content": reply["content"], "tool_calls": reply["tool_calls"]}
        self.messages.append(said | ({"blocchi": reply["blocchi"]} if self.keeps_blocks else {}))
        return reply

    @staticmethod
    def _joined(exchange: Exchange) -> dict[str, Any]:
        events = exchange.events()
        name, ending = events[-1]
        assert name == "done"
        text = "".join(data["text"] for kind, data in events if kind == "delta")
        calls = [data for kind, data in events if kind == "tool_call"]
        return {"content": text or None, "tool_calls": calls} | dict(ending)

    def sent(self, index: int = -1) -> Any:
        """What the provider got."""
        return self.provider.requests[index].json()

    def notes(self) -> dict[str, Any]:
        """What the last record says beyond figures."""
        return self.place.records.settled[-1].notes or {}

    def lost(self) -> list[tuple[int, str]]:
        return [(loss["message"], loss["why"]) for loss in self.notes().get("reasoning_lost", [])]


@asynccontextmanager
async def talking(
    *plays: Play,
    spare: Play | None = None,
    upstream: str = "claude-opus-5-5",
    kind: str = "anthropic",
    stream: bool = False,
    **how: Any,
) -> AsyncIterator[App]:
    """An app, Pepper and a provider that plays these answers. spare: what the engine of the reserve answers."""
    http = HttpClient()
    async with Provider(*plays) as provider, Provider(spare or whole(says("dalla riserva"))) as second:
        retry = RetryPolicy(attempts=1)
        engine = UpstreamEngine("claude", dialect(kind, provider.url), http, retry)
        other = UpstreamEngine("spare", dialect("anthropic", second.url), http, retry) if spare else None
        model = {"reasoning": "always", "upstream": upstream} | how.pop("model", {})
        place = house(engine, model=model, reserve=other, **how)
        try:
            yield App(place, provider, second, stream=stream)
        finally:
            await http.close()
            assert [task for task in asyncio.all_tasks() if not task.done() and "pepper" in repr(task)] == []
