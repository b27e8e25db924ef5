"""Coming in and going out: the setup link, signing in, signing out, and how pages should look."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import auth, words
from crocevia.panel.web import Answer, Ask, Moved, Page, Shown, local_path

_YEAR: Final = 365 * 86_400


class Entrance(msgspec.Struct, frozen=True, kw_only=True):
    """account: who signs in. ready: a password was chosen. error: why the last try failed."""

    account: str
    ready: bool
    valid: bool = True
    error: Sentence | None = None
    token: str = ""
    next: str = "/panel"
    shortest: int = auth.SHORTEST


def _page(ask: Ask, template: str, context: Entrance, error: GatewayError | None = None) -> Shown:
    status, headers = HTTPStatus.OK, {}
    if error is not None:
        context = msgspec.structs.replace(context, error=error.message)
        limited = error.code is Code.RATE_LIMITED
        status = HTTPStatus.TOO_MANY_REQUESTS if limited else HTTPStatus.UNPROCESSABLE_ENTITY
        if error.code is Code.UNAUTHENTICATED:
            status = HTTPStatus.UNAUTHORIZED
        if error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
    title = words.say(ask.language, f"entry.{template}")
    return Shown(template=template, context=context, title=title, status=status, headers=headers)


async def show_setup(ask: Ask) -> Answer:
    auth_token = ask.query.get("token", "")
    valid = await auth.holds(ask, auth_token)
    # The token stays in the page only: the twin repeats nothing that opens a door.
    return _page(ask, "setup", Entrance(account=auth.ACCOUNT, ready=await auth.is_set_up(ask), valid=valid))


async def do_setup(ask: Ask) -> Answer:
    context = Entrance(account=auth.ACCOUNT, ready=False)
    try:
        check_password(ask.form.get("password", ""), ask.form.get("again", ""))
        cookie = await auth.set_up(ask, ask.query.get("token", ""), ask.form.get("password", ""))
    except GatewayError as error:
        return _page(ask, "setup", context, error)
    return Moved("/panel", (auth.COOKIE, cookie, auth.SESSION_SECONDS))


async def show_login(ask: Ask) -> Answer:
    if ask.session is not None:
        return Moved(local_path(ask.query.get("next")))
    ready = await auth.is_set_up(ask)
    return _page(ask, "login", Entrance(account=auth.ACCOUNT, ready=ready, next=local_path(ask.query.get("next"))))


async def do_login(ask: Ask) -> Answer:
    wanted = local_path(ask.form.get("next"))
    try:
        password = ask.form.get("password", "")
        if len(password) > auth.LONGEST:
            raise GatewayError(Reason.PASSWORD_WRONG)
        cookie = await auth.sign_in(ask, password)
    except GatewayError as error:
        if error.code is Code.UNAVAILABLE:
            raise
        ready = await auth.is_set_up(ask)
        return _page(ask, "login", Entrance(account=auth.ACCOUNT, ready=ready, next=wanted), error)
    return Moved(wanted, (auth.COOKIE, cookie, auth.SESSION_SECONDS))


async def do_logout(ask: Ask) -> Answer:
    await auth.sign_out(ask)
    return Moved("/panel/login?done=signed_out", (auth.COOKIE, "", 0))


async def do_preferences(ask: Ask) -> Answer:
    """One cookie, and back to where the person was, without what the address said about language or notices."""
    back = local_path(ask.form.get("back"))
    for name, allowed in (("language", words.LANGUAGES), ("theme", ("auto", "light", "dark"))):
        value = ask.form.get(name)
        if value in allowed:
            return Moved(back, (f"crocevia_{name}", str(value), _YEAR))
    return Moved(back)


def check_password(password: str, again: str) -> None:
    """Raises GatewayError(INVALID_REQUEST) for one that is too short, too long or typed differently twice."""
    if not auth.SHORTEST <= len(password) <= auth.LONGEST:
        raise GatewayError(Reason.PASSWORD_LENGTH, least=auth.SHORTEST, most=auth.LONGEST)
    if password != again:
        raise GatewayError(Reason.PASSWORD_DIFFERS)


PAGES: Final = (
    Page(path="/panel/setup", get=show_setup, post=do_setup, open=True),
    Page(path="/panel/login", get=show_login, post=do_login, open=True),
    Page(path="/panel/logout", post=do_logout, open=True),
    Page(path="/panel/preferences", post=do_preferences, open=True),
)
