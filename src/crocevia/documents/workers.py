"""Starts a worker per file, feeds it, and bounds it from outside: how many at once, how long, how much comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TypeVar

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.jobs import REFUSALS, Job, Outcome

T = TypeVar("T")

_CHUNK = 1 << 16
_OUT_OF_TIME = tuple(-getattr(signal, name) for name in ("SIGPROF", "SIGXCPU") if hasattr(signal, name))
_ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}  # nothing of the server's own, above all no key


class _Slots:
    """Places at work, which owners take turns for: nobody waits for another's second file."""

    def __init__(self, slots: int, jobs: int) -> None:
        """jobs: at work and waiting, of all owners; one alone has at most half of them."""
        self._free = slots
        self._left = jobs
        self._most = max(1, jobs // 2)
        self._jobs = Counter[str]()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        """owner: empty for nobody's. Raises GatewayError(UNAVAILABLE) when too many wait."""
        if self._left <= 0 or (owner and self._jobs[owner] >= self._most):
            raise GatewayError(Reason.FILES_BUSY, retry_after=5)
        self._left -= 1
        self._jobs[owner] += 1
        try:
            await self._enter(owner)
            try:
                yield
            finally:
                self._leave()
        finally:
            self._left += 1
            self._jobs[owner] -= 1
            self._jobs += Counter()  # forgets who has none

    async def _enter(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turns = self._waiting.setdefault(owner, deque())
        turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # in the very moment in which it was given
                self._leave()
            elif turn in turns:
                turns.remove(turn)
            raise

    def _leave(self) -> None:
        """Give the slot to the next owner in the round, if anybody still waits."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            while turns:
                turn = turns.popleft()
                if not turn.done():
                    if turns:
                        self._waiting[owner] = turns
                    turn.set_result(None)
                    return
        self._free += 1


class Workers:
    """At most `processes` workers at once and `waiting` jobs with those behind them; one file per process."""

    def __init__(self, *, processes: int | None = None, waiting: int = 512) -> None:
        self._slots = _Slots(processes or max(2, min(8, os.cpu_count() or 2)), waiting)
        self.pids: set[int] = set()

    def of(self, owner: str) -> Share:
        """The same workers, in the turn of whoever sends the files."""
        return Share(self, owner)

    async def run(self, job: Job, data: bytes, result: type[T], *, max_output: int, owner: str = "") -> T:
        """What the job made of `data`, of at most `max_output` bytes.

        Raises GatewayError: INVALID_REQUEST when the file is refused or its worker died over it, UNAVAILABLE when
        too many files wait or no process can be started.
        """
        async with self._slots.take(owner):
            answer = await self._spend(job, data, max_output)
        return _decoded(answer, result)

    async def _spend(self, job: Job, data: bytes, max_output: int) -> bytes:
        process = await _start()
        self.pids.add(process.pid)
        try:
            # CPU time is the limit that means something on a busy machine; the clock only catches a worker that hangs.
            async with asyncio.timeout(5 + 4 * (job.seconds + job.pages_seconds)):
                feeding = asyncio.create_task(_feed(process, job, data))
                try:
                    answer = await _collect(process, max_output)
                    status = await process.wait()
                finally:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
        except TimeoutError:
            raise GatewayError(Reason.FILE_SLOW) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            self.pids.discard(process.pid)
        if status in _OUT_OF_TIME:
            raise GatewayError(Reason.FILE_SLOW)
        if status != 0:
            raise GatewayError(Reason.FILE_BROKE)
        return answer


class Share(NamedTuple):
    """Workers, as one who sends files has them."""

    workers: Workers
    owner: str

    async def run(self, job: Job, data: bytes, result: type[T], *, max_output: int) -> T:
        """As `Workers.run`."""
        return await self.workers.run(job, data, result, max_output=max_output, owner=self.owner)


async def _start() -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-m", "crocevia.documents.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_ENVIRONMENT if sys.platform != "win32" else None,
            start_new_session=True,
        )
    except OSError:
        raise GatewayError(Reason.FILES_BUSY, retry_after=5) from None


async def _feed(process: asyncio.subprocess.Process, job: Job, data: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        view = memoryview(data)
        for at in range(0, len(view), _CHUNK):
            process.stdin.write(view[at : at + _CHUNK])
            await process.stdin.drain()
        process.stdin.close()
    except OSError:
        pass  # it died: its exit status says so


async def _collect(process: asyncio.subprocess.Process, max_output: int) -> bytes:
    assert process.stdout is not None
    answer = bytearray()
    while chunk := await process.stdout.read(_CHUNK):
        answer += chunk
        if len(answer) > max_output:
            raise GatewayError(Reason.FILE_HEAVY)
    return bytes(answer)


def _decoded(answer: bytes, result: type[T]) -> T:
    # A worker that was taken over by its file can say anything: only these types come through.
    try:
        outcome = msgspec.msgpack.decode(answer, type=Outcome)
        if outcome.refusal is None:
            return msgspec.msgpack.decode(outcome.result, type=result)
        reason: Reason = outcome.refusal
    except (msgspec.MsgspecError, RecursionError):
        raise GatewayError(Reason.FILE_BROKE) from None
    error = GatewayError(reason if reason in REFUSALS else Reason.FILE_BROKE)
    error.details.update(outcome.numbers)
    raise error
