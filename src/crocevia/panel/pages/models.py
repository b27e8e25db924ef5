"""Models: their settings and prices, and a small real call that tests them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from crocevia.core.calls import GenerationOptions
from crocevia.core.catalogue import ModelSpec, Prices, ProjectSpec
from crocevia.core.errors import GatewayError, Sentence
from crocevia.core.messages import user
from crocevia.core.usage import Usage
from crocevia.panel import forms
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView
from crocevia.panel.writing import find, load
from crocevia.policy.prices import cost, declared, usd
from crocevia.runtime.gateway import CallDraft

TESTER: Final = "(panel)"  # no project can have this name
QUESTION: Final = "Reply with the single word: ready"
PRICES: Final = ("input", "output", "cache_read", "cache_write")
# What the price preview shows: a question, and the fifth round of a long tool loop.
EXAMPLES: Final = (
    ("question", Usage(input_tokens=2_000, output_tokens=500)),
    ("round", Usage(input_tokens=20_000, output_tokens=1_000, cache_read_tokens=15_000, cache_write_tokens=4_000)),
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    model: ModelSpec
    projects: list[str]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A call and what it would cost."""

    key: str
    usage: Usage
    cost_usd: float | None


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a test call."""

    seconds: float
    first_seconds: float | None
    text: str
    usage: Usage
    error: Sentence | None


class More(msgspec.Struct, frozen=True, kw_only=True):
    projects: list[str]
    examples: list[Example]
    tested: Tested | None


async def show(request: PageRequest) -> PageResponse:
    models: dict[str, ModelSpec] = await load(request, "models")
    rows = [Row(model=model, projects=_users(request, name)) for name, model in models.items()]
    title = request.t("models.title")
    return PageView(template="models", context=Listing(rows=rows), title=title, nav="models")


async def test(request: PageRequest) -> PageResponse:
    """One real call through the gateway, with its record and its cost."""
    name = request.query.get("name", "")
    await find(request, "models", name)
    tested = await _call(request, name)
    more = msgspec.structs.replace(await _more(request, name), tested=tested)
    return await RESOURCE.editor(request, name, more)


async def preview(request: PageRequest) -> PageResponse:
    """The cost of two example calls by the typed prices; nothing is saved."""
    name = request.query.get("name", "")
    spec: ModelSpec = await find(request, "models", name)
    entry = forms.entry(RESOURCE.fields, request.form, msgspec.to_builtins(spec)) | {"name": name}
    form = await RESOURCE.refilled(request, entry, (), request.form.get("etag", ""))
    more = msgspec.structs.replace(await _more(request, name), examples=_examples(entry.get("prices")))
    return await RESOURCE.editor(request, name, more, form)


async def _call(request: PageRequest, name: str) -> Tested:
    project = ProjectSpec(name=TESTER, model=name, mode="agent")
    draft = CallDraft(
        door="panel", encode="test", messages=(user(QUESTION),), options=GenerationOptions(max_tokens=256)
    )
    started, first, error = time.monotonic(), None, None
    text, usage = "", Usage()
    try:
        gateway = request.services.gateway
        call = gateway.open_call(project, draft, gateway.route(project, draft))
        async with call:
            async for _ in call:
                first = first if first is not None else time.monotonic() - started
        answer = call.fold.answer()
        text, usage = answer.text[:500], answer.usage
    except GatewayError as failed:
        error = failed.message
    return Tested(seconds=time.monotonic() - started, first_seconds=first, text=text, usage=usage, error=error)


async def _options(request: PageRequest) -> Mapping[str, Sequence[str]]:
    models = await load(request, "models")
    own = request.query.get("name")
    return {
        "engine": tuple(await load(request, "engines")),
        "reserve": ("", *(model for model in models if model != own)),
    }


async def _more(request: PageRequest, name: str) -> More:
    spec: ModelSpec = await find(request, "models", name)
    return More(
        projects=_users(request, name),
        examples=_examples(None if spec.prices is None else msgspec.structs.asdict(spec.prices)),
        tested=None,
    )


def _users(request: PageRequest, name: str) -> list[str]:
    return [project.name for project in request.services.catalogue.current.projects.values() if project.model == name]


def _examples(prices: Any) -> list[Example]:
    return [Example(key=key, usage=usage, cost_usd=_cost(prices, usage)) for key, usage in EXAMPLES]


def _cost(prices: Any, usage: Usage) -> float | None:
    """Computed like every bill; None if these are no prices."""
    try:
        nanos = cost(usage, declared(msgspec.convert(prices, Prices)))
    except (msgspec.ValidationError, ArithmeticError, ValueError):
        return None
    return None if nanos is None else usd(nanos)


RESOURCE: Final = Resource(
    table="models",
    nav="models",
    fields=(
        Field("name"),
        Field("engine", "choice"),
        Field("upstream"),
        Field("reasoning", "choice", ("off", "on", "always")),
        Field("think_tags", "check"),
        Field("reserve", "choice"),
        Field("voice_in_apps", "check", group="voice"),
        Field("instructions", "area", group="voice"),
        Field("novelty", group="voice"),
        Field("context_window", "integer", group="size"),
        Field("max_pages", "integer", group="size"),
        *(Field(f"prices.{name}", "number", group="prices") for name in PRICES),
        Field("deprecated", "check", group="end"),
        Field("sunset_at", group="end"),
    ),
    options=_options,
    more=_more,
    start={"reasoning": "off", "max_pages": 600},
)
PAGES: Final = (
    *RESOURCE.pages(show),
    Page(path="/panel/models/test", post=test),
    Page(path="/panel/models/preview", post=preview),
)
