"""Planted secrets come out of no error, no log and no table, whatever fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crocevia.core.catalogue import EngineSpec, ModelSpec
from tests.aio import run
from tests.app.serving import serving
from tests.fakes.provider import Play, Provider, answer, play

PROMPT, KEY, UPSTREAM = "canary-prompt-71", "canary-key-72", "canary-upstream-73"


def body(content: Any = PROMPT, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": content}], "stream": True, **more}).encode()


def failures() -> list[Play]:
    told = json.dumps({"error": {"message": UPSTREAM, "type": UPSTREAM}}).encode()
    return [answer(401, told), answer(400, told), answer(404, UPSTREAM.encode()), play(b"data: " + told + b"\n\n")]


def test_no_secret_leaves_through_a_failure(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bytes] = []

    async def work() -> None:
        async with Provider(*failures()) as provider:
            engine = EngineSpec(name="remote", kind="openai-chat", base_url=f"{provider.url}/{UPSTREAM}/v1")
            async with serving(engine=engine, model=ModelSpec(name="Pepper 7", engine="remote", upstream="m")) as place:
                for _ in failures():
                    status, headers, answered = await place.post("/agent", body())
                    assert status == 502
                    seen.extend((repr(headers).encode(), answered))
                for raw, key in (
                    (body(), KEY),
                    (body(5), "chiave"),
                    (body(max_tokens=PROMPT), "chiave"),
                    (body(tools=[{"name": "t", "parameters": PROMPT}]), "chiave"),
                    (PROMPT.encode(), "chiave"),
                ):
                    seen.append((await place.post("/agent", raw, **{"x-pepper-key": key}))[2])
                path = place.service.home.database
            seen.extend(file.read_bytes() for file in path.parent.glob("crocevia.db*"))

    with caplog.at_level(0):
        run(work(), timeout=30)
    seen.append("".join(capfd.readouterr()).encode())
    seen.append(caplog.text.encode())
    for secret in (PROMPT, KEY, UPSTREAM):
        holders = [text for text in seen if secret.encode() in text]
        # The engine's address is configuration: it is in the database, and nowhere else.
        assert [text[:15] for text in holders if not text.startswith(b"SQLite format 3")] == [], secret
