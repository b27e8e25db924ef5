"""A whole service over a home: what is remembered over a restart, and what is never written down."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from crocevia.app.service import Service, open_service
from crocevia.config import Settings
from crocevia.core.catalogue import EngineSpec, ModelSpec, Permissions
from crocevia.storage import provider_blocks
from crocevia.storage.home import Home
from crocevia.storage.record_queries import CallFilter, page
from tests.aio import run
from tests.app.serving import declare
from tests.contract.pepper.claude import REJECTED, asks, message, says, streamed, thought, whole
from tests.documents import zoo
from tests.doors.pepper.asgi import Exchange, ask
from tests.fakes.provider import Play, Provider, answer

FIRST = (thought("", "sig-1"), says("Controllo."), asks("toolu_01"))


@asynccontextmanager
async def provided(folder: Path, *plays: Play, **project: Any) -> AsyncIterator[tuple[Home, Provider]]:
    """A home whose model reasons and has a reserve, both at one provider."""
    async with Provider(*plays) as provider:
        home = Home(folder / "home")
        engine = EngineSpec(name="claude", kind="anthropic", base_url=provider.url)
        models = (
            ModelSpec(
                name="Pepper 7", engine="claude", upstream="claude-opus-5-5", reasoning="always", reserve="Pepper 6"
            ),
            ModelSpec(name="Pepper 6", engine="claude", upstream="claude-haiku-4-5"),
        )
        await asyncio.to_thread(declare, home, (engine,), models, **project)
        yield home, provider


@asynccontextmanager
async def service_of(home: Home) -> AsyncIterator[Service]:
    async with open_service(Settings(), home, structlog.get_logger()) as service:
        yield service


async def call(service: Service, messages: list[dict[str, Any]], path: str = "/agent", **more: Any) -> Exchange:
    return await ask(service.site, {"messages": messages, **more}, path=path)


async def last_record(service: Service) -> Any:
    while True:
        rows = await service.database.read(lambda tx: page(tx, CallFilter(), 1))
        if rows and rows[0].settled_at is not None:
            return rows[0]
        await asyncio.sleep(0.005)


async def settled(service: Service, count: int) -> list[Any]:
    while True:
        rows = await service.database.read(lambda tx: page(tx, CallFilter(), count))
        if len(rows) == count and all(row.settled_at is not None for row in rows):
            return rows
        await asyncio.sleep(0.005)


def history(reply: dict[str, Any], *, keep: bool = True) -> list[dict[str, Any]]:
    said = {"role": "assistant", "content": reply["content"], "tool_calls": reply["tool_calls"]}
    blocks = {"blocchi": reply["blocchi"]} if keep else {}
    return [
        {"role": "user", "content": "prepara casa"},
        said | blocks,
        {"role": "tool", "tool_call_id": "toolu_01", "content": "ok"},
    ]


def test_a_changed_history_is_noticed_after_a_restart_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with provided(tmp_path, whole(*FIRST), whole(says("ok"))) as (home, provider):
            async with service_of(home) as service:
                reply = (await call(service, [{"role": "user", "content": "prepara casa"}])).json()
                await last_record(service)
            async with service_of(home) as service:
                kept = history(reply)
                assert (await call(service, kept)).json()["versione"] == "Pepper 7"
                assert provider.requests[1].json()["messages"][1]["content"] == list(FIRST)
                kept[0] = {"role": "user", "content": "prepara la casa"}
                assert (await call(service, kept)).json()["versione"] == "Pepper 6"
                row = (await settled(service, 3))[0]
                notes = json.loads(row.notes)
                assert notes["reasoning_lost"] == [{"message": 1, "why": "history_changed"}]
                assert (notes["answered_for"], row.model) == ("Pepper 7", "Pepper 6")

    run(work(), timeout=30)


def test_an_app_without_pieces_is_marked_until_it_sends_them(tmp_path: Path) -> None:
    async def work() -> None:
        async with provided(tmp_path, whole(*FIRST), whole(says("ok"))) as (home, _):
            async with service_of(home) as service:
                reply = (await call(service, [{"role": "user", "content": "prepara casa"}])).json()
                assert await service.database.read(provider_blocks.apps_without_blocks) == {}
                await call(service, history(reply, keep=False))
                await settled(service, 2)
            async with service_of(home) as service:
                marked = await service.database.read(provider_blocks.apps_without_blocks)
                assert list(marked) == ["casa"]
                await call(service, [{"role": "user", "content": "ciao"}])  # no round is open: it tells nothing
                await settled(service, 3)
                assert await service.database.read(provider_blocks.apps_without_blocks) == marked
                await call(service, history(reply))
                await settled(service, 4)
                while await service.database.read(provider_blocks.apps_without_blocks):
                    await asyncio.sleep(0.005)

    run(work(), timeout=30)


CANARIES = {
    name: f"canary-{name}-{number}"
    for number, name in enumerate(
        ("prompt", "system", "tool", "argument", "result", "thought", "signature", "answer", "document", "url", "file")
    )
}


def asked(**more: Any) -> dict[str, Any]:
    """A body with a secret in every place that can hold one."""
    call = {"id": "toolu_9", "name": "t", "arguments": {"x": CANARIES["argument"]}}
    pdf = base64.b64encode(zoo.pdf((CANARIES["document"],))).decode()
    blocks = [
        thought(CANARIES["thought"], CANARIES["signature"]),
        says(CANARIES["answer"]),
        {"type": "tool_use", "id": "toolu_9", "name": "t", "input": call["arguments"]},
    ]
    return {
        "system": CANARIES["system"],
        "tools": [{"name": "t", "description": CANARIES["tool"], "parameters": {"type": "object", "properties": {}}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"tipo": "testo", "testo": CANARIES["prompt"]},
                    {"tipo": "documento", "nome": CANARIES["file"] + ".pdf", "dati": pdf},
                ],
            },
            {"role": "assistant", "content": CANARIES["answer"], "tool_calls": [call], "blocchi": blocks},
            {"role": "tool", "tool_call_id": "toolu_9", "content": CANARIES["result"]},
        ],
        **more,
    }


def broken() -> list[dict[str, Any]]:
    """The same, refused in many ways."""
    edited, orphan, address = asked(), asked(), asked()
    edited["messages"][1]["content"] = CANARIES["answer"] + "!"
    orphan["messages"][2]["tool_call_id"] = "other"
    address["messages"][0]["content"][1] = {"tipo": "documento", "url": f"https://127.0.0.1/{CANARIES['url']}"}
    unread = asked()
    unread["messages"][0]["content"][1]["dati"] = base64.b64encode(CANARIES["document"].encode()).decode()
    return [edited, orphan, address, unread, asked(max_tokens=CANARIES["prompt"])]


def test_no_text_of_a_conversation_reaches_a_log_the_store_or_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    seen: dict[str, bytes] = {}

    async def work() -> None:
        upstream = answer(400, json.dumps({"error": {"message": CANARIES["answer"]}}).encode())
        told = answer(200, message(thought(CANARIES["thought"], CANARIES["signature"]), says(CANARIES["answer"])))
        plays = (told, streamed(says(CANARIES["answer"])), upstream, REJECTED, upstream)
        permissions = Permissions(documents=True, images=True)
        async with provided(tmp_path, *plays, permissions=permissions) as (home, _), service_of(home) as service:
            for body in (asked(), asked(stream=True)):
                assert (await call(service, **body)).status == 200
            for number, body in enumerate([asked(), *broken()]):
                exchange = await call(service, **body)
                assert exchange.status in (400, 502)
                seen[f"error {number}"] = exchange.body
            for number, body in enumerate(broken()):
                exchange = await call(service, path="/agent/verifica", **body)
                report = exchange.json()
                if exchange.status == 200:
                    assert report.pop("istruzioni") == CANARIES["system"]  # asked for, and told
                seen[f"report {number}"] = json.dumps(report).encode()
            await last_record(service)
        seen.update((file.name, file.read_bytes()) for file in home.path.glob("crocevia.db*"))

    with caplog.at_level(0):
        run(work(), timeout=40)
    seen["output"] = "".join(capfd.readouterr()).encode()
    seen["log"] = caplog.text.encode()
    found = [(name, secret) for secret in CANARIES.values() for name, text in seen.items() if secret.encode() in text]
    assert found == []
    assert len(seen) >= 12
