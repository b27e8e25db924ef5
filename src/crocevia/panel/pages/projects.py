"""Projects: who may call, which model answers, how much is allowed, and their keys."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import samples
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import change, find, load
from crocevia.policy.periods import day_of
from crocevia.runtime.control import audit, overview, project_keys, spending
from crocevia.runtime.control.apply import Applied
from crocevia.runtime.control.calls import CallFilter
from crocevia.storage.database import Transaction
from crocevia.storage.provider_blocks import apps_without_blocks

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
    """A project's day since its midnight."""

    calls: int
    failed: int
    cost_usd: float | None
    unpriced: int
    spent_usd: float
    """After corrections."""
    corrected_usd: float
    remaining_usd: float | None
    """None: no budget."""
    resets_at: float
    """Unix seconds."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    project: ProjectSpec
    today: Today
    without_blocks: bool


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]


class More(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of a project shows beside its form."""

    keys: list[project_keys.ProjectKeyRow]
    today: Today
    without_blocks: bool
    overlaps: tuple[int, ...]
    refused: Sentence | None = None


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A key, shown once."""

    name: str
    secret: str
    back: str
    variable: str
    """The name of the samples' environment variable."""
    samples: list[samples.Sample]

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


async def show(request: PageRequest) -> PageResponse:
    now = time.time()

    def read(tx: Transaction) -> list[Row]:
        lacking = apps_without_blocks(tx)
        return [
            Row(project=spec, today=_today(tx, spec, now), without_blocks=spec.name in lacking)
            for spec in specs.values()
        ]

    specs: dict[str, ProjectSpec] = await load(request, "projects")
    rows = await request.services.database.read(read)
    return PageView(
        template="projects",
        context=Listing(rows=rows),
        title=request.t("projects.title"),
        nav="projects",
    )


async def rotate(request: PageRequest) -> PageResponse:
    name = request.query.get("name", "")
    overlap = next((seconds for seconds in OVERLAPS if str(seconds) == request.form.get("overlap")), 86_400)

    def work(tx: Transaction) -> str:
        key = project_keys.rotate(tx, request.services.home, name, overlap=overlap, now=time.time())
        audit.note(tx, request.actor, "rotated", "projects", name, {"overlap_seconds": (None, str(overlap))})
        return key

    return _secret(request, name, await change(request, work))


async def revoke(request: PageRequest) -> PageResponse:
    name, key_id = request.query.get("name", ""), request.form.get("key", "")

    def work(tx: Transaction) -> None:
        prefix = next((key.prefix for key in project_keys.keys(tx, name, time.time()) if key.id == key_id), None)
        project_keys.revoke(tx, name, key_id)
        audit.note(tx, request.actor, "revoked", "projects", name, {"key": (prefix, None)})

    await change(request, work)
    return Redirect(f"{RESOURCE.address(name)}&done=revoked")


async def correct(request: PageRequest) -> PageResponse:
    """Change today's spend, with a reason."""
    name = request.query.get("name", "")
    amount, reason = request.form.get("amount", "").strip().replace(",", "."), request.form.get("reason", "")
    try:
        await change(request, lambda tx: spending.correct(tx, request.actor, name, amount, reason, time.time()))
    except GatewayError as error:
        if error.code is not Code.INVALID_REQUEST:
            raise
        more = msgspec.structs.replace(await _more(request, name), refused=error.message)
        view = await RESOURCE.editor(request, name, more)
        return msgspec.structs.replace(view, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return Redirect(f"{RESOURCE.address(name)}&done=saved")


async def _options(request: PageRequest) -> Mapping[str, Sequence[str]]:
    return {"model": tuple(await load(request, "models"))}


async def _more(request: PageRequest, name: str) -> More:
    spec: ProjectSpec = await find(request, "projects", name)
    now = time.time()
    keys, today, lacking = await request.services.database.read(
        lambda tx: (project_keys.keys(tx, name, now), _today(tx, spec, now), name in apps_without_blocks(tx))
    )
    return More(
        keys=keys,
        today=today,
        without_blocks=lacking,
        overlaps=OVERLAPS,
    )


async def _created(request: PageRequest, name: str, applied: Applied) -> PageResponse:
    key = applied.new_keys.get(name)
    if key is None:
        raise GatewayError(Reason.CONFLICT)
    return _secret(request, name, key)


def _secret(request: PageRequest, name: str, key: str) -> PageView:
    return PageView(
        template="secret",
        context=Secret(
            name=name,
            secret=key,
            back=RESOURCE.address(name),
            variable=samples.PROJECT_KEY,
            samples=samples.project(request.origin, name),
        ),
        title=request.t("secret.project"),
        nav="projects",
        breadcrumbs=(
            Breadcrumb(request.t("projects.title"), RESOURCE.path),
            Breadcrumb(name, RESOURCE.address(name)),
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
    code=lambda request, name: samples.project(request.origin, name),
    start={"mode": "agent", "timezone": "Europe/Rome", "keep_texts_days": 0},
)
PAGES: Final = (
    *RESOURCE.pages(show),
    Page(path="/panel/projects/rotate", post=rotate),
    Page(path="/panel/projects/revoke", post=revoke),
    Page(path="/panel/projects/correct", post=correct),
)
