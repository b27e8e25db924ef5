"""Every case of the fixtures, and what must be true of each: the only place where SDKs are judged."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from .fake_server import Asked, FakeServer
from .program import Driver

CONFORMANCE = Path(__file__).resolve().parents[1]
KEY = "envai_sk_fixture"
STEP_LIMIT = 20.0
SCENARIOS = ("http/scenarios", "atp/streams", "tools/scenarios", "flows/scenarios")


class Case(NamedTuple):
    """One case of one fixture; `play` raises AssertionError where the SDK does not do what it must."""

    group: str
    name: str
    play: Callable[[Driver, Path], Awaitable[None]]


class Unexpected(AssertionError):
    """A step failed that should not have; the error as the driver told it."""


def load(name: str) -> Any:
    return json.loads((CONFORMANCE / name).read_text(encoding="utf-8"))


def all_cases() -> list[Case]:
    return [*scenario_cases(), *vector_cases()]


def scenario_cases() -> list[Case]:
    return [
        Case(scenario["bullet"], scenario["name"], lambda driver, folder, s=scenario: Play(s, driver, folder).run())
        for name in SCENARIOS
        for scenario in load(f"{name}.json")
    ]


def vector_cases() -> list[Case]:
    """What is no scenario: one command each, or one server for the webhooks' keys."""
    signed, hooks, jcs = load("ed25519/vectors.json"), load("webhooks/vectors.json"), load("jcs/vectors.json")
    keys = [key["jwk"] for key in signed["keys"]]
    return [
        *(Case(case["bullet"], case["name"], of(frames, case)) for case in load("sse/decoder.json")),
        *(Case("events", case["name"], of(event, case)) for case in load("atp/events.json")),
        *(
            Case("jcs", case["name"], of(canonical, {"json": case["json"]}, case["canonical"]))
            for case in jcs["documents"]
        ),
        *(
            Case("jcs", case["ieee754"], of(canonical, {"ieee754": case["ieee754"]}, case["canonical"]))
            for case in jcs["numbers"]
        ),
        *(Case("jcs", case["name"], of(canonical, {"json": case["json"]}, None)) for case in jcs["refused"]),
        *(Case("jcs", bits, of(canonical, {"ieee754": bits}, None)) for bits in jcs["refused_numbers"]),
        *(Case("ed25519", case["name"], of(signature, keys, case)) for case in signed["tool_requests"]),
        *(Case("webhooks", case["name"], of(webhook, hooks, case)) for case in hooks["deliveries"]),
        Case("surface", "every operation of the contract can be called", operations),
    ]


def of(function: Any, *given: Any) -> Callable[[Driver, Path], Awaitable[None]]:
    return lambda driver, _: function(driver, *given)


async def ask(driver: Driver, do: str, **given: Any) -> dict[str, Any]:
    async with asyncio.timeout(STEP_LIMIT):
        reply = await driver.ask({"do": do, **given}, lambda _: None)
    assert "unknown" not in reply, f"the driver does not know {do!r}"
    return reply


async def frames(driver: Driver, case: dict[str, Any]) -> None:
    reply = await ask(driver, "sse", chunks=case["chunks"], max_frame=case.get("max_frame", 1024))
    if "error" in case:
        assert reply["error"]["class"] == case["error"]
    else:
        assert result_of(reply)["frames"] == case["frames"]


async def event(driver: Driver, case: dict[str, Any]) -> None:
    frame = base64.b64encode(json.dumps(case["event"]).encode()).decode()
    reply = await ask(driver, "event", frame=frame)
    if case["valid"]:
        assert result_of(reply)["raw"] == case["event"]
    else:
        assert "error" in reply, "an invalid event was taken"
        assert reply["error"]["class"] in ("InvalidEventError", "UnsupportedVersionError")
        assert reply["error"]["raw"] == case["event"]


async def canonical(driver: Driver, given: dict[str, Any], wanted: str | None) -> None:
    reply = await ask(driver, "canonical", **given)
    if wanted is None:
        assert "error" in reply, "what has no canonical form was given one"
    else:
        assert result_of(reply)["canonical"] == wanted


async def signature(driver: Driver, keys: list[Any], case: dict[str, Any]) -> None:
    reply = await ask(driver, "signature", keys=keys, request=case["request"])
    assert result_of(reply)["valid"] is case["valid"]


