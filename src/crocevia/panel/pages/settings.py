"""The server's own settings, read-only, each with where its value came from; and the panel's password."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Sentence
from crocevia.panel import auth
from crocevia.panel.pages.entry import check_password
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect

_SECRETS: Final = frozenset({"token", "password"})


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it is shown."""

    path: str
    value: str | None
    """None: unset."""
    origin: str
    secret: bool
    """Whether it is set and must not be shown."""
    variable: str
    """The environment variable that sets it."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    settings: dict[str, list[Setting]]
    version: str
    home: str
    database_bytes: int
    revision: int
    writable: bool
    shortest: int = auth.SHORTEST
    error: Sentence | None = None


async def show(request: PageRequest) -> PageResponse:
    return _page(request)


async def change_password(request: PageRequest) -> PageResponse:
    try:
        check_password(request.form.get("password", ""), request.form.get("again", ""))
        await auth.change_password(request, request.form.get("old", ""), request.form.get("password", ""))
    except GatewayError as error:
        if error.code not in (Code.UNAUTHENTICATED, Code.INVALID_REQUEST):
            raise
        return _page(request, error.message, HTTPStatus.UNPROCESSABLE_ENTITY)
    return Redirect("/panel/settings?done=password")


def _page(request: PageRequest, error: Sentence | None = None, status: HTTPStatus = HTTPStatus.OK) -> PageView:
    services = request.services
    tables: dict[str, list[Setting]] = {}
    for path, value in _leaves(services.settings, ""):
        tables.setdefault(path.partition(".")[0], []).append(_setting(path, value, services.origins))
    context = Context(
        settings=tables,
        version=services.version,
        home=str(services.home.path),
        database_bytes=services.home.database.stat().st_size,
        revision=services.catalogue.current.revision,
        writable=services.database.failing_since is None,
        error=error,
    )
    title = request.t("nav.settings")
    return PageView(template="settings", context=context, title=title, nav="settings", status=status)


def _setting(path: str, value: Any, origins: Any) -> Setting:
    secret = path.rpartition(".")[2] in _SECRETS
    return Setting(
        path=path,
        value=None if value is None else "••••••" if secret else _text(value),
        origin=origins.get(path, "default"),
        secret=secret and value is not None,
        variable=f"CROCEVIA_{path.upper().replace('.', '__')}",
    )


def _leaves(struct: msgspec.Struct, place: str) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(struct):
        path = f"{place}.{field.encode_name}" if place else field.encode_name
        value = getattr(struct, field.name)
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, path)
        elif path != "origins":
            yield path, value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(msgspec.to_builtins(value)).decode()


PAGES: Final = (
    Page(path="/panel/settings", get=show),
    Page(path="/panel/settings/password", post=change_password),
)
