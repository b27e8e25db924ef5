"""Which price a declared model has: the operator's own, none at all for engines of ours, else the public list's."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

import msgspec

from crocevia.core.catalogue import EngineSpec, ModelSpec
from crocevia.policy.prices import FREE, Rates, Table, declared, find, find_provider

_DAY: Final = 86_400


class _View(Protocol):
    @property
    def engines(self) -> dict[str, EngineSpec]: ...


@cache
def table() -> Table:
    """The list in the package, read when a price is first asked of it."""
    return msgspec.json.decode(files("crocevia.policy").joinpath("prices.json").read_bytes(), type=Table)


def rates_of(model: ModelSpec, engine: EngineSpec | None, now: float) -> Rates | None:
    """The model's rates on the day of `now`; None if nobody knows them."""
    if model.prices is not None:
        return declared(model.prices)
    if engine is None:
        return None
    if engine.traits.local:
        return FREE
    provider = find_provider(table(), engine.base_url) if engine.base_url else None
    day = datetime.fromtimestamp(now, UTC).date().isoformat()
    return find(table(), provider or engine.traits.price_list, model.upstream, day)


class PriceBook:
    """Rates by model, looked up once per catalogue and day."""

    def __init__(self, view: Callable[[], _View], *, clock: Callable[[], float] = time.time) -> None:
        self._view = view
        self._clock = clock
        self._seen: _View | None = None
        self._day = -1
        self._rates: dict[str, tuple[ModelSpec, Rates | None]] = {}

    def rates(self, model: ModelSpec) -> Rates | None:
        """See `rates_of`."""
        view, now = self._view(), self._clock()
        if view is not self._seen or self._day != now // _DAY:
            self._seen, self._day = view, int(now // _DAY)
            self._rates.clear()
        found = self._rates.get(model.name)
        if found is None or found[0] is not model:
            found = self._rates[model.name] = (model, rates_of(model, view.engines.get(model.engine), now))
        return found[1]
