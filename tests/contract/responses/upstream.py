"""A provider of chat completions on loopback, and a home whose only model it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.doors.responses.house import House, house
from tests.fakes.provider import Play, Provider, answer, play


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return (
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"
    )


DONE = b'data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5}}\n\ndata: [DONE]\n\n'


def spoken(*texts: str, finish: str = "stop") -> Play:
    return play(*(chunk({"content": text}) for text in texts), chunk({}, finish), DONE)


def whole(text: str = "hello", **message: Any) -> Play:
    said = {"role": "assistant", "content": text, **message}
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    body = {
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5},
    }
    return answer(200, json.dumps(body).encode())


def calls(*named: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in named
    ]


@asynccontextmanager
async def upstream(folder: Path, *plays: Play, **how: Any) -> AsyncIterator[tuple[House, Provider]]:
    """A home before a provider that plays `plays`; without any, one whole answer again and again."""
    async with Provider(*(plays or (whole(),))) as provider:
        engine = {"kind": "openai-chat", "base_url": f"{provider.url}/v1"}
        async with house(folder, engine=engine, **{"model": {"upstream": "up-1"}, **how}) as home:
            yield home, provider


def sent(provider: Provider, index: int = -1) -> dict[str, Any]:
    """What the provider was asked."""
    found: dict[str, Any] = provider.requests[index].json()
    return found
