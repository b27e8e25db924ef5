"""The registry, the runner, and what a crash in the middle leaves behind."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conformance.runner.fake_server import FakeServer
from scenario import EDITIONS, Edition, load

import envai_client as sdk
from envai_client.tools import serialise

CASE = next(c for c in load("tools/scenarios.json") if c["name"] == "a verified request runs its handler and delivers")
CHAT = CASE["steps"][0]["args"][0]
CALL = CASE["outputs"][0]["call_id"]
SCHEMA = CASE["steps"][0]["tools"]["send_email"]["schema"]
EVENTS, OUTPUT, JWKS = (
    next(entry["on"] for entry in CASE["server"] if part in entry["on"]) for part in ("/events", "/tool-output", "jwks")
)
ITEMS = next(entry for entry in CASE["server"] if entry["on"] == EVENTS)["replies"][0]["stream"]
ACK = {"X-Envai-Contract-Version": "3"}
CAPABILITIES = "GET /api/v1/atp/v3/capabilities"
SAID = next(entry for entry in CASE["server"] if entry["on"] == CAPABILITIES)
KEYS = next(entry for entry in CASE["server"] if entry["on"] == JWKS)

CRASHING = """
import os, signal, sys
import envai_client as sdk

origin, ledger, witness, chat = sys.argv[1:]

def send_email(to):
    with open(witness, "a") as file:
        file.write(to + "\\n")
        file.flush()
        os.fsync(file.fileno())
    os.kill(os.getpid(), signal.SIGKILL)

registry = sdk.ClientToolRegistry()
registry.register_tool("send_email", send_email, {"type": "object"})
client = sdk.EnvaiClient(api_key="k", base_url=origin, contract_version=3, ledger=sdk.SqliteLedger(ledger))
for event in client.chats.run_client_tools(client.chats.events(chat), registry):
    print(event.seq, flush=True)
"""


def script(streams: int, outputs: int) -> list[dict[str, Any]]:
    """The turn's events, up to the request and then, once an output arrives, to the end."""
    items = [
        item for item in ITEMS if item.get("wait") != next(e["on"] for e in CASE["server"] if "messages" in e["on"])
    ]
    head = {"Content-Type": "text/event-stream", **ACK}
    reply = {"status": 200, "headers": head, "stream": items, "end": "hold"}
    return [
        {"on": EVENTS, "replies": [reply] * streams},
        {"on": OUTPUT, "replies": [{"status": 204, "headers": ACK}] * outputs},
        {"on": JWKS, "replies": KEYS["replies"] * 4},
        {"on": CAPABILITIES, "replies": SAID["replies"] * 4},
    ]


async def crash(server: FakeServer, folder: Path) -> Path:
    """Run the program that kills itself inside its handler; its witness file."""
    witness = folder / "witness"
    command = [sys.executable, "-c", CRASHING, server.origin, str(folder / "ledger"), str(witness), CHAT]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=30)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert witness.read_text() == "a@example.com\n"
    server._waits.clear()  # the stream that died waits for nothing any more
    return witness


async def replay(server: FakeServer, folder: Path, edition: str, witness: Path, **options: Any) -> list[int]:
    """A second life on the same ledger: the events it saw."""

    def again(to: str) -> None:
        with witness.open("a") as file:
            file.write(to + "\n")

    registry = sdk.ClientToolRegistry()
    registry.register_tool("send_email", again, {"type": "object"})
    ledger = sdk.SqliteLedger(folder / "ledger")
    client = Edition(edition, api_key="k", base_url=server.origin, contract_version=3, ledger=ledger)
    stream = client.client.chats.events(CHAT)
    iterator = client.iterate(client.client.chats.run_client_tools(stream, registry, **options))
    seen: list[int] = []
    try:
        async with asyncio.timeout(3):
            while not seen or seen[-1] < 6:
                seen.append((await client.next(iterator)).seq)
    except TimeoutError:
        stream.bound(0.0, sdk.CancelToken())
    if edition == "async" or len(seen) == 6:
        await client.close_generator(iterator)
        await client.wait(stream.close)
    await client.close()
    ledger.close()
    return seen


