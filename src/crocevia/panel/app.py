"""The panel as an ASGI application: routes, access and error pages."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from crocevia.asgi.answers import expected
from crocevia.core import json
from crocevia.core.detailed_errors import MethodNotAllowed
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.texts import render as render_message
from crocevia.panel import auth, i18n
from crocevia.panel.pages import PAGES
from crocevia.panel.render import PRIVATE, SECURITY, STATIC, asset, html_view, json_view
from crocevia.panel.services import PanelServices
from crocevia.panel.state import PanelState
from crocevia.panel.web import (
    LARGEST_FORM,
    LARGEST_OF_STRANGERS,
    Page,
    PageRequest,
    PageResponse,
    PageView,
    Redirect,
    Theme,
    client_address,
    is_same_site,
    read_form,
)
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
    """The context of an error page."""

    status: int
    code: str
    message: str


def create(services: PanelServices) -> Starlette:
    """The application, with its state."""
    state = PanelState()
    routes: list[Route] = [Route("/panel/static/{name}", _static)]
    for each in PAGES:
        methods = ["GET"] * (each.get is not None) + ["POST"] * (each.post is not None)
        endpoint = _endpoint(services, state, each, as_json=False)
        routes.append(Route(each.path, endpoint, methods=methods))
        if each.has_json and each.get is not None:
            address = "/panel/overview.json" if each.path == "/panel" else f"{each.path}.json"
            routes.append(Route(address, _endpoint(services, state, each, as_json=True), methods=["GET"]))
    not_found = Page(path="", get=_not_found, post=_not_found)
    routes.append(Route("/panel{rest:path}", _endpoint(services, state, not_found, as_json=False)))
    return Starlette(routes=routes)


def _endpoint(services: PanelServices, state: PanelState, each: Page, *, as_json: bool) -> Any:
    async def endpoint(http: Request) -> Response:
        request = _page_request(services, state, http)
        try:
            request = msgspec.structs.replace(request, session=await auth.find_session(request))
            if request.session is not None and not as_json:
                request = msgspec.structs.replace(request, waiting=await _waiting(services))
            answer = await _answer(request, each, as_json=as_json)
            return _response(request, answer, as_json=as_json)
        except Exception as error:
            return _refusal(request, error, as_json=as_json)

    return endpoint


def _refusal(request: PageRequest, error: Exception, *, as_json: bool) -> Response:
    known = expected(error, "panel")
    failed = _failed(request, known)
    return _with_retry(json_view(failed) if as_json else html_view(request, failed), known)


async def _waiting(services: PanelServices) -> int:
    """How many approvals and tool calls wait for an answer; the menu shows it."""
    now = time.time_ns() // 1_000_000
    return await services.database.read(lambda tx: count_requests(tx, now))


async def _answer(request: PageRequest, each: Page, *, as_json: bool) -> PageResponse:
    writes = request.http.method == "POST"
    if writes and not is_same_site(request.http):
        raise GatewayError(Reason.OTHER_SITE)
    if not each.public and request.session is None:
        return _login_required(request, as_json=as_json or writes)
    handler = each.post if writes else each.get
    if handler is None:
        raise MethodNotAllowed("GET")
    if writes:
        request = msgspec.structs.replace(request, form=dict(await _form(request)))
    return await handler(request)


async def _form(request: PageRequest) -> list[tuple[str, str]]:
    kind = request.http.headers.get("content-type", "").partition(";")[0].strip().lower()
    most = LARGEST_OF_STRANGERS if request.session is None else LARGEST_FORM
    return await read_form(request.http, most) if kind == "application/x-www-form-urlencoded" else []


def _response(request: PageRequest, answer: PageResponse, *, as_json: bool) -> Response:
    if isinstance(answer, PageView):
        return json_view(answer) if as_json else html_view(request, answer)
    if isinstance(answer, Redirect):
        response: Response = RedirectResponse(answer.to, HTTPStatus.SEE_OTHER, headers=PRIVATE)
        for name, value, seconds in answer.cookies:
            response.set_cookie(
                name, value, seconds, path="/panel", secure=request.secure, httponly=True, samesite="strict"
            )
        return response
    return answer


def _login_required(request: PageRequest, *, as_json: bool) -> PageResponse:
    if as_json:
        raise GatewayError(Reason.SIGN_IN_FIRST)
    from urllib.parse import quote

    path, query = request.http.url.path, request.http.url.query
    wanted = f"{path}?{query}" if query else path
    return Redirect("/panel/login" if wanted == "/panel" else f"/panel/login?next={quote(wanted, safe='')}")


def _page_request(services: PanelServices, state: PanelState, http: Request) -> PageRequest:
    cookies = http.cookies
    chosen = http.query_params.get("lang") or cookies.get("crocevia_language")
    language = next(
        (known for known in i18n.LANGUAGES if known == chosen),
        i18n.preferred_language(http.headers.get("accept-language", "")),
    )
    return PageRequest(
        services=services,
        state=state,
        http=http,
        language=language,
        theme=_THEMES.get(cookies.get("crocevia_theme", ""), "auto"),
        address=client_address(http, services.trusted_proxies),
        query=dict(http.query_params),
    )


def _failed(request: PageRequest, error: GatewayError) -> PageView:
    status = STATUS.get(error.code, HTTPStatus.BAD_GATEWAY)
    message = render_message(error.message, request.language)
    return PageView(
        template="failure",
        context=Failure(status=status, code=error.code.value, message=message),
        title=request.t("failure.title"),
        status=status,
    )


def _with_retry(response: Response, error: GatewayError) -> Response:
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    return response


async def _not_found(request: PageRequest) -> PageResponse:
    raise GatewayError(Reason.NOT_FOUND)


async def _static(http: Request) -> Response:
    name = http.path_params["name"]
    if name not in STATIC:
        return Response(json.encode({"error": {"code": Code.NOT_FOUND.value}}), 404, media_type="application/json")
    content, version = asset(name)
    headers = SECURITY | {"etag": f'"{version}"', "cache-control": "public, no-cache"}
    if http.query_params.get("v") == version:
        headers["cache-control"] = "public, max-age=31536000, immutable"
    if http.headers.get("if-none-match") == f'"{version}"':
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=STATIC[name])
