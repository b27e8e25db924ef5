"""API keys for apps of the Envai API. A key is shown once; afterwards it can only be revoked."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence, say
from crocevia.panel import samples
from crocevia.panel.pages.projects import Secret
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import change
from crocevia.runtime.control import audit
from crocevia.runtime.control.api_keys import MAX_LIVE, SCOPES, Minted, mint
from crocevia.storage import api_keys, meta
from crocevia.storage.database import Transaction

DAYS: Final = (0, 30, 90, 365)  # until a new key ends; 0: never
MOST: Final = 200
_LONGEST: Final = 100


class Row(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    state: str
    """`live`, `expired` or `revoked`."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]
    days: tuple[int, ...]
    samples: list[samples.Sample]
    error: Sentence | None = None


async def show(request: PageRequest) -> PageResponse:
    return await _listing(request)


async def create(request: PageRequest) -> PageResponse:
    name = request.form.get("name", "").strip()
    if not name or len(name) > _LONGEST or not name.isprintable():
        return await _listing(request, say(Reason.NAME_SHAPE), HTTPStatus.UNPROCESSABLE_ENTITY)
    days = next((days for days in DAYS if str(days) == request.form.get("days")), 90)
    now = time.time()

    def work(tx: Transaction) -> Minted:
        if api_keys.count_live(tx, _operator(tx)) >= MAX_LIVE:
            raise GatewayError(Reason.LIMIT_REACHED, code=Code.CONFLICT, limit=MAX_LIVE)
        expires = now + days * 86_400 if days else None
        minted = mint(tx, request.services.home, _operator(tx), name, scopes=SCOPES, expires_at=expires, now=now)
        audit.note(tx, request.actor, "created", "api_keys", name, {"id": (None, minted.id)})
        return minted

    minted = await change(request, work)
    return PageView(
        template="secret",
        context=Secret(
            name=name,
            secret=minted.token,
            back="/panel/keys",
            variable=samples.API_KEY,
            samples=_use(request),
        ),
        title=request.t("secret.api_key"),
        nav="settings",
        breadcrumbs=(Breadcrumb(request.t("nav.keys"), "/panel/keys"),),
    )


async def revoke(request: PageRequest) -> PageResponse:
    key_id = request.query.get("id", "")

    def work(tx: Transaction) -> None:
        found = api_keys.find(tx, key_id)
        if found is None or not api_keys.revoke(tx, _operator(tx), key_id, time.time()):
            raise GatewayError(Reason.NOT_FOUND)
        audit.note(tx, request.actor, "revoked", "api_keys", found.name, {"id": (key_id, None)})

    await change(request, work)
    request.services.keys_changed()
    return Redirect("/panel/keys?done=revoked")


async def _listing(request: PageRequest, error: Sentence | None = None, status: HTTPStatus = HTTPStatus.OK) -> PageView:
    now = time.time()
    keys = await request.services.database.read(lambda tx: api_keys.listed(tx, _operator(tx), MOST))
    rows = [
        Row(
            id=key.id,
            name=key.name,
            scopes=key.scopes,
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            state="live" if key.holds(now) else "revoked" if key.revoked_at is not None else "expired",
        )
        for key in keys
    ]
    context = Listing(rows=rows, days=DAYS, samples=_use(request), error=error)
    title = request.t("nav.keys")
    return PageView(template="keys", context=context, title=title, nav="settings", status=status)


def _use(request: PageRequest) -> list[samples.Sample]:
    return samples.request(request.origin, "/api/v1/teams", None, {"Authorization": samples.API_KEY}, {})


def _operator(tx: Transaction) -> str:
    user = meta.get(tx, meta.OPERATOR)
    if user is None:
        raise GatewayError(Reason.HOME_NOT_INITIALISED)
    return user


PAGES: Final = (
    Page(path="/panel/keys", get=show, post=create),
    Page(path="/panel/keys/revoke", post=revoke),
)
