"""The parent's side of one child process: start it when it is needed, know when it died, end it, start it again.

One call at a time: the slot is held from before the start of the child until the model is known to be idle again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.engines.llama.child import ChildSettings
from crocevia.engines.llama.prompt import lesson
from crocevia.engines.upstream.errors import UNREADABLE
from crocevia.engines.upstream.http import HttpClient, HttpResponse

COMMAND = (sys.executable, "-m", "crocevia.engines.llama.child")

_LOAD_SECONDS = 120.0
_IDLE_SECONDS = 1.0  # what a cancelled call may still take before its child is ended
_POLL_SECONDS = 0.05
_REAP_SECONDS = 1.0
_BACK_OFF = (0.0, 0.0, 0.5, 2.0, 8.0, 30.0)  # seconds before the next start, by failures in a row
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_MAX_BODY = 32 * 2**20


class LlamaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the model runs. None: by the machine."""

    context: int = 8192
    """Tokens of prompt and answer together."""
    max_prompt: int = 6144
    """Tokens of prompt, the fixed lesson on tools included."""
    max_waiting: int = 64
    """Calls that may wait for the model."""
    cache_mib: int = 256
    """Memory for the prompts of other conversations."""
    threads: int | None = None
    batch_threads: int | None = None


class Child(msgspec.Struct, frozen=True):
    """A running server: its process, address and headers."""

    process: asyncio.subprocess.Process
    url: str
    headers: dict[str, str]


