"""Engines: connections to providers, whether they can be reached, and how they last failed."""

from __future__ import annotations

from typing import Final, get_args

import msgspec

from crocevia.core.catalogue import EngineKind, EngineSpec
from crocevia.panel import words
from crocevia.panel.forms import Field
from crocevia.panel.health import Health
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Answer, Ask, Moved, Page, Shown
from crocevia.panel.writing import find, load
from crocevia.runtime.control.calls import CallFilter, CallRow, calls
from crocevia.storage.database import Transaction


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """last_failure: the newest call that failed there. has_key: one is stored or in the environment."""

    engine: EngineSpec
    health: Health
    has_key: bool
    models: list[str]
    last_failure: CallRow | None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """checking: an answer is still awaited."""

    rows: list[Row]
    checking: bool


class More(msgspec.Struct, frozen=True, kw_only=True):
    health: Health
    has_key: bool
    last_failure: CallRow | None


async def show(ask: Ask) -> Answer:
    specs: dict[str, EngineSpec] = await load(ask, "engines")
    health = await ask.state.health.look(specs, ask.services.engine)
    failures = await ask.services.database.read(lambda tx: {name: _last_failure(tx, name) for name in specs})
    models = ask.services.catalogue.current.models.values()
    rows = [
        Row(
            engine=_without_script(spec),
            health=health[name],
            has_key=_has_key(ask, name),
            models=[model.name for model in models if model.engine == name],
            last_failure=failures[name],
        )
        for name, spec in specs.items()
    ]
    checking = any(row.health.state == "checking" for row in rows)
    title = words.say(ask.language, "engines.title")
    return Shown(template="engines", context=Listing(rows=rows, checking=checking), title=title, nav="models")


async def probe(ask: Ask) -> Answer:
    name = ask.query.get("name", "")
    await find(ask, "engines", name)
    ask.state.health.forget(name)
    await ask.state.health.look([name], ask.services.engine)
    return Moved(f"{RESOURCE.address(name)}&done=checking")


async def _more(ask: Ask, name: str) -> More:
    health = await ask.state.health.look([name], ask.services.engine)
    failure = await ask.services.database.read(lambda tx: _last_failure(tx, name))
    return More(health=health[name], has_key=_has_key(ask, name), last_failure=failure)


def _has_key(ask: Ask, name: str) -> bool:
    catalogue = ask.services.catalogue.current
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
PAGES: Final = (*RESOURCE.pages(show), Page(path="/panel/engines/probe", post=probe))
