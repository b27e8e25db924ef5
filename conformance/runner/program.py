"""A driver that is a program: JSON lines over its standard input and output."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, Protocol

LINE_LIMIT = 64 * 1024 * 1024
Notice = Callable[[dict[str, Any]], None]


class Driver(Protocol):
    """What performs commands: a program, or an object in this process."""

    async def ask(self, command: dict[str, Any], notice: Notice) -> dict[str, Any]:
        """The reply to `command`; `notice` is called with each notice that comes before it."""


class DriverGoneError(Exception):
    """The program ended, or wrote what is no reply."""


class Program:
    """Starts `command` on entry and ends it on exit. Commands go one at a time."""

    def __init__(self, command: list[str], cwd: str | None = None) -> None:
        self._command = command
        self._cwd = cwd
        self._ids = itertools.count(1)

    async def __aenter__(self) -> Program:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, limit=LINE_LIMIT, cwd=self._cwd
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(10):
                self.status = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            self.status = await self._process.wait()

    async def ask(self, command: dict[str, Any], notice: Notice) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        number = next(self._ids)
        try:
            stdin.write(json.dumps({"id": number, **command}).encode() + b"\n")
            await stdin.drain()
        except ConnectionError as problem:
            raise DriverGoneError(f"the driver does not listen: {problem}") from None
        while line := await stdout.readline():
            reply: dict[str, Any] = json.loads(line)
            if "notice" in reply:
                notice(reply)
            elif reply.get("id") == number:
                return reply
            # A late reply to a command that nobody waits for any more.
        raise DriverGoneError("the driver ended")
