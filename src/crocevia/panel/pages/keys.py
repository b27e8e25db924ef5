"""API keys: for apps of the teams' API. A key is shown once; afterwards only when it ends can be decided."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence, say
from crocevia.panel import samples, words
from crocevia.panel.pages.projects import Secret
from crocevia.panel.web import Answer, Ask, Crumb, Moved, Page, Shown
from crocevia.panel.writing import change
from crocevia.runtime.control import audit
from crocevia.runtime.control.api_keys import MAX_LIVE, SCOPES, Minted, mint
from crocevia.storage import api_keys, meta
from crocevia.storage.database import Transaction

DAYS: Final = (0, 30, 90, 365)  # until a new key ends; 0: never
MOST: Final = 200
_LONGEST: Final = 100


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """state: `live`, `expired` or `revoked`."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    state: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]
    days: tuple[int, ...]
    samples: list[samples.Sample]
    error: Sentence | None = None


async def show(ask: Ask) -> Answer:
    return await _listing(ask)


async def create(ask: Ask) -> Answer:
    name = ask.form.get("name", "").strip()
    if not name or len(name) > _LONGEST or not name.isprintable():
        return await _listing(ask, say(Reason.NAME_SHAPE), HTTPStatus.UNPROCESSABLE_ENTITY)
    days = next((days for days in DAYS if str(days) == ask.form.get("days")), 90)
    now = time.time()

    def work(tx: Transaction) -> Minted:
        if api_keys.count_live(tx, _operator(tx)) >= MAX_LIVE:
            raise GatewayError(Reason.LIMIT_REACHED, code=Code.CONFLICT, limit=MAX_LIVE)
        expires = now + days * 86_400 if days else None
        minted = mint(tx, ask.services.home, _operator(tx), name, scopes=SCOPES, expires_at=expires, now=now)
        audit.note(tx, ask.actor, "created", "api_keys", name, {"id": (None, minted.id)})
        return minted

    minted = await change(ask, work)
    return Shown(
        template="secret",
        context=Secret(
            name=name,
            secret=minted.token,
            back="/panel/keys",
            variable=samples.API_KEY,
            samples=_use(ask),
        ),
        title=words.say(ask.language, "secret.api_key"),
        nav="settings",
        crumbs=(Crumb(words.say(ask.language, "nav.keys"), "/panel/keys"),),
    )


async def revoke(ask: Ask) -> Answer:
    key_id = ask.query.get("id", "")

    def work(tx: Transaction) -> None:
        found = api_keys.find(tx, key_id)
        if found is None or not api_keys.revoke(tx, _operator(tx), key_id, time.time()):
            raise GatewayError(Reason.NOT_FOUND)
        audit.note(tx, ask.actor, "revoked", "api_keys", found.name, {"id": (key_id, None)})

    await change(ask, work)
    ask.services.keys_changed()
    return Moved("/panel/keys?done=revoked")


async def _listing(ask: Ask, error: Sentence | None = None, status: HTTPStatus = HTTPStatus.OK) -> Shown:
    now = time.time()
    keys = await ask.services.database.read(lambda tx: api_keys.listed(tx, _operator(tx), MOST))
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
    context = Listing(rows=rows, days=DAYS, samples=_use(ask), error=error)
    title = words.say(ask.language, "nav.keys")
    return Shown(template="keys", context=context, title=title, nav="settings", status=status)


def _use(ask: Ask) -> list[samples.Sample]:
    return samples.request(ask.origin, "/api/v1/teams", None, {"Authorization": samples.API_KEY}, {})


def _operator(tx: Transaction) -> str:
    user = meta.get(tx, meta.OPERATOR)
    if user is None:
        raise GatewayError(Reason.HOME_NOT_INITIALISED)
    return user


PAGES: Final = (
    Page(path="/panel/keys", get=show, post=create),
    Page(path="/panel/keys/revoke", post=revoke),
)