def crashed_twice(tmp_path: Path, edition: str, outputs: int, check: Any, **options: Any) -> None:
    async def play() -> None:
        async with FakeServer(script(2, outputs)) as server:
            witness = await crash(server, tmp_path)
            await check(server, witness)
            assert witness.read_text() == "a@example.com\n", "the handler ran once"

    asyncio.run(play())


@pytest.mark.parametrize("edition", EDITIONS)
def test_killed_in_the_handler_it_never_runs_again_and_the_application_settles_it(edition: str, tmp_path: Path) -> None:
    asked: list[sdk.Record] = []

    def reconcile(record: sdk.Record) -> sdk.ToolOutput:
        asked.append(record)
        return sdk.ToolOutput(output={"sent": True, "reconciled": True})

    async def check(server: FakeServer, witness: Path) -> None:
        seen = await replay(server, tmp_path, edition, witness, on_ambiguous=reconcile)
        assert seen == [1, 2, 3, 4, 5, 6]
        posted = [item.json() for item in server.asked if item.route == OUTPUT]
        assert posted == [{"call_id": CALL, "output": '{"sent":true,"reconciled":true}', "is_error": False}]

    crashed_twice(tmp_path, edition, 1, check)
    assert [(record.call_id, record.state) for record in asked] == [(CALL, "started")]
    ledger = sdk.SqliteLedger(tmp_path / "ledger")
    assert ledger.unsettled() == []
    ledger.close()


def test_killed_in_the_handler_and_nobody_to_ask_it_stays_for_the_application(tmp_path: Path) -> None:
    async def check(server: FakeServer, witness: Path) -> None:
        assert await replay(server, tmp_path, "async", witness) == [1, 2, 3]
        assert all(item.route != OUTPUT for item in server.asked), "an ambiguous call is not answered by guessing"
        ledger = sdk.SqliteLedger(tmp_path / "ledger")
        (record,) = ledger.unsettled(CHAT)
        assert (record.call_id, record.tool, record.state) == (CALL, "send_email", "started")
        client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3, ledger=ledger)
        settled = await client.chats.settle_tool_call(record, sdk.ToolOutput(output="done"))
        assert settled.outcome == "delivered" and settled.is_delivered
        assert ledger.unsettled(CHAT) == []
        await client.aclose()
        ledger.close()

    crashed_twice(tmp_path, "async", 1, check)


def test_killed_between_the_outcome_and_its_delivery_the_outcome_is_delivered(tmp_path: Path) -> None:
    async def play() -> None:
        witness = tmp_path / "witness"
        async with FakeServer(script(2, 2)) as server:
            server._replies[OUTPUT].appendleft({"status": 204, "end": "reset"})
            # A first life whose delivery got no answer, so that only the outcome is known.
            await replay_until_post(server, tmp_path, witness)
            assert witness.read_text() == "a@example.com\n"
            seen = await replay(server, tmp_path, "sync", witness)
            assert seen == [1, 2, 3, 4, 5, 6]
            assert [item.json()["output"] for item in server.asked if item.route == OUTPUT] == ["null", "null"]
            assert witness.read_text() == "a@example.com\n"

    asyncio.run(play())


async def replay_until_post(server: FakeServer, folder: Path, witness: Path) -> None:
    ledger = sdk.SqliteLedger(folder / "ledger")
    registry = sdk.ClientToolRegistry()
    registry.register_tool("send_email", lambda to: witness.write_text(to + "\n") and None, {"type": "object"})
    client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3, ledger=ledger)
    stream = client.chats.events(CHAT)
    runner = client.chats.run_client_tools(stream, registry)
    async for event in runner:
        if event.type == "agent.tool.request":
            await server.until(lambda: any(item.route == OUTPUT for item in server.asked))
            break
    await runner.aclose()  # type: ignore[attr-defined]
    await stream.close()
    record = ledger.get(CHAT, CALL)
    assert record is not None
    assert (record.state, record.output) == ("finished", "null")
    await client.aclose()
    ledger.close()
    server._waits.clear()
    server._marks.clear()


