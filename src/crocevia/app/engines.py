"""Working engines by name, built when first asked for and replaced when their declaration changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from crocevia.core.calls import Engine
from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.context import EngineContext
from crocevia.engines.registry import build
from crocevia.engines.upstream.http import HttpClient
from crocevia.runtime.catalogue import Catalogue, CatalogueHolder, changed_engines


@runtime_checkable
class Warmed(Protocol):
    """An engine that can get ready for a model before anyone asks."""

    async def start(self, model: str = "") -> None: ...


class EnginePool:
    """retire_after: seconds that a replaced engine is kept, longer than any call on it can last."""

    def __init__(
        self,
        holder: CatalogueHolder,
        models_dir: Path,
        *,
        retire_after: float = 1000.0,
        report: Callable[[str, Exception], None] = lambda name, error: None,
    ) -> None:
        self._holder = holder
        self._models_dir = models_dir
        self._retire_after = retire_after
        self._report = report
        self._http = HttpClient()
        self._engines: dict[str, Engine] = {}
        self._retired: set[Engine] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        holder.subscribe(self._follow)

    def get(self, name: str) -> Engine:
        """The engine. Raises GatewayError(UNAVAILABLE) if it is not declared or cannot be built."""
        return self._engines.get(name) or self._build(name)

    def check_keys(self) -> None:
        """Report each engine that has no key to send: it is refused when it is asked, and its operator knows now."""
        catalogue = self._holder.current
        for name in catalogue.engines:
            try:
                catalogue.check_key(name)
            except GatewayError as error:
                self._report(name, error)

    def warm(self) -> None:
        """Start in the background what takes long to start, so that the first question does not wait for it."""
        catalogue = self._holder.current
        used = {catalogue.models[project.model] for project in catalogue.projects.values()}
        for model in used:
            spec = catalogue.engines.get(model.engine)
            if spec is not None and spec.traits.loads_weights:
                self._start(self._warm(model.engine, model.upstream))

    async def close(self) -> None:
        """Close every engine, then the connections. Idempotent."""
        for task in tuple(self._tasks):
            task.cancel()
        engines = [*self._engines.values(), *self._retired]
        self._engines.clear()
        self._retired.clear()
        await asyncio.gather(*self._tasks, *(engine.close() for engine in engines), return_exceptions=True)
        await self._http.close()

    def _build(self, name: str) -> Engine:
        catalogue = self._holder.current
        spec = catalogue.engines.get(name)
        if spec is None:
            raise GatewayError(Reason.ENGINE_MISSING, engine=name)
        context = EngineContext(http=self._http, models_dir=self._models_dir, api_key=catalogue.check_key(name))
        try:
            engine = build(spec, context)
        except (GatewayError, ImportError) as error:
            self._report(name, error)
            raise GatewayError(Reason.ENGINE_UNUSABLE, engine=name) from error
        self._engines[name] = engine
        return engine

    async def _warm(self, name: str, model: str) -> None:
        try:
            engine = self.get(name)
            if isinstance(engine, Warmed):
                await engine.start(model)
        except GatewayError as error:
            self._report(name, error)

    def _follow(self, before: Catalogue, after: Catalogue) -> None:
        for name in changed_engines(before, after):
            engine = self._engines.pop(name, None)
            if engine is not None:
                self._retired.add(engine)
                asyncio.get_running_loop().call_later(self._retire_after, self._retire, engine)

    def _retire(self, engine: Engine) -> None:
        if engine in self._retired:
            self._retired.discard(engine)
            self._start(engine.close())

    def _start(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine, whatever its name
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
