"""The embedded model as an `Engine`: weights by name, one child process per file, one call at a time in each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent
from crocevia.engines.context import EngineContext
from crocevia.engines.llama import weights
from crocevia.engines.llama.exchange import LlamaExchange
from crocevia.engines.llama.worker import COMMAND, LlamaSettings, Worker
from crocevia.engines.upstream.http import HttpClient

_WARM_SECONDS = 300.0
_PROBE_SECONDS = 130.0


def build(spec: EngineSpec, context: EngineContext) -> LlamaEngine:
    """The embedded engine. Nothing is loaded and no process started before the first call or `start()`."""
    return LlamaEngine(spec.name, context.models_dir, context.http)


class LlamaEngine:
    """`request.model` is a name of the weights catalogue (empty: the default) or the path of a GGUF file."""

    dialect = "plain"

    def __init__(
        self,
        name: str,
        models_dir: Path,
        http: HttpClient,
        settings: LlamaSettings | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.name = name
        self._models_dir = models_dir
        self._http = http
        self._settings = settings or LlamaSettings()
        self._command = command
        self._workers: dict[Path, Worker] = {}
        self._closed = False

    async def start(self, model: str = "") -> None:
        """Load a model before anyone asks for it, and let it read what all calls with tools begin with.

        To be run in the background; the reading takes seconds the first time and none on later starts.
        Raises GatewayError(UNAVAILABLE) when the weights are not here or do not load.
        """
        worker = self._worker(model)
        deadline = asyncio.get_running_loop().time() + _WARM_SECONDS
        await worker.enter(deadline)
        idle = False
        try:
            await worker.ready(deadline)
            await worker.learn(deadline)
            idle = True
        finally:
            worker.leave(idle=idle)

    async def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        worker = self._worker(request.model)
        entry = weights.CATALOGUE.get(request.model or weights.DEFAULT)
        bias = entry.reply_bias if entry else 0.0
        exchange = LlamaExchange(request, worker, self._settings, bias, deadline)
        await worker.enter(deadline)
        try:
            await worker.ready(deadline)
            await exchange.begin()
            while batch := await exchange.batch():
                yield batch
        except GatewayError as failure:
            raise await worker.explain(failure) from None
        finally:
            # Synchronous: whoever cancels gets away at once, and the slot follows when the model is idle.
            exchange.close()
            worker.leave(idle=exchange.stopped)

    def abilities(self, model: str) -> Abilities:
        return Abilities()

    async def probe(self) -> None:
        """The weights are here and load, or a running child answers."""
        worker = self._worker("")
        deadline = asyncio.get_running_loop().time() + _PROBE_SECONDS
        await worker.enter(deadline)
        idle = False
        try:
            await worker.ready(deadline)
            idle = True
        finally:
            worker.leave(idle=idle)

    async def close(self) -> None:
        self._closed = True
        for worker in self._workers.values():
            await worker.close()

    def _worker(self, model: str) -> Worker:
        if self._closed:
            raise GatewayError(Reason.EMBEDDED_CLOSED)
        path = weights.locate(model, self._models_dir)
        if path not in self._workers:
            self._workers[path] = Worker(path, self._models_dir / "memory", self._http, self._settings, self._command)
        return self._workers[path]