def test_a_ledger_of_the_applications_own_will_do(tmp_path: Path) -> None:
    class Dictionary(dict[tuple[str, str], sdk.Record]):
        def claim(self, chat_id: str, call_id: str, tool: str, fingerprint: str, owner: str) -> sdk.Record | None:
            key = (chat_id, call_id)
            if key in self:
                return self[key]
            self[key] = sdk.Record(
                chat_id=chat_id,
                call_id=call_id,
                tool=tool,
                fingerprint=fingerprint,
                state="started",
                owner=owner,
                output=None,
                is_error=False,
                note="",
                updated_at=0,
            )
            return None

        def change(self, chat_id: str, call_id: str, **fields: Any) -> None:
            from msgspec.structs import replace

            if (chat_id, call_id) in self:
                self[(chat_id, call_id)] = replace(self[(chat_id, call_id)], **fields)

        def finish(self, chat_id: str, call_id: str, output: str, is_error: bool) -> None:
            self.change(chat_id, call_id, state="finished", output=output, is_error=is_error)

        def resolve(self, chat_id: str, call_id: str, note: str) -> None:
            self.change(chat_id, call_id, state="resolved", note=note)

        def note(self, chat_id: str, call_id: str, note: str) -> None:
            self.change(chat_id, call_id, note=note)

        def get(self, chat_id: str, call_id: str) -> sdk.Record | None:
            return dict.get(self, (chat_id, call_id))

        def unsettled(self, chat_id: str | None = None) -> list[sdk.Record]:
            return [record for record in self.values() if record.state != "resolved"]

    ledger: sdk.Ledger = Dictionary()

    async def play() -> None:
        async with FakeServer(script(1, 1)) as server:
            registry = sdk.ClientToolRegistry()
            registry.register_tool("send_email", lambda to: to, SCHEMA)
            client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3)
            async with client.chats.events(CHAT) as stream:
                async for event in client.chats.run_client_tools(stream, registry, ledger=ledger):
                    if event.is_terminal:
                        break
            await client.aclose()

    asyncio.run(play())
    record = ledger.get(CHAT, CALL)
    assert record is not None
    assert record.state == "resolved"


def test_a_registry_refuses_what_it_could_not_honour() -> None:
    registry = sdk.ClientToolRegistry()
    registry.register_tool("a", print, {"type": "object"})
    with pytest.raises(ValueError, match="already"):
        registry.register_tool("a", print, {"type": "object"})
    with pytest.raises(ValueError, match="600"):
        registry.register_tool("b", print, {"type": "object"}, timeout=601)
    with pytest.raises(ValueError, match="JSON Schema"):
        registry.register_tool("c", print, {"type": "nonsense"})


def test_a_schema_reference_never_leaves_the_document() -> None:
    registry = sdk.ClientToolRegistry()
    registry.register_tool("a", print, {"$ref": "http://127.0.0.1:9/schema.json"})
    tool = registry.get("a")
    assert tool is not None
    assert tool.validate({}) is False


@pytest.mark.parametrize(
    ("value", "output", "is_error"),
    [
        (None, "null", False),
        ("", '{"error":"output_empty"}', True),
        (sdk.ToolOutput(output=""), '{"error":"output_empty"}', True),
        ({"a": 1.5}, '{"a":1.5}', False),
        (sdk.ToolOutput(output={"why": "no"}, is_error=True), '{"why":"no"}', True),
        (object(), '{"error":"output_not_serialisable"}', True),
        ("\ud800", '{"error":"output_not_serialisable"}', True),
        ("é" * 65_537, '{"error":"output_too_large"}', True),
    ],
)
def test_outputs_are_one_string(value: Any, output: str, is_error: bool) -> None:
    answer = serialise(value)
    assert (answer.output, answer.is_error) == (output, is_error)


