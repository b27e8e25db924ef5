"""The panel as an ASGI application: addresses to pages, who may see them, and what a failure looks like."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.texts import render as render_message
from crocevia.panel import auth, words
from crocevia.panel.pages import PAGES
from crocevia.panel.render import PRIVATE, SECURITY, STATIC, asset, page, twin
from crocevia.panel.services import Application, Services
from crocevia.panel.state import State
from crocevia.panel.web import Answer, Ask, Moved, Page, Shown, Theme, View, client_address, is_same_site, read_form
from crocevia.storage.operator_view import count_requests

STATUS: Final[dict[Code, HTTPStatus]] = {
    Code.INVALID_REQUEST: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Code.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    Code.CONFLICT: HTTPStatus.CONFLICT,
    Code.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Code.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.DRAINING: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_THEMES: Final[dict[str, Theme]] = {"light": "light", "dark": "dark"}


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong."""

    status: int
    code: str
    message: str


def create(services: Services) -> Application:
    """The application; it keeps its state for as long as it lives."""
    state = State()
    routes: list[Route] = [Route("/panel/static/{name}", _static)]
    for each in PAGES:
        methods = ["GET"] * (each.get is not None) + ["POST"] * (each.post is not None)
        endpoint = _endpoint(services, state, each, as_json=False)
        routes.append(Route(each.path, endpoint, methods=methods))
        if each.twin and each.get is not None:
            address = "/panel/overview.json" if each.path == "/panel" else f"{each.path}.json"
            routes.append(Route(address, _endpoint(services, state, each, as_json=True), methods=["GET"]))
    nowhere = Page(path="", get=_nowhere, post=_nowhere)
    routes.append(Route("/panel{rest:path}", _endpoint(services, state, nowhere, as_json=False)))
    return Starlette(routes=routes)


def _endpoint(services: Services, state: State, each: Page, *, as_json: bool) -> Any:
    async def endpoint(request: Request) -> Response:
        ask = _ask(services, state, request)
        try:
            ask = msgspec.structs.replace(ask, session=await auth.find_session(ask))
            if ask.session is not None and not as_json:
                ask = msgspec.structs.replace(ask, waiting=await _waiting(services))
            answer = await _answer(ask, each, as_json=as_json)
            return _response(ask, answer, as_json=as_json)
        except Exception as error:
            known = _expected(error, services.log)
            failed = _failed(ask, known)
            return _with_retry(twin(failed) if as_json else page(ask, failed), known)

    return endpoint


async def _waiting(services: Services) -> int:
    """How many requests wait for an answer: every page says so in its menu."""
    now = time.time_ns() // 1_000_000
    return await services.database.read(lambda tx: count_requests(tx, now))


async def _answer(ask: Ask, each: Page, *, as_json: bool) -> Answer:
    writes = ask.request.method == "POST"
    if writes and not is_same_site(ask.request):
        raise GatewayError(Reason.OTHER_SITE)
    if not each.open and ask.session is None:
        return _sign_in_first(ask, as_json=as_json or writes)
    view: View | None = each.post if writes else each.get
    if view is None:
        raise GatewayError(Reason.METHOD_NOT_ALLOWED, allowed="GET")
    if writes:
        pairs = await _form(ask)
        many: dict[str, list[str]] = {}
        for name, value in pairs:
            many.setdefault(name, []).append(value)
        ask = msgspec.structs.replace(ask, form=dict(pairs), many=many)
    return await view(ask)


async def _form(ask: Ask) -> list[tuple[str, str]]:
    kind = ask.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await read_form(ask.request) if kind == "application/x-www-form-urlencoded" else []


def _response(ask: Ask, answer: Answer, *, as_json: bool) -> Response:
    if isinstance(answer, Shown):
        return twin(answer) if as_json else page(ask, answer)
    if isinstance(answer, Moved):
        response: Response = RedirectResponse(answer.to, HTTPStatus.SEE_OTHER, headers=PRIVATE)
        if answer.cookie is not None:
            name, value, seconds = answer.cookie
            response.set_cookie(
                name, value, seconds, path="/panel", secure=ask.secure, httponly=True, samesite="strict"
            )
        return response
    return answer


def _sign_in_first(ask: Ask, *, as_json: bool) -> Answer:
    if as_json:
        raise GatewayError(Reason.SIGN_IN_FIRST)
    from urllib.parse import quote

    path, query = ask.request.url.path, ask.request.url.query
    wanted = f"{path}?{query}" if query else path
    return Moved("/panel/login" if wanted == "/panel" else f"/panel/login?next={quote(wanted, safe='')}")


def _ask(services: Services, state: State, request: Request) -> Ask:
    cookies = request.cookies
    chosen = request.query_params.get("lang") or cookies.get("crocevia_language")
    language = next(
        (known for known in words.LANGUAGES if known == chosen),
        words.preferred(request.headers.get("accept-language", "")),
    )
    return Ask(
        services=services,
        state=state,
        request=request,
        language=language,
        theme=_THEMES.get(cookies.get("crocevia_theme", ""), "auto"),
        address=client_address(request, services.trusted_proxies),
        query=dict(request.query_params),
    )


def _expected(error: Exception, log: Any) -> GatewayError:
    """What the person is told; a fault of ours is logged here, without what it says."""
    if isinstance(error, GatewayError):
        return error
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else "?"
    log.error("a page failed", error=type(error).__name__, at=place)
    return GatewayError(Reason.INTERNAL)


def _failed(ask: Ask, error: GatewayError) -> Shown:
    status = STATUS.get(error.code, HTTPStatus.BAD_GATEWAY)
    message = render_message(error.message, ask.language)
    return Shown(
        template="failure",
        context=Failure(status=status, code=error.code.value, message=message),
        title=words.say(ask.language, "failure.title"),
        status=status,
    )


def _with_retry(response: Response, error: GatewayError) -> Response:
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    return response


async def _nowhere(ask: Ask) -> Answer:
    raise GatewayError(Reason.NOT_FOUND)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        return Response(json.encode({"error": {"code": Code.NOT_FOUND.value}}), 404, media_type="application/json")
    content, version = asset(name)
    headers = SECURITY | {"etag": f'"{version}"', "cache-control": "public, no-cache"}
    if request.query_params.get("v") == version:
        headers["cache-control"] = "public, max-age=31536000, immutable"
    if request.headers.get("if-none-match") == f'"{version}"':
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=STATIC[name])
