"""Every operation of the contract under its own operation id, typed by the inventory and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core import call, primitive_type
from .requests import OPERATIONS, Operation


class Primitives:
    """`primitives.createWorkspace(name=…)`: the stable names that a façade may rename but the contract never does.

    JSON operations answer like their façade methods; downloads and streams are opened by `open_bytes`/`open_events`.
    """

    def __init__(
        self,
        run: Callable[[Any], Any],
        core: Any,
        open_bytes: Callable[[str, dict[str, Any], float | None], Any],
        open_events: dict[str, Callable[..., Any]],
    ) -> None:
        self._run = run
        self._core = core
        self._open_bytes = open_bytes
        self._open_events = open_events

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in OPERATIONS:
            raise AttributeError(f"the contract has no operation {name!r}")
        operation = OPERATIONS[name]
        if operation.result == "events":
            return self._open_events[name]
        return self._bytes(operation) if operation.result == "bytes" else self._json(operation)

    def __dir__(self) -> list[str]:
        return sorted(OPERATIONS)

    def _json(self, operation: Operation) -> Callable[..., Any]:
        def perform(*, timeout: float | None = None, **given: Any) -> Any:
            return self._run(call(self._core, operation.id, given, primitive_type(operation), timeout))

        return perform

    def _bytes(self, operation: Operation) -> Callable[..., Any]:
        def perform(*, timeout: float | None = None, **given: Any) -> Any:
            return self._open_bytes(operation.id, given, timeout)

        return perform

    def __repr__(self) -> str:
        return f"<Primitives {len(OPERATIONS)} operations>"
