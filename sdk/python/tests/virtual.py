"""A loop whose clock jumps, and a server that lives in it: hours of trouble in a second, the same every time."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from fixture_parts import CHAT, TURN, capabilities, head, jwks, ping, request, result, terminal

from envai_client import clock

T = TypeVar("T")
STATES = ("up", "killed", "stopped", "unreachable", "slow", "failing")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when nothing is ready, and then at once up to the next timer. Threads do not exist."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._now = max(self._now, self._scheduled[0]._when)
        super()._run_once()

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *args: Any) -> Any:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args))
        except Exception as problem:
            done.set_exception(problem)
        return asyncio.wrap_future(done, loop=self)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`main` on a virtual clock, which is the SDK's too."""
    loop = VirtualLoop()
    before, clock.source = clock.source, loop.time
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main)
    finally:
        clock.source = before


class World(httpx2.AsyncBaseTransport):
    """An ATP server with one chat, as its clients see it, through whatever `state` it is in.

    killed: connections break and are refused, what was accepted stays. stopped: requests hang and are read once it goes
    on. unreachable: as killed, but the server goes on. slow: answers take seconds. failing: half of all requests answer
    500, some of them after they were carried out.
    """

    def __init__(self, seed: int, *, calls: int, claims: bool, tool_seconds: float) -> None:
        self.random = random.Random(seed)
        self.claims = claims
        self.tool_seconds = tool_seconds
        self.state = "up"
        self.log: list[dict[str, Any]] = []
        self.holders: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.deadlines: dict[str, float] = {}
        self.calls = [f"tc_{number:026d}" for number in range(1, calls + 1)]
        self.turn_over = False
        self._changed = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []

    def set_state(self, state: str) -> None:
        self.state = state
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _append(self, event: dict[str, Any]) -> None:
        event["seq"] = len(self.log) + 1
        event["id"] = f"evt_{event['seq']:026d}"
        self.log.append(event)
        self._wake()

    async def play(self) -> None:
        """The turn: a request now and then, each with its timeout, then the end."""
        loop = asyncio.get_running_loop()
        for event in head():
            self._append(event)
        for number, call_id in enumerate(self.calls, 1):
            await asyncio.sleep(self.random.uniform(0, 3))
            self.deadlines[call_id] = loop.time() + self.tool_seconds
            self._append(request(1, number))
        for call_id in self.calls:
            while call_id not in self.results:
                changed = self._changed
                left = self.deadlines[call_id] - loop.time()
                if left <= 0:
                    self._settle(call_id, '{"error":"tool_timed_out"}', True)
                    break
                try:
                    async with asyncio.timeout(left):
                        await changed.wait()
                except TimeoutError:
                    pass
        self.turn_over = True
        self._append(terminal(1))

    def _settle(self, call_id: str, output: str, is_error: bool) -> None:
        self.results[call_id] = output
        self._append(result(1, self.calls.index(call_id) + 1, output, is_error))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        state = self.state
        if state in ("killed", "unreachable"):
            await asyncio.sleep(0.001)
            raise httpx2.ConnectError("refused")
        await self._reach(request)
        body = await request.aread() if request.method == "POST" else b""
        fails = self.state == "failing" and self.random.random() < 0.5
        if fails and self.random.random() < 0.5:
            return self._answer(500, {"error": {"type": "server_error", "message": "x"}})
        answer = self._route(request, json.loads(body) if body else {})
        if fails:
            return self._answer(500, {"error": {"type": "server_error", "message": "x"}})
        if self.random.random() < 0.05 or self.state in ("killed", "unreachable"):
            raise httpx2.ReadError("the answer was lost")
        return answer

    async def _reach(self, request: httpx2.Request) -> None:
        """The way to the server, as long as it takes within the client's own timeout."""
        timeout = request.extensions["timeout"]["read"]
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(self.random.uniform(0.5, 4) if self.state == "slow" else 0.01)
                while self.state == "stopped":
                    await self._changed.wait()
        except TimeoutError:
            raise httpx2.ReadTimeout("no answer") from None
        if self.state in ("killed", "unreachable"):
            raise httpx2.ReadError("gone")

    def _answer(self, status: int, value: Any = None) -> httpx2.Response:
        headers = {"X-Envai-Contract-Version": "3"}
        if value is None:
            return httpx2.Response(status, headers=headers)
        return httpx2.Response(status, headers=headers, json=value)

    def _refuse(self, status: int, code: str) -> httpx2.Response:
        return self._answer(status, {"error": {"type": "conflict", "code": code, "message": "x"}})

    def _route(self, request: httpx2.Request, body: dict[str, Any]) -> httpx2.Response:
        path = urlsplit(str(request.url)).path
        if path.endswith("/events"):
            after = int(parse_qs(urlsplit(str(request.url)).query)["after"][0])
            headers = {"X-Envai-Contract-Version": "3", "Content-Type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, stream=Feed(self, after))
        if path.endswith("/capabilities"):
            (reply,) = capabilities(*(["tool_claims"] if self.claims else []))["replies"]
            return self._answer(200, reply["json"])
        if path.endswith("jwks.json"):
            return self._answer(200, jwks("sig_a")["json"])
        return self._tool(path.rsplit("/", 1)[1], body)

    def _tool(self, what: str, body: dict[str, Any]) -> httpx2.Response:
        call_id = body["call_id"]
        if self.turn_over or call_id not in self.deadlines:
            return self._refuse(404, "tool_call_missing")
        if call_id in self.results:
            return self._refuse(409, "tool_already_resolved")
        if what == "tool-claim":
            if self.holders.setdefault(call_id, body["holder"]) != body["holder"]:
                return self._refuse(409, "tool_claimed")
            return self._answer(204)
        self._settle(call_id, body["output"], body["is_error"])
        return self._answer(204)


class Feed(httpx2.AsyncByteStream):
    """The log from a cursor on, with a ping at its present end, until the connection breaks."""

    def __init__(self, world: World, after: int) -> None:
        self.world = world
        self.after = after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        world, loop = self.world, asyncio.get_running_loop()
        told, quiet_since = False, loop.time()
        while True:
            changed = world._changed
            if world.state in ("killed", "unreachable"):
                raise httpx2.ReadError("gone")
            if world.state != "stopped":
                while self.after < len(world.log):
                    yield frame(world.log[self.after])
                    self.after += 1
                    quiet_since = loop.time()
                if not told or loop.time() - quiet_since >= 15:
                    told, quiet_since = True, loop.time()
                    yield frame(ping())
            elif loop.time() - quiet_since > 45:
                raise httpx2.ReadTimeout("silence")
            try:
                async with asyncio.timeout(5):
                    await changed.wait()
            except TimeoutError:
                pass

    async def aclose(self) -> None:
        pass


def frame(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


__all__ = ["CHAT", "STATES", "TURN", "World", "run"]