def test_a_full_disk_is_an_error_and_not_a_second_run(tmp_path: Path) -> None:
    """A ledger that cannot record must not let the handler run."""
    ran: list[str] = []

    class Broken(sdk.SqliteLedger):
        def claim(self, *_: Any) -> sdk.Record | None:
            raise sqlite3.OperationalError("disk full")

    async def play() -> None:
        async with FakeServer(script(1, 0)) as server:
            registry = sdk.ClientToolRegistry()
            registry.register_tool("send_email", ran.append, {"type": "object"})
            client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3)
            ledger = Broken(tmp_path / "l")
            with pytest.raises(sqlite3.OperationalError):
                async for event in client.chats.run_client_tools(
                    client.chats.events(CHAT, timeout=2), registry, ledger=ledger
                ):
                    assert event.seq < 4
            await client.aclose()
            ledger.close()

    asyncio.run(play())
    assert ran == []


@pytest.mark.parametrize("edition", EDITIONS)
def test_cancelling_a_wait_with_tools_cancels_the_handler_and_the_wait(edition: str, tmp_path: Path) -> None:
    case = next(c for c in load("tools/scenarios.json") if c["name"] == "a terminal cancels what still runs")

    async def play() -> list[str]:
        seen: list[str] = []
        server_script = [entry if not entry["on"].endswith("/events") else hanging(entry) for entry in case["server"]]
        async with FakeServer(server_script) as server:
            token = sdk.CancelToken()

            def handle(context: sdk.ToolContext, **_: Any) -> None:
                token.cancel()
                seen.append("cancelled" if context.token.wait(10) else "left alone")

            registry = sdk.ClientToolRegistry()
            registry.register_tool("send_email", handle, SCHEMA)
            ledger = sdk.SqliteLedger(tmp_path / "l")
            client = Edition(edition, api_key="k", base_url=server.origin, contract_version=3, ledger=ledger)
            with pytest.raises(sdk.CancelledError):
                await client.wait(client.client.chats.send_and_wait, CHAT, "go", tools=registry, cancel=token)
            await server.until(lambda: server.closed_by_client)
            await client.close()
            assert [record.state for record in ledger.unsettled()] == ["started"], "what it did is for the application"
            ledger.close()
        return seen

    assert asyncio.run(play()) == ["cancelled"]


def hanging(entry: dict[str, Any]) -> dict[str, Any]:
    """The same stream, silent for good once the handler runs."""
    (reply,) = entry["replies"]
    cut = next(index for index, item in enumerate(reply["stream"]) if "wait_run" in item)
    return {**entry, "replies": [{**reply, "stream": reply["stream"][:cut]}]}


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_violation_can_be_skipped_and_still_runs_nothing(edition: str, tmp_path: Path) -> None:
    case = next(c for c in load("tools/scenarios.json") if c["name"] == "changed arguments run nothing")
    ran: list[str] = []

    async def play() -> list[int]:
        async with FakeServer(
            [entry if not entry["on"].endswith("/events") else open_stream(entry) for entry in case["server"]]
        ) as server:
            registry = sdk.ClientToolRegistry()
            registry.register_tool("send_email", ran.append, SCHEMA)
            ledger = sdk.SqliteLedger(tmp_path / "l")
            client = Edition(edition, api_key="k", base_url=server.origin, contract_version=3, ledger=ledger)
            stream = client.client.chats.events(CHAT)
            iterator = client.iterate(client.client.chats.run_client_tools(stream, registry, on_violation="skip"))
            seen = [(await client.next(iterator)).seq for _ in range(3)]
            await client.close_generator(iterator)
            await client.wait(stream.close)
            assert ledger.unsettled() == []
            await client.close()
            ledger.close()
            return seen

    assert asyncio.run(play()) == [1, 2, 3]
    assert ran == []


def open_stream(entry: dict[str, Any]) -> dict[str, Any]:
    (reply,) = entry["replies"]
    return {**entry, "replies": [{**reply, "stream": [item for item in reply["stream"] if "wait" not in item]}]}
