"""A conversation of very many messages is its caller's affair: other people's streams go on while it is understood."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest

from tests.aio import run
from tests.doors.responses.house import house
from tests.fakes.provider import Provider, answer

MANY = [{"role": ("user", "assistant")[at % 2], "content": f"word {at}"} for at in range(40_001)]
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agent", {"messages": MANY}),
        ("/agent/verifica", {"messages": MANY}),
        ("/v1/chat/completions", {"model": "Pepper mini", "messages": MANY}),
        ("/v1/responses", {"model": "Pepper mini", "store": False, "input": MANY[:9_999]}),
    ],
)
def test_a_long_history_does_not_hold_the_loop_while_it_is_read(path: str, body: Any, tmp_path: Path) -> None:
    """A share and not a time is looked at: a busy machine makes both parts longer."""

    async def scene() -> None:
        async with Provider(answer(200, json.dumps(REPLY).encode())) as provider:
            engine = {"kind": "openai-chat", "base_url": f"{provider.url}/v1"}
            async with house(tmp_path, engine=engine, model={"upstream": "up"}) as home:
                loop = asyncio.get_running_loop()
                made = home.secrets
                keys = {"x-pepper-key": made.project_key, "x-pepper-project": made.project}
                data = json.dumps(body).encode()
                begun = last = loop.time()
                longest = 0.0
                heard, asked = home.start(path, raw=data, headers=keys)
                while not asked.done():
                    await asyncio.sleep(0)
                    now = loop.time()
                    longest, last = max(longest, now - last), now
                assert heard.status == 200, heard.body[:300]
                assert longest < 0.6 * (last - begun), (longest, last - begun)

    gc.collect()
    gc.freeze()  # else a collection of what earlier tests left is the longest pause
    try:
        run(scene(), timeout=60)
    finally:
        gc.unfreeze()