async def webhook(driver: Driver, hooks: dict[str, Any], case: dict[str, Any]) -> None:
    answers = [{"status": 200, "json": {"keys": hooks["keys"]}}] * 2
    async with FakeServer([{"on": "GET /keys", "replies": answers}]) as server:
        given = {"body": case["body"], "headers": case["headers"], "workspace_id": hooks["workspace_id"]}
        reply = await ask(driver, "webhook", jwks_url=server.origin + "/keys", now=hooks["now"], **given)
    result = result_of(reply)
    assert result["valid"] is case["valid"]
    if case["valid"]:
        assert result["event"] == json.loads(base64.b64decode(case["body"]))


async def operations(driver: Driver, _: Path) -> None:
    known = {item["id"] for item in load("contract/operations.json")["operations"]}
    more = {item["id"] for item in load("contract/extensions.json")["operations"]}
    assert set(result_of(await ask(driver, "operations"))["operations"]) == known | more


def result_of(reply: dict[str, Any]) -> Any:
    if "error" in reply:
        raise Unexpected(f"failed: {reply['error']}")
    return reply["result"]


class Play:
    """One scenario: its server, its steps, and what must be true afterwards."""

    def __init__(self, scenario: dict[str, Any], driver: Driver, folder: Path) -> None:
        self.scenario = scenario
        self.driver = driver
        self.ledger = folder / "ledger"
        self.target = folder / "download.bin"
        self.runs: Counter[str] = Counter()
        self.cancelled: list[str] = []
        self.running = 0
        self.peak = 0

    async def run(self) -> None:
        async with FakeServer(self.scenario["server"]) as self.server:
            for base in self.scenario.get("base_paths", [""]):
                given = {"base_url": self.server.origin + base, "api_key": KEY, "ledger": str(self.ledger)}
                await self.ask("open", options=self.scenario.get("options", {}), **given)
                try:
                    for step in self.scenario["steps"]:
                        await self.step(step)
                    await self.check()
                finally:
                    await self.ask("close")

    async def ask(self, do: str, **given: Any) -> dict[str, Any]:
        async with asyncio.timeout(STEP_LIMIT):
            reply = await self.driver.ask({"do": do, **given}, self.notice)
        assert "unknown" not in reply, f"the driver does not know {do!r}"
        if do not in ("play", "event"):
            result_of(reply)
        return reply

    def notice(self, told: dict[str, Any]) -> None:
        if told["notice"] == "entered":
            self.runs[told["tool"]] += 1
            self.running += 1
            self.peak = max(self.peak, self.running)
            self.server.mark(f"run {told['tool']}")
        else:
            self.running -= 1
            if told["cancelled"]:
                self.cancelled.append(told["tool"])
            self.server.mark("left")

    async def step(self, step: dict[str, Any]) -> None:
        started = time.monotonic()
        reply = await self.ask("play", step=step, target=str(self.target))
        seconds = time.monotonic() - started
        assert step.get("at_least", 0) <= seconds < step.get("at_most", STEP_LIMIT), seconds
        self.check_error(reply.get("error"), step.get("raises"))
        result = reply.get("result") or {}
        if "take" in step:
            self.check_events(step, result)
        if "saves" in step:
            self.check_download(step["saves"])
        if "error" not in reply:
            self.check_values(step, result)
        if "runs" in step:
            assert dict(self.runs) == step["runs"]

    def check_error(self, problem: dict[str, Any] | None, expected: dict[str, Any] | None) -> None:
        if problem is not None:
            assert KEY not in problem.get("printed", ""), "an error prints the key"
            if expected is None:
                raise Unexpected(f"failed: {problem}")
        if expected is None:
            return
        assert problem is not None, "an error was expected"
        for name, value in expected.items():
            if name == "raw_text":
                assert value in problem["raw_text"]
            else:
                match(problem.get("class" if name == "error" else name), value, name)

    def check_download(self, size: int | None) -> None:
        if size is None:
            assert not self.target.exists()
        else:
            assert self.target.stat().st_size == size
            self.target.unlink()
        assert list(self.target.parent.glob("*download*")) == []
        assert list(self.target.parent.glob(".*download*")) == []

    def check_values(self, step: dict[str, Any], result: dict[str, Any]) -> None:
        if "iterates" in step:
            match(result["items"], step["iterates"], "items")
        elif "bytes" in step:
            assert result["base64"] == step["bytes"]
        elif "gives" in step:
            match(result.get("value"), step["gives"], "value")
        if "during" in step:
            match(result["during"], step["during"]["gives"], "during")

    def check_events(self, step: dict[str, Any], result: dict[str, Any]) -> None:
        events = result["events"]
        assert [event["seq"] for event in events] == step["seqs"]
        after = step.get("kwargs", {}).get("after", 0) if not events else 0
        assert result["last_seq"] == step.get("last_seq", max([*step["seqs"], after]))
        assert result["restarts"] == step.get("restarts", 0)
        if "raw" in step:
            assert [event["raw"] for event in events] == step["raw"]
        if "classes" in step:
            assert ["Event" if event["known"] else "UnknownEvent" for event in events] == step["classes"]
        if "terminals" in step:
            assert [event["seq"] for event in events if event["terminal"]] == step["terminals"]
        if "texts" in step:
            assert result["texts"] == step["texts"]

    async def check(self) -> None:
        scenario, server = self.scenario, self.server
        assert server.surprises == []
        if "cancelled" in scenario:  # a handler may be told to stop and not waited for
            await server.until(lambda: self.running == 0)
        if scenario.get("closes"):
            await server.until(lambda: server.closed_by_client)
        if "order" in scenario:
            assert [asked.route for asked in server.asked] == scenario["order"]
        if "request_count" in scenario:
            assert len(server.asked) == scenario["request_count"]
        if "requests" in scenario:
            last = server.asked[-len(scenario["requests"]) :]
            for asked, expected in zip(last, scenario["requests"], strict=True):
                check_request(asked, expected)
        for route, bodies in scenario.get("bodies", {}).items():
            assert [asked.json() for asked in server.asked if asked.route == route] == bodies
        if "afters" in scenario:
            streams = [asked for asked in server.asked if asked.path.endswith("/events")]
            assert [asked.query["after"] for asked in streams] == scenario["afters"]
        await self.check_tools()

    async def check_tools(self) -> None:
        scenario = self.scenario
        if "outputs" in scenario:
            posted = [asked.json() for asked in self.server.asked if asked.path.endswith("/tool-output")]
            if scenario.get("any_order"):
                posted.sort(key=lambda item: str(item["call_id"]))
            assert posted == [expand(item) for item in scenario["outputs"]]
        if "key_fetches" in scenario:
            fetches = [asked for asked in self.server.asked if asked.path.endswith("jwks.json")]
            assert len(fetches) == scenario["key_fetches"]
            assert all("authorization" not in asked.headers for asked in fetches)
        if "peak" in scenario:
            assert self.peak == scenario["peak"]
        assert self.cancelled == scenario.get("cancelled", self.cancelled)
        for call_id, state in scenario.get("ledger", {}).items():
            chat = scenario["steps"][0]["args"][0]
            reply = await self.ask("ledger", chat_id=chat, call_id=call_id)
            assert reply["result"]["state"] == state


