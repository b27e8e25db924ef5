"""Plays a shared scenario against a client, sync or async, and checks all that it says."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from fake_server import FakeServer

import envai_client as sdk
from envai_client.options import ReconnectPolicy, RetryPolicy, Timeouts

CONFORMANCE = Path(__file__).resolve().parents[3] / "conformance"
KEY = "envai_sk_fixture"
POLICIES = {"timeouts": Timeouts, "retry": RetryPolicy, "reconnect": ReconnectPolicy}
EDITIONS = ("sync", "async")


def load(name: str) -> Any:
    return json.loads((CONFORMANCE / name).read_text(encoding="utf-8"))


class Edition:
    """The one difference between the two clients, hidden: how their calls are waited for."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.is_async = kind == "async"
        self.client: Any = sdk.AsyncEnvaiClient(**options) if self.is_async else sdk.EnvaiClient(**options)

    async def wait(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_async:
            return await asyncio.to_thread(function, *args, **kwargs)
        value = function(*args, **kwargs)
        return await value if asyncio.iscoroutine(value) else value

    async def next(self, iterator: Any) -> Any:
        """The next item, or None at the end."""
        if self.is_async:
            return await anext(iterator, None)
        return await asyncio.to_thread(next, iterator, None)

    def iterate(self, stream: Any) -> Any:
        return stream.__aiter__() if self.is_async else iter(stream)

    async def close_generator(self, iterator: Any) -> None:
        if hasattr(iterator, "aclose"):
            await iterator.aclose()
        elif hasattr(iterator, "close"):
            await self.wait(iterator.close)

    async def close(self) -> None:
        await self.wait(self.client.aclose if self.is_async else self.client.close)


class Play:
    def __init__(self, scenario: dict[str, Any], edition: str, folder: Path) -> None:
        self.scenario = scenario
        self.kind = edition
        self.folder = folder
        self.runs: Counter[str] = Counter()
        self.cancelled: list[str] = []
        self.running = 0
        self.peak = 0
        self.lock = threading.Lock()

    async def run(self) -> None:
        async with FakeServer(self.scenario["server"]) as self.server:
            for base in self.scenario.get("base_paths", [""]):
                options = {
                    name: POLICIES[name](**value) if name in POLICIES else value
                    for name, value in self.scenario.get("options", {}).items()
                }
                self.ledger = sdk.SqliteLedger(self.folder / "ledger.sqlite3")
                self.edition = Edition(
                    self.kind, api_key=KEY, base_url=self.server.origin + base, ledger=self.ledger, **options
                )
                try:
                    for step in self.scenario["steps"]:
                        await self.step(step)
                    await self.check()
                finally:
                    await self.edition.close()
                    self.ledger.close()

    async def step(self, step: dict[str, Any]) -> None:
        started = time.monotonic()
        problem: BaseException | None = None
        try:
            async with asyncio.timeout(20):
                await self.perform(step)
        except sdk.EnvaiError as raised:
            problem = raised
        seconds = time.monotonic() - started
        assert step.get("at_least", 0) <= seconds < step.get("at_most", 20), seconds
        expected = step.get("raises")
        if expected is None:
            if problem is not None:
                raise problem
        else:
            assert problem is not None, "an error was expected"
            self.check_error(problem, expected)
        if "runs" in step:
            assert dict(self.runs) == step["runs"]

    def check_error(self, problem: Any, expected: dict[str, Any]) -> None:
        expected = dict(expected)
        name = expected.pop("error", None)
        if name is not None:
            assert type(problem).__name__ == name, repr(problem)
        if "raw_text" in expected:
            assert expected.pop("raw_text").encode() in problem.raw
        for field, value in expected.items():
            match(getattr(problem, field), value)
        assert KEY not in repr(problem) + str(problem)

    async def perform(self, step: dict[str, Any]) -> None:
        if "take" in step:
            await self.take(step)
        elif "during" in step:
            await self.interrupt(step)
        else:
            await self.one_call(step)

    async def one_call(self, step: dict[str, Any]) -> None:
        args, kwargs = self.arguments(step)
        method = self.method(step["call"])
        if "iterates" in step:
            iterator, got = self.edition.iterate(method(*args, **kwargs)), []
            while (item := await self.edition.next(iterator)) is not None:
                got.append(item)
            match(got, step["iterates"])
        elif "saves" in step:
            await self.save(step, method, args, kwargs)
        elif "bytes" in step:
            value = await self.edition.wait(method, *args, **kwargs)
            assert await self.edition.wait(value.read) == base64.b64decode(step["bytes"])
        else:
            match(await self.edition.wait(method, *args, **kwargs), step.get("gives", {}))

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

    async def save(self, step: dict[str, Any], method: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        target = self.folder / f"{self.kind}.bin"
        try:
            await self.edition.wait(method, *args, target, **kwargs)
        finally:
            if step["saves"] is None:
                assert not target.exists()
            else:
                assert target.stat().st_size == step["saves"]
            assert not list(self.folder.glob(".*.part"))

    async def take(self, step: dict[str, Any]) -> None:
        kwargs = dict(step.get("kwargs", {}))
        token = kwargs["cancel"] = sdk.CancelToken()
        stream = self.edition.client.chats.events(*step["args"], **kwargs)
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
            assert [event.seq for event in events] == step["seqs"]
            assert stream.last_seq == step.get(
                "last_seq", max([*step["seqs"], kwargs.get("after", 0) if not events else 0])
            )
            await self.edition.close_generator(iterator)
            await self.edition.wait(stream.close)
        self.check_events(step, stream, events)

    def check_events(self, step: dict[str, Any], stream: Any, events: list[Any]) -> None:
        if "raw" in step:
            assert [event.raw for event in events] == step["raw"]
        if "classes" in step:
            known = ["UnknownEvent" if isinstance(event, sdk.UnknownEvent) else "Event" for event in events]
            assert known == step["classes"]
        if "terminals" in step:
            assert [event.seq for event in events if event.is_terminal] == step["terminals"]
        assert stream.restarts == step.get("restarts", 0)
        if "texts" in step:
            turn = sdk.TurnAccumulator(step["turn"])
            for event in events:
                turn.add(event)
            for who, text in step["texts"].items():
                assert (turn.text if who == "orchestrator" else turn.text_of(who)) == text

    async def interrupt(self, step: dict[str, Any]) -> None:
        stream = self.edition.client.chats.send_and_stream(*step["args"], **step.get("kwargs", {}))
        iterator, during = self.edition.iterate(stream), step["during"]
        while (event := await self.edition.next(iterator)) is not None:
            if event.seq == during["after_seq"]:
                value = await self.edition.wait(
                    self.method(during["call"]), *during["args"], **during.get("kwargs", {})
                )
                match(value, during["gives"])
        match(stream.result(), step["gives"])

    def registry(self, tools: dict[str, Any]) -> sdk.ClientToolRegistry:
        registry = sdk.ClientToolRegistry()
        for name, spec in tools.items():
            handler = (
                self.async_handler(name, spec["does"]) if self.edition.is_async else self.handler(name, spec["does"])
            )
            registry.register_tool(name, handler, spec["schema"], spec["timeout"])
        return registry

    def entered(self, name: str) -> None:
        with self.lock:
            self.runs[name] += 1
            self.running += 1
            self.peak = max(self.peak, self.running)
        self.server.mark(f"run {name}")

    def left(self) -> None:
        with self.lock:
            self.running -= 1
        self.server.mark("left")

    def handler(self, name: str, does: dict[str, Any]) -> Any:
        def handle(context: sdk.ToolContext, **_: Any) -> Any:
            self.entered(name)
            try:
                if context.token.wait(
                    does.get("sleeps", does.get("meanwhile", 20 if "until_cancelled" in does else 0))
                ):
                    self.cancelled.append(name)
                return outcome(does)
            finally:
                self.left()

        return handle

    def async_handler(self, name: str, does: dict[str, Any]) -> Any:
        async def handle(**_: Any) -> Any:
            self.entered(name)
            try:
                await asyncio.sleep(does.get("sleeps", does.get("meanwhile", 20 if "until_cancelled" in does else 0)))
                return outcome(does)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            finally:
                self.left()

        return handle

    async def check(self) -> None:
        scenario, server = self.scenario, self.server
        assert server.surprises == []
        if "cancelled" in scenario:  # a handler in a thread is told to stop and not waited for
            await server.until(lambda: self.running == 0)
        if scenario.get("closes"):
            await server.until(lambda: server.closed_by_client)
        if "order" in scenario:
            assert [asked.route for asked in server.asked] == scenario["order"]
        if "request_count" in scenario:
            assert len(server.asked) == scenario["request_count"]
        if "requests" in scenario:
            for asked, expected in zip(server.asked[-len(scenario["requests"]) :], scenario["requests"], strict=True):
                self.check_request(asked, expected)
        for route, bodies in scenario.get("bodies", {}).items():
            assert [asked.json() for asked in server.asked if asked.route == route] == bodies
        if "afters" in scenario:
            assert [asked.query["after"] for asked in server.asked if asked.path.endswith("/events")] == scenario[
                "afters"
            ]
        self.check_tools()

    def check_tools(self) -> None:
        scenario = self.scenario
        if "outputs" in scenario:
            posted = [asked.json() for asked in self.server.asked if asked.path.endswith("/tool-output")]
            wanted = [expand(item) for item in scenario["outputs"]]
            if scenario.get("any_order"):
                posted.sort(key=lambda item: item["call_id"])
            assert posted == wanted
        if "key_fetches" in scenario:
            fetches = [asked for asked in self.server.asked if asked.path.endswith("jwks.json")]
            assert len(fetches) == scenario["key_fetches"]
            assert all("authorization" not in asked.headers for asked in fetches)
        if "peak" in scenario:
            assert self.peak == scenario["peak"]
        assert self.cancelled == scenario.get("cancelled", self.cancelled)
        for call_id, state in scenario.get("ledger", {}).items():
            chat = self.scenario["steps"][0]["args"][0]
            record = self.ledger.get(chat, call_id)
            assert record is not None and record.state == state

    def check_request(self, asked: Any, expected: dict[str, Any]) -> None:
        if "is" in expected:
            assert asked.route == expected["is"]
        if "raw_query" in expected:
            assert asked.raw_query == expected["raw_query"]
        if "json" in expected:
            assert asked.json() == expected["json"]
        for name, value in expected.get("headers", {}).items():
            assert asked.headers[name] == value
        for name in expected.get("without_headers", []):
            assert name not in asked.headers
        if "multipart" in expected:
            part = expected["multipart"]
            head = f'name="{part["name"]}"; filename="{part["filename"]}"\r\nContent-Type: {part["type"]}\r\n\r\n'
            assert head.encode() + base64.b64decode(part["base64"]) + b"\r\n--" in asked.body


def expand(item: dict[str, Any]) -> dict[str, Any]:
    if "output_repeat" not in item:
        return item
    text, times = item["output_repeat"]
    return {"call_id": item["call_id"], "output": text * times, "is_error": item["is_error"]}


def outcome(does: dict[str, Any]) -> Any:
    if "raises" in does:
        raise RuntimeError(does["raises"])
    return "x" * does["returns_size"] if "returns_size" in does else does.get("returns")


def match(actual: Any, expected: Any) -> None:
    """`expected` describes `actual`: attributes or keys of objects, every element of lists, plain values."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            match(actual[name] if isinstance(actual, dict) else getattr(actual, name), value)
    elif isinstance(expected, list):
        assert len(actual) == len(expected), actual
        for got, want in zip(actual, expected, strict=True):
            match(got, want)
    elif isinstance(actual, datetime):
        assert actual == datetime.fromisoformat(expected)
    else:
        assert actual == expected
