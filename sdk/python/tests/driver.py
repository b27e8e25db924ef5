"""The driver of this SDK for the shared fixtures, in either edition: see conformance/DRIVER.md.

python driver.py sync|async
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import platform
import struct
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]

import msgspec
from scenario import POLICIES, Edition

import envai_client as sdk
from envai_client.errors import SignatureError
from envai_client.jcs import canonical_json
from envai_client.keys import read_keys, read_signature, signed_tool_bytes, valid
from envai_client.models import JwksDocument
from envai_client.models.base import Resource, decode
from envai_client.requests import OPERATIONS
from envai_client.sse import SSEDecoder
from envai_client.webhooks import verify_webhook

Notice = Callable[[dict[str, Any]], None]
TOLD = ("http_status", "type", "code", "message", "details", "request_id", "retry_after", "sent", "last_seq", "reason")
TOLD += ("missing_from", "missing_to", "chat", "raw")


class SdkDriver:
    """Performs the commands of the runner with a client of one edition. `more` are options of the client itself."""

    def __init__(self, kind: str, **more: Any) -> None:
        self.kind = kind
        self.more = more
        self.notice: Notice = lambda _: None
        self.opened: tuple[Edition, sdk.SqliteLedger] | None = None

    @property
    def edition(self) -> Edition:
        assert self.opened is not None
        return self.opened[0]

    async def ask(self, command: dict[str, Any], notice: Notice) -> dict[str, Any]:
        self.notice = notice
        perform = getattr(self, f"do_{command['do']}", None)
        if perform is None:
            return {"unknown": True}
        result: dict[str, Any] = {}
        try:
            await perform(command, result)
        except (sdk.EnvaiError, ValueError) as problem:
            return {"result": result, "error": told(problem)}
        return {"result": result}

    async def do_hello(self, _: dict[str, Any], result: dict[str, Any]) -> None:
        runtime = f"{platform.python_implementation()} {platform.python_version()}"
        result |= {"language": "python", "sdk": sdk.__version__, "runtime": runtime}

    async def do_open(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        await self.do_close(command, result)
        options = {
            name: POLICIES[name](**value) if name in POLICIES else value for name, value in command["options"].items()
        }
        ledger = sdk.SqliteLedger(command["ledger"])
        base = {"api_key": command["api_key"], "base_url": command["base_url"]}
        self.opened = (Edition(self.kind, ledger=ledger, **base, **options, **self.more), ledger)

    async def do_close(self, _: dict[str, Any], result: dict[str, Any]) -> None:
        if self.opened is not None:
            edition, ledger = self.opened
            self.opened = None
            await edition.close()
            ledger.close()

    async def do_ledger(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        assert self.opened is not None
        record = self.opened[1].get(command["chat_id"], command["call_id"])
        result["state"] = record.state if record else None

    async def do_sse(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        decoder = SSEDecoder(command["max_frame"])
        chunks = [base64.b64decode(chunk) for chunk in command["chunks"]]
        result["frames"] = [frame.decode() for chunk in chunks for frame in decoder.feed(chunk)]

    async def do_event(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        result["raw"] = sdk.parse_event(base64.b64decode(command["frame"])).raw

    async def do_canonical(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        bits = command.get("ieee754")
        value = json.loads(command["json"]) if bits is None else struct.unpack(">d", bytes.fromhex(bits))[0]
        result["canonical"] = canonical_json(value).decode()

    async def do_signature(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        keys, request = read_keys(decode(JwksDocument, {"keys": command["keys"]})), command["request"]
        try:
            given = read_signature(request["signature"]["sig"])
            message = signed_tool_bytes(request["call_id"], request["tool_name"], request["args"])
            result["valid"] = valid(keys.get(request["signature"]["kid"]), given, message)
        except SignatureError:
            result["valid"] = False

    async def do_webhook(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        edition = Edition(self.kind, base_url=command["jwks_url"].removesuffix("/keys"), **self.more)
        core = edition.client._core
        ring = edition.client._webhook_keys
        ring.core = core.with_options(webhook_jwks_url=command["jwks_url"])
        body, where = base64.b64decode(command["body"]), command["workspace_id"]
        flow = verify_webhook(ring, body, command["headers"], where, command["now"])
        try:
            event: Any = await edition.wait(edition.client._driver.run, flow)
            result |= {"valid": True, "event": event.raw}
        except sdk.ProtocolError:
            result |= {"valid": False, "event": None}
        finally:
            await edition.close()

    async def do_operations(self, _: dict[str, Any], result: dict[str, Any]) -> None:
        primitives = sdk.EnvaiClient(base_url="http://127.0.0.1:9").primitives
        result["operations"] = [name for name in OPERATIONS if callable(getattr(primitives, name, None))]

    async def do_play(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        step = command["step"]
        if "take" in step:
            await self.take(step, result)
        elif "during" in step:
            await self.interrupt(step, result)
        else:
            await self.call(step, command["target"], result)

    async def call(self, step: dict[str, Any], target: str, result: dict[str, Any]) -> None:
        args, kwargs = self.arguments(step)
        method = self.method(step["call"])
        if "iterates" in step:
            iterator, items = self.edition.iterate(method(*args, **kwargs)), result.setdefault("items", [])
            while (item := await self.edition.next(iterator)) is not None:
                items.append(wire(item))
        elif "saves" in step:
            await self.edition.wait(method, *args, target, **kwargs)
        elif "bytes" in step:
            value = await self.edition.wait(method, *args, **kwargs)
            result["base64"] = base64.b64encode(await self.edition.wait(value.read)).decode()
        else:
            result["value"] = wire(await self.edition.wait(method, *args, **kwargs))

    def method(self, call: str) -> Any:
        service, name = call.split(".")
        return getattr(getattr(self.edition.client, service), name)

    def arguments(self, step: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args, kwargs = list(step.get("args", [])), dict(step.get("kwargs", {}))
        if "file" in step:
            file = step["file"]
            args.append((file["name"], base64.b64decode(file["base64"]), file["type"]))
        if "tools" in step:
            kwargs["tools"] = self.registry(step["tools"])
        if "max_concurrency" in step:
            kwargs["max_concurrency"] = step["max_concurrency"]
        return args, kwargs

    async def take(self, step: dict[str, Any], result: dict[str, Any]) -> None:
        token = sdk.CancelToken()
        stream = self.edition.client.chats.events(*step["args"], **step.get("kwargs", {}), cancel=token)
        iterator = self.edition.iterate(stream)
        if "tools" in step:
            runner = self.edition.client.chats.run_client_tools(stream, self.registry(step["tools"]))
            iterator = self.edition.iterate(runner)
        events: list[Any] = []
        try:
            while len(events) < step["take"]:
                if len(events) == step.get("cancel_after"):
                    asyncio.get_running_loop().call_later(0.1, token.cancel)
                event = await self.edition.next(iterator)
                assert event is not None
                events.append(event)
            stream.acknowledge()
        finally:
            result |= {"events": [seen(event) for event in events], "last_seq": stream.last_seq}
            result |= {"restarts": stream.restarts, "texts": texts(step, events)}
            await self.edition.close_generator(iterator)
            await self.edition.wait(stream.close)

    async def interrupt(self, step: dict[str, Any], result: dict[str, Any]) -> None:
        stream = self.edition.client.chats.send_and_stream(*step["args"], **step.get("kwargs", {}))
        iterator, during = self.edition.iterate(stream), step["during"]
        while (event := await self.edition.next(iterator)) is not None:
            if event.seq == during["after_seq"]:
                method = self.method(during["call"])
                value = await self.edition.wait(method, *during["args"], **during.get("kwargs", {}))
                result["during"] = wire(value)
        result["value"] = wire(stream.result())

    def registry(self, tools: dict[str, Any]) -> sdk.ClientToolRegistry:
        registry = sdk.ClientToolRegistry()
        make = self.async_handler if self.edition.is_async else self.handler
        for name, spec in tools.items():
            registry.register_tool(name, make(name, spec["does"]), spec["schema"], spec["timeout"])
        return registry

    def handler(self, name: str, does: dict[str, Any]) -> Any:
        def handle(context: sdk.ToolContext, **_: Any) -> Any:
            stopped = False
            self.notice({"notice": "entered", "tool": name})
            try:
                stopped = context.token.wait(wait_of(does))
                return outcome(does)
            finally:
                self.notice({"notice": "left", "tool": name, "cancelled": stopped})

        return handle

    def async_handler(self, name: str, does: dict[str, Any]) -> Any:
        async def handle(**_: Any) -> Any:
            stopped = False
            self.notice({"notice": "entered", "tool": name})
            try:
                await asyncio.sleep(wait_of(does))
                return outcome(does)
            except asyncio.CancelledError:
                stopped = True
                raise
            finally:
                self.notice({"notice": "left", "tool": name, "cancelled": stopped})

        return handle


def wait_of(does: dict[str, Any]) -> float:
    return float(does.get("sleeps", does.get("meanwhile", 20 if "until_cancelled" in does else 0)))


def outcome(does: dict[str, Any]) -> Any:
    if "raises" in does:
        raise RuntimeError(does["raises"])
    return "x" * does["returns_size"] if "returns_size" in does else does.get("returns")


def seen(event: Any) -> dict[str, Any]:
    known = not isinstance(event, sdk.UnknownEvent)
    return {"seq": event.seq, "raw": event.raw, "known": known, "terminal": event.is_terminal}


def texts(step: dict[str, Any], events: list[Any]) -> dict[str, str]:
    if "texts" not in step:
        return {}
    turn = sdk.TurnAccumulator(step["turn"])
    for event in events:
        turn.add(event)
    return {who: turn.text if who == "orchestrator" else turn.text_of(who) for who in step["texts"]}


def told(problem: Exception) -> dict[str, Any]:
    """An error in the words of the protocol."""
    fields = {name: wire(getattr(problem, name, None)) for name in TOLD}
    if isinstance(fields["raw"], bytes):
        fields["raw_text"] = fields.pop("raw").decode(errors="replace")
    record = logging.LogRecord("driver", logging.ERROR, __file__, 0, "%r %s", (problem, problem), None)
    printed = f"{record.getMessage()}\n{''.join(traceback.format_exception(problem))}"
    return {"class": type(problem).__name__, **fields, "printed": printed}


def wire(value: Any) -> Any:
    """What the fixtures call a value: wire names, unknown fields under `extra`, originals of events."""
    if isinstance(value, (list, tuple)):
        return [wire(item) for item in value]
    if isinstance(value, dict):
        return {name: wire(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, sdk.TurnResult):
        fields = ("chat_id", "turn_id", "text", "usage", "cost", "last_seq", "completed")
        return {name: wire(getattr(value, name)) for name in fields} | {"terminal_event": value.terminal_event.raw}
    if hasattr(value, "links"):
        return {name: wire(getattr(value, name)) for name in ("data", "links", "meta")}
    if isinstance(value, msgspec.Struct):
        fields = [f for f in msgspec.structs.fields(value) if f.name != "extra"]
        own = {f.encode_name: wire(getattr(value, f.name)) for f in fields if getattr(value, f.name) is not sdk.UNSET}
        return own | ({"extra": value.extra} if isinstance(value, Resource) else {})
    return value


async def serve(driver: SdkDriver) -> None:
    lines = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    def write(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    while line := await lines.readline():
        command = json.loads(line)
        write({"id": command["id"], **await driver.ask(command, write)})


if __name__ == "__main__":
    asyncio.run(serve(SdkDriver(sys.argv[1])))
