"""Setup, login, logout, and the preferences of language and theme."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import auth, i18n
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect, local_path

_YEAR: Final = 365 * 86_400


class Entrance(msgspec.Struct, frozen=True, kw_only=True):
    account: str
    """Who signs in."""
    ready: bool
    """Whether a password was chosen."""
    valid: bool = True
    error: Sentence | None = None
    """Why the last attempt failed."""
    token: str = ""
    next: str = "/panel"
    shortest: int = auth.SHORTEST


def _page(request: PageRequest, template: str, context: Entrance, error: GatewayError | None = None) -> PageView:
    status, headers = HTTPStatus.OK, {}
    if error is not None:
        context = msgspec.structs.replace(context, error=error.message)
        limited = error.code is Code.RATE_LIMITED
        status = HTTPStatus.TOO_MANY_REQUESTS if limited else HTTPStatus.UNPROCESSABLE_ENTITY
        if error.code is Code.UNAUTHENTICATED:
            status = HTTPStatus.UNAUTHORIZED
        if error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
    title = request.t(f"entry.{template}")
    return PageView(template=template, context=context, title=title, status=status, headers=headers)


async def show_setup(request: PageRequest) -> PageResponse:
    auth_token = request.query.get("token", "")
    valid = await auth.is_setup_token(request, auth_token)
    # The token stays in the page: the JSON view repeats no secret.
    return _page(request, "setup", Entrance(account=auth.ACCOUNT, ready=await auth.is_set_up(request), valid=valid))


async def do_setup(request: PageRequest) -> PageResponse:
    context = Entrance(account=auth.ACCOUNT, ready=False)
    try:
        check_password(request.form.get("password", ""), request.form.get("again", ""))
        cookie = await auth.set_up(request, request.query.get("token", ""), request.form.get("password", ""))
    except GatewayError as error:
        return _page(request, "setup", context, error)
    return Redirect("/panel", auth.cookies(request, cookie))


async def show_login(request: PageRequest) -> PageResponse:
    if request.session is not None:
        return Redirect(local_path(request.query.get("next")))
    ready = await auth.is_set_up(request)
    return _page(
        request, "login", Entrance(account=auth.ACCOUNT, ready=ready, next=local_path(request.query.get("next")))
    )


async def do_login(request: PageRequest) -> PageResponse:
    wanted = local_path(request.form.get("next"))
    try:
        password = request.form.get("password", "")
        if len(password) > auth.LONGEST:
            raise GatewayError(Reason.PASSWORD_WRONG)
        cookie = await auth.sign_in(request, password)
    except GatewayError as error:
        if error.code is Code.UNAVAILABLE:
            raise
        ready = await auth.is_set_up(request)
        return _page(request, "login", Entrance(account=auth.ACCOUNT, ready=ready, next=wanted), error)
    return Redirect(wanted, auth.cookies(request, cookie))


async def do_logout(request: PageRequest) -> PageResponse:
    await auth.sign_out(request)
    return Redirect("/panel/login?done=signed_out", ((auth.COOKIE, "", 0),))


async def do_preferences(request: PageRequest) -> PageResponse:
    """Set one cookie and go back, without the language and the notice of the URL."""
    back = local_path(request.form.get("back"))
    for name, allowed in (("language", i18n.LANGUAGES), ("theme", ("auto", "light", "dark"))):
        value = request.form.get(name)
        if value in allowed:
            return Redirect(back, ((f"crocevia_{name}", str(value), _YEAR),))
    return Redirect(back)


def check_password(password: str, again: str) -> None:
    """Raises GatewayError(INVALID_REQUEST) for a password that is too short, too long or repeated differently."""
    if not auth.SHORTEST <= len(password) <= auth.LONGEST:
        raise GatewayError(Reason.PASSWORD_LENGTH, least=auth.SHORTEST, most=auth.LONGEST)
    if password != again:
        raise GatewayError(Reason.PASSWORD_DIFFERS)


PAGES: Final = (
    Page(path="/panel/setup", get=show_setup, post=do_setup, public=True),
    Page(path="/panel/login", get=show_login, post=do_login, public=True),
    Page(path="/panel/logout", post=do_logout, public=True),
    Page(path="/panel/preferences", post=do_preferences, public=True),
)