def check_request(asked: Asked, expected: dict[str, Any]) -> None:
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
        check_part(asked, expected["multipart"])


def check_part(asked: Asked, expected: dict[str, Any]) -> None:
    """The one part of a form, however its writer orders the headers."""
    kind, _, boundary = asked.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    before, part, after = asked.body.split(b"--" + boundary.strip('"').encode())
    assert (before, after.strip()) == (b"", b"--")
    head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n"))
    assert fields["content-type"] == expected["type"]
    assert fields["content-disposition"] == f'form-data; name="{expected["name"]}"; filename="{expected["filename"]}"'
    assert content == base64.b64decode(expected["base64"]) + b"\r\n"


def expand(item: dict[str, Any]) -> dict[str, Any]:
    if "output_repeat" not in item:
        return item
    text, times = item["output_repeat"]
    return {"call_id": item["call_id"], "output": text * times, "is_error": item["is_error"]}


def match(actual: Any, expected: Any, where: str) -> None:
    """`expected` describes `actual`: fields of objects, every element of lists, plain values, times in any zone."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), f"{where}: {actual!r}"
        for name, value in expected.items():
            match(actual.get(name), value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), f"{where}: {actual!r}"
        assert len(actual) == len(expected), f"{where}: {len(actual)} elements"
        for number, (got, want) in enumerate(zip(actual, expected, strict=True)):
            match(got, want, f"{where}[{number}]")
    else:
        assert actual == expected or same_moment(actual, expected), f"{where}: {actual!r}, not {expected!r}"


def same_moment(actual: Any, expected: Any) -> bool:
    try:
        return datetime.fromisoformat(actual) == datetime.fromisoformat(expected)
    except (TypeError, ValueError):
        return False
