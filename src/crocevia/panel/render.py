"""From a page's context to HTML, in the reader's language."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from crocevia.core import json
from crocevia.core.errors import Sentence
from crocevia.core.texts import Language
from crocevia.core.texts import render as render_message
from crocevia.panel import formats, i18n
from crocevia.panel.icons import FAVICON, ICONS
from crocevia.panel.web import PageRequest, PageView, local_path

SECURITY: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), payment=()",
}
PRIVATE: Final = SECURITY | {"cache-control": "no-store"}
STATIC: Final = {"admin.css": "text/css", "admin.js": "text/javascript", "playground.js": "text/javascript"}


class NavigationLink(msgspec.Struct, frozen=True):
    """One entry of the navigation; the groups are visible headings."""

    key: str
    path: str
    icon: str


NAVIGATION: Final = (
    (
        "watch",
        (
            NavigationLink("overview", "/panel", "overview"),
            NavigationLink("calls", "/panel/calls", "calls"),
            NavigationLink("chats", "/panel/chats", "chat"),
            NavigationLink("waiting", "/panel/waiting", "waiting"),
        ),
    ),
    (
        "shape",
        (
            NavigationLink("projects", "/panel/projects", "project"),
            NavigationLink("models", "/panel/models", "model"),
            NavigationLink("agents", "/panel/agents", "agent"),
        ),
    ),
    (
        "keep",
        (NavigationLink("settings", "/panel/settings", "settings"),),
    ),
    (
        "try",
        (NavigationLink("playground", "/panel/playground", "play"),),
    ),
)
NOTICES: Final = frozenset(
    {
        *("saved", "created", "removed", "revoked", "unchanged", "password", "checking", "signed_out", "preferences"),
        *("cancelled", "steered", "approved", "denied", "answered", "redelivered", "forgotten"),
    }
)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("crocevia.panel"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # else each page looks at the file of each template
    )
    made.globals.update(icons=ICONS, favicon=FAVICON, static=static_path, navigation=NAVIGATION)
    return made


@cache
def asset(name: str) -> tuple[bytes, str]:
    """A static file and its digest. Raises KeyError for a name that is not in `STATIC`."""
    STATIC[name]
    content = files("crocevia.panel").joinpath("static", name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]


def static_path(name: str) -> str:
    """URL with a content hash."""
    return f"/panel/static/{name}?v={asset(name)[1]}"


def html_view(request: PageRequest, view: PageView) -> Response:
    """The page as HTML."""
    language = request.language
    notice = request.query.get("done")
    template = _environment().get_template(f"{view.template}.html")
    html = template.render(
        page=view.context,
        title=view.title,
        nav=view.nav,
        breadcrumbs=view.breadcrumbs,
        notice=notice if notice in NOTICES else None,
        request=request,
        language=language,
        theme=request.theme,
        here=_return_path(request),
        signed_in=request.session is not None,
        waiting=request.waiting,
        version=request.services.version,
        **helpers(language),
    )
    headers = PRIVATE | {"content-language": language, "vary": "cookie, accept-language"} | view.headers
    return Response(html, view.status, headers=headers, media_type="text/html")


def json_view(view: PageView) -> Response:
    """The context of the page's template, as JSON."""
    return Response(json.encode(view.context), view.status, headers=PRIVATE, media_type="application/json")


def helpers(language: Language) -> dict[str, Any]:
    """Functions for templates: texts and formats in the reader's language."""
    bound = {
        name: partial(_formatted, getattr(formats, name), language)
        for name in ("number", "money", "share", "duration", "size", "when")
    }
    return bound | {
        "t": partial(i18n.translate, language),
        "knows": i18n.messages(language).__contains__,
        "iso": formats.iso,
        "change": lambda now, before: formats.change(now, before, language),
        "sentence": lambda message: render_message(message, language) if isinstance(message, Sentence) else message,
        "grouped": grouped,
    }


def grouped(inputs: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Inputs by their group, in order of appearance."""
    found: dict[str, list[Any]] = {}
    for item in inputs:
        found.setdefault(item.group, []).append(item)
    return list(found.items())


def _formatted(function: Any, language: Language, value: Any, *args: Any) -> str:
    text: str = function(value, language, *args)
    return text


def _return_path(request: PageRequest) -> str:
    """The page to come back to. A POST may have no page of its own: then it is the one before."""
    http = request.http
    if http.method == "POST":
        before = urlsplit(http.headers.get("referer", ""))
        return local_path(f"{before.path}?{before.query}" if before.query else before.path)
    return f"{http.url.path}?{http.url.query}" if http.url.query else http.url.path
