"""Projects: who may call, which model answers, how much is allowed, and their keys."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import samples, words
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Answer, Ask, Crumb, Moved, Page, Shown
from crocevia.panel.writing import change, find, load
from crocevia.policy.periods import day_of
from crocevia.runtime.control import audit, overview, project_keys, spending
from crocevia.runtime.control.apply import Applied
from crocevia.runtime.control.calls import CallFilter
from crocevia.storage.database import Transaction
from crocevia.storage.pieces import apps_without_blocks

OVERLAPS: Final = (0, 3600, 86_400, 7 * 86_400)  # seconds
FIELDS: Final = (
    Field("name"),
    Field("mode", "choice", ("agent", "standard")),
    Field("model", "choice"),
    Field("hourly_limit", "integer", group="limits"),
    Field("max_concurrency", "integer", group="limits"),
    Field("daily_budget_usd", "number", group="budget"),
    Field("soft_threshold_usd", "number", group="budget"),
    Field("webhook_url", group="budget"),
    Field("timezone", group="budget"),
    Field("permissions.documents", "check", group="permissions"),
    Field("permissions.images", "check", group="permissions"),
    Field("permissions.web_search", "check", group="permissions"),
    Field("keep_texts_days", "integer", group="records"),
)


class Today(msgspec.Struct, frozen=True, kw_only=True):
    """What a project did since its midnight. spent_usd: corrected. resets_at: Unix seconds. remaining_usd None: no
    budget.
    """

    calls: int
    failed: int
    cost_usd: float | None
    unpriced: int
    spent_usd: float
    corrected_usd: float
    remaining_usd: float | None
    resets_at: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    project: ProjectSpec
    today: Today
    without_blocks: bool


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]


class More(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of a project shows beside its form."""

    keys: list[project_keys.ProjectKey]
    today: Today
    without_blocks: bool
    overlaps: tuple[int, ...]
    refused: Sentence | None = None


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A key, shown once. variable: what the samples call it."""

    name: str
    secret: str
    back: str
    variable: str
    samples: list[samples.Sample]

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


async def show(ask: Ask) -> Answer:
    now = time.time()

    def read(tx: Transaction) -> list[Row]:
        lacking = apps_without_blocks(tx)
        return [
            Row(project=spec, today=_today(tx, spec, now), without_blocks=spec.name in lacking)
            for spec in specs.values()
        ]

    specs: dict[str, ProjectSpec] = await load(ask, "projects")
    rows = await ask.services.database.read(read)
    return Shown(
        template="projects",
        context=Listing(rows=rows),
        title=words.say(ask.language, "projects.title"),
        nav="projects",
    )


async def rotate(ask: Ask) -> Answer:
    name = ask.query.get("name", "")
    overlap = next((seconds for seconds in OVERLAPS if str(seconds) == ask.form.get("overlap")), 86_400)

    def work(tx: Transaction) -> str:
        key = project_keys.rotate(tx, ask.services.home, name, overlap=overlap, now=time.time())
        audit.note(tx, ask.actor, "rotated", "projects", name, {"overlap_seconds": (None, str(overlap))})
        return key

    return _secret(ask, name, await change(ask, work))


async def revoke(ask: Ask) -> Answer:
    name, key_id = ask.query.get("name", ""), ask.form.get("key", "")

    def work(tx: Transaction) -> None:
        prefix = next((key.prefix for key in project_keys.keys(tx, name, time.time()) if key.id == key_id), None)
        project_keys.revoke(tx, name, key_id)
        audit.note(tx, ask.actor, "revoked", "projects", name, {"key": (prefix, None)})

    await change(ask, work)
    return Moved(f"{RESOURCE.address(name)}&done=revoked")


async def correct(ask: Ask) -> Answer:
    """Change today's spend, with a reason."""
    name = ask.query.get("name", "")
    amount, reason = ask.form.get("amount", "").strip().replace(",", "."), ask.form.get("reason", "")
    try:
        await change(ask, lambda tx: spending.correct(tx, ask.actor, name, amount, reason, time.time()))
    except GatewayError as error:
        if error.code is not Code.INVALID_REQUEST:
            raise
        more = msgspec.structs.replace(await _more(ask, name), refused=error.message)
        shown = await RESOURCE.editor(ask, name, more)
        return msgspec.structs.replace(shown, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return Moved(f"{RESOURCE.address(name)}&done=saved")


async def _options(ask: Ask) -> Mapping[str, Sequence[str]]:
    return {"model": tuple(await load(ask, "models"))}


async def _more(ask: Ask, name: str) -> More:
    spec: ProjectSpec = await find(ask, "projects", name)
    now = time.time()
    keys, today, lacking = await ask.services.database.read(
        lambda tx: (project_keys.keys(tx, name, now), _today(tx, spec, now), name in apps_without_blocks(tx))
    )
    return More(
        keys=keys,
        today=today,
        without_blocks=lacking,
        overlaps=OVERLAPS,
    )


async def _created(ask: Ask, name: str, applied: Applied) -> Answer:
    key = applied.new_keys.get(name)
    if key is None:
        raise GatewayError(Reason.CONFLICT)
    return _secret(ask, name, key)


def _secret(ask: Ask, name: str, key: str) -> Shown:
    return Shown(
        template="secret",
        context=Secret(
            name=name,
            secret=key,
            back=RESOURCE.address(name),
            variable=samples.PROJECT_KEY,
            samples=samples.project(ask.origin, name),
        ),
        title=words.say(ask.language, "secret.project"),
        nav="projects",
        crumbs=(
            Crumb(words.say(ask.language, "projects.title"), RESOURCE.path),
            Crumb(name, RESOURCE.address(name)),
        ),
    )


def _today(tx: Transaction, spec: ProjectSpec, now: float) -> Today:
    day = day_of(now, spec.timezone)
    figures = overview.figures(tx, CallFilter(since=day.since, project=spec.name))
    report = spending.report(tx, spec.name, now, days=1)
    return Today(
        calls=figures.calls,
        failed=figures.failed,
        cost_usd=figures.cost_usd,
        unpriced=figures.unpriced,
        spent_usd=report.days[0].spent,
        corrected_usd=report.days[0].corrected,
        remaining_usd=report.remaining_usd,
        resets_at=day.until,
    )


RESOURCE: Final = Resource(
    table="projects",
    nav="projects",
    fields=FIELDS,
    options=_options,
    more=_more,
    created=_created,
    code=lambda ask, name: samples.project(ask.origin, name),
    start={"mode": "agent", "timezone": "Europe/Rome", "keep_texts_days": 0},
)
PAGES: Final = (
    *RESOURCE.pages(show),
    Page(path="/panel/projects/rotate", post=rotate),
    Page(path="/panel/projects/revoke", post=revoke),
    Page(path="/panel/projects/correct", post=correct),
)