class Worker:
    """The child for one file of weights."""

    def __init__(
        self, weights: Path, memory: Path, http: HttpClient, settings: LlamaSettings, command: Sequence[str] = COMMAND
    ) -> None:
        self.refused: set[bytes] = set()  # parameter schemas that the grammar does not take
        self._weights = weights
        self._http = http
        self._settings = settings
        self._command = command
        self._memory = memory
        self.remembers = False  # the model has read the lesson, now or in an earlier life
        self._slot = asyncio.Lock()
        self._waiting = 0
        self._child: Child | None = None
        self._loading: asyncio.subprocess.Process | None = None  # a child that has not said yet how it went
        self._failures = 0
        self._not_before = 0.0
        self._settling: asyncio.Task[None] | None = None
        self._closed = False

    async def enter(self, deadline: float) -> None:
        """Take the slot. Raises GatewayError: UPSTREAM_OVERLOADED (too many wait), UPSTREAM_TIMEOUT (at `deadline`)."""
        if self._waiting >= self._settings.max_waiting:
            raise GatewayError(Reason.EMBEDDED_BUSY, retry_after=5, limit=self._settings.max_waiting)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._slot.acquire()
        except TimeoutError:
            raise GatewayError(Reason.UPSTREAM_TIMEOUT) from None
        finally:
            self._waiting -= 1

    def leave(self, *, idle: bool) -> None:
        """Give the slot back: at once if the model is idle, else when it is, or when its child has been ended."""
        if idle:
            self._failures = 0
            self._slot.release()
        else:
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def ready(self, deadline: float) -> Child:
        """The running child, started if there is none. Only for the holder of the slot.

        Raises GatewayError: UNAVAILABLE when the runtime is missing or the weights do not load; UPSTREAM_TIMEOUT.
        """
        loop = asyncio.get_running_loop()
        if self._child is not None and self._child.process.returncode is None:
            return self._child
        if self._child is not None:
            self._fail()
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + _LOAD_SECONDS)):
                await asyncio.sleep(max(0.0, self._not_before - loop.time()))
                self._child = await self._start()
                if self._closed:
                    await self.close()
                    raise GatewayError(Reason.EMBEDDED_CLOSED)
                self.remembers = await self._recall(deadline)
        except TimeoutError:
            raise GatewayError(Reason.UPSTREAM_TIMEOUT) from None
        return self._child

    async def learn(self, deadline: float) -> None:
        """Let the model read what all calls with tools begin with, and keep its state for later starts."""
        if self.remembers:
            return
        messages = [*lesson(), {"role": "user", "content": "Hi"}]
        await self.ask("/v1/chat/completions", {"messages": messages, "max_tokens": 1}, deadline)
        name = self._memory_name()
        status, _ = await self.ask("/slots/0?action=save", {"filename": f"{name}.new"}, deadline)
        if status == 200:
            (self._memory / f"{name}.new").replace(self._memory / name)
        self.remembers = True

    async def _recall(self, deadline: float) -> bool:
        kept = self._memory / self._memory_name()
        if not kept.is_file():
            return False
        status = 0
        try:
            status, _ = await self.ask("/slots/0?action=restore", {"filename": kept.name}, deadline)
        finally:
            if status != 200:  # damaged: it must not break the next start too
                kept.unlink(missing_ok=True)
        return status == 200

    def _memory_name(self) -> str:
        """Valid for these weights, this runtime, this context and this lesson only."""
        try:
            runtime = version("xllamacpp")
        except PackageNotFoundError:
            runtime = "none"
        said = repr((self._weights.name, runtime, self._settings.context, list(lesson())))
        return f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.slot"

    async def explain(self, failure: GatewayError) -> GatewayError:
        """`failure`, or the crash that is behind it."""
        child = self._child
        if child is None or failure.code is not Code.UPSTREAM_FAILED:
            return failure
        try:
            # The connection breaks a moment before the process can be reaped.
            async with asyncio.timeout(_REAP_SECONDS):
                await child.process.wait()
        except TimeoutError:
            return failure
        return GatewayError(Reason.EMBEDDED_CRASHED)

    async def ask(self, path: str, body: Any, deadline: float) -> tuple[int, Any]:
        """Status and decoded JSON of one short exchange with the child."""
        response = await self.open("GET" if body is None else "POST", path, body, deadline)
        try:
            answer = await response.read(_MAX_BODY)
            return response.status, msgspec.json.decode(answer)
        except UNREADABLE:
            raise GatewayError(Reason.UPSTREAM_MALFORMED) from None
        finally:
            response.close()

    async def open(self, method: str, path: str, body: Any, deadline: float) -> HttpResponse:
        """Send one request to the child; the caller closes the response."""
        assert self._child is not None, "ready() comes first"
        data = None if body is None else msgspec.json.encode(body)
        return await self._http.open(method, self._child.url + path, self._child.headers, data, deadline=deadline)

    async def close(self) -> None:
        """End the child and wait for it. Idempotent."""
        self._closed = True
        child, self._child = self._child, None
        for process in (self._loading, None if child is None else child.process):
            if process is not None:
                _kill(process)
                await process.wait()
        if self._settling is not None:
            await self._settling

    async def _settle(self) -> None:
        """Wait until the abandoned call has left the model; llama.cpp does not stop inside a prompt, so end it then."""
        try:
            child = self._child
            if child is not None and child.process.returncode is None and not await self._becomes_idle():
                _kill(child.process)
                await child.process.wait()
                self._child = None  # ended by us: not a failure
        finally:
            self._slot.release()

    async def _becomes_idle(self) -> bool:
        limit = asyncio.get_running_loop().time() + _IDLE_SECONDS
        try:
            while True:
                _, slots = await self.ask("/slots", None, limit)
                if not any(slot["is_processing"] for slot in slots):
                    return True
                await asyncio.sleep(_POLL_SECONDS)
        except (GatewayError, TypeError, KeyError):
            return False

    async def _start(self) -> Child:
        self._memory.mkdir(parents=True, exist_ok=True)
        settings = self._child_settings()
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not _SECRET.search(name)},
            start_new_session=True,  # Ctrl-C is for the server, which then ends the child itself
        )
        self._loading = process
        try:
            answer = await _greet(process, settings)
        except BaseException:
            _kill(process)
            raise
        finally:
            self._loading = None
        if self._closed and "port" not in answer:
            raise GatewayError(Reason.DRAINING, code=Code.UNAVAILABLE)
        if "port" not in answer:
            _kill(process)
            await process.wait()
            self._fail()
            missing = answer.get("error") == "runtime_missing"
            raise GatewayError(Reason.EMBEDDED_RUNTIME_MISSING if missing else Reason.EMBEDDED_LOAD_FAILED)
        headers = {"Authorization": f"Bearer {settings.api_key}", "Content-Type": "application/json"}
        return Child(process, f"http://127.0.0.1:{answer['port']}", headers)

    def _child_settings(self) -> ChildSettings:
        # Half the cores for prompts too: threads that wait for a descheduled one cost more than a busy machine gives.
        threads = max(1, (os.cpu_count() or 1) // 2)
        return ChildSettings(
            model=str(self._weights),
            api_key=secrets.token_urlsafe(24),
            context=self._settings.context,
            threads=self._settings.threads or threads,
            batch_threads=self._settings.batch_threads or threads,
            cache_mib=self._settings.cache_mib,
            memory=str(self._memory),
        )

    def _fail(self) -> None:
        """Another death that we did not cause: the next start waits longer."""
        self._child = None
        self._failures = min(self._failures + 1, len(_BACK_OFF) - 1)
        self._not_before = asyncio.get_running_loop().time() + _BACK_OFF[self._failures]


async def _greet(process: asyncio.subprocess.Process, settings: ChildSettings) -> dict[str, Any]:
    """Say what to load, hear what came of it; empty when the child died without a word."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(settings) + b"\n")
        await process.stdin.drain()
        answer = msgspec.json.decode(await process.stdout.readline())
    except (ConnectionError, msgspec.DecodeError):
        _kill(process)
        return {}
    return answer if isinstance(answer, dict) else {}


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            return
