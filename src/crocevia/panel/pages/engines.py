"""Engines: connections to providers, whether they are reachable, and their last failure."""

from __future__ import annotations

import time
from typing import Final, get_args

import msgspec

from crocevia.core.calls import Learning, Rejected
from crocevia.core.catalogue import EngineKind, EngineSpec
from crocevia.core.errors import GatewayError
from crocevia.panel.forms import Field
from crocevia.panel.health import Health
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import find, load
from crocevia.runtime.control.calls import CallFilter, CallRow, calls
from crocevia.storage.database import Transaction


class Row(msgspec.Struct, frozen=True, kw_only=True):
    engine: EngineSpec
    health: Health
    has_key: bool
    """Whether one is stored or in the environment."""
    models: list[str]
    last_failure: CallRow | None
    """The newest call that failed there."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]
    checking: bool
    """Whether a probe is still running."""


class Learnt(msgspec.Struct, frozen=True):
    """A parameter that a model turned out not to take, so that it is left out for everybody."""

    model: str
    """The provider's own name for it."""
    parameter: str
    until: float
    """Unix seconds."""


class More(msgspec.Struct, frozen=True, kw_only=True):
    health: Health
    learnt: list[Learnt]
    has_key: bool
    last_failure: CallRow | None


async def show(request: PageRequest) -> PageResponse:
    specs: dict[str, EngineSpec] = await load(request, "engines")
    health = await request.state.health.check(specs, request.services.engine)
    failures = await request.services.database.read(lambda tx: {name: _last_failure(tx, name) for name in specs})
    models = request.services.catalogue.current.models.values()
    rows = [
        Row(
            engine=_without_script(spec),
            health=health[name],
            has_key=_has_key(request, name),
            models=[model.name for model in models if model.engine == name],
            last_failure=failures[name],
        )
        for name, spec in specs.items()
    ]
    checking = any(row.health.state == "checking" for row in rows)
    title = request.t("engines.title")
    return PageView(template="engines", context=Listing(rows=rows, checking=checking), title=title, nav="models")


async def probe(request: PageRequest) -> PageResponse:
    name = request.query.get("name", "")
    await find(request, "engines", name)
    request.state.health.forget(name)
    await request.state.health.check([name], request.services.engine)
    return Redirect(f"{RESOURCE.address(name)}&done=checking")


async def _more(request: PageRequest, name: str) -> More:
    health = await request.state.health.check([name], request.services.engine)
    failure = await request.services.database.read(lambda tx: _last_failure(tx, name))
    learnt = _learnt(_rejected(request, name))
    return More(health=health[name], learnt=learnt, has_key=_has_key(request, name), last_failure=failure)


async def forget(request: PageRequest) -> PageResponse:
    """Ask the engine's models again for what they did not take."""
    name = request.query.get("name", "")
    await find(request, "engines", name)
    _rejected(request, name).clear()
    return Redirect(f"{RESOURCE.address(name)}&done=forgotten")


def _rejected(request: PageRequest, name: str) -> Rejected:
    try:
        engine = request.services.engine(name)
    except GatewayError:  # it cannot be built, and so has asked nobody
        return {}
    return engine.rejected if isinstance(engine, Learning) else {}


def _learnt(rejected: Rejected) -> list[Learnt]:
    now, clock = time.monotonic(), time.time()
    return [
        Learnt(model, parameter, clock + until - now)
        for model, parameters in sorted(rejected.items())
        for parameter, until in sorted(parameters.items())
        if until > now
    ]


def _has_key(request: PageRequest, name: str) -> bool:
    catalogue = request.services.catalogue.current
    return name in catalogue.engines and bool(catalogue.engine_key(name))


def _last_failure(tx: Transaction, name: str) -> CallRow | None:
    rows = calls(tx, CallFilter(engine=name, outcome="failed"), most=1).rows
    return rows[0] if rows else None


def _without_script(spec: EngineSpec) -> EngineSpec:
    return msgspec.structs.replace(spec, script=None)


RESOURCE: Final = Resource(
    table="engines",
    nav="models",
    fields=(
        Field("name"),
        Field("kind", "choice", get_args(EngineKind)),
        Field("base_url"),
        Field("api_key_env", group="key"),
        Field("api_key", "secret", group="key"),
    ),
    more=_more,
)
PAGES: Final = (
    *RESOURCE.pages(show),
    Page(path="/panel/engines/probe", post=probe),
    Page(path="/panel/engines/forget", post=forget),
)
