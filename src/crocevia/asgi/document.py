"""A door's OpenAPI 3.1 document, made from its wire structs, and the same as a page to read.

The page holds everything: it asks nothing of anybody, runs nothing, and may be framed by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec

from crocevia.core import json

from .types import Receive, Scope, Send

TEMPLATE: Final = "#/components/schemas/{name}"
PAGE_HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "h2{font-size:1rem;margin:2rem 0 .3rem;border-top:1px solid;padding-top:1rem}code{overflow-wrap:anywhere}"
    "pre{overflow:auto;padding:.7rem;border:1px solid}summary{cursor:pointer}"
)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation. refuses: statuses besides success. stream: with `stream` the same as server-sent events.

    body, result: types of the wire; None: there is none. public: asks for no key. headers: that it needs.
    query: parameters by name, each with its schema and whether it is needed.
    """

    id: str
    method: str
    path: str
    about: str
    body: Any = None
    result: Any = None
    status: int = 200
    refuses: tuple[int, ...] = ()
    stream: bool = False
    public: bool = False
    headers: tuple[str, ...] = ()
    query: dict[str, tuple[dict[str, Any], bool]] = {}


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says of the door as a whole. failure: the schema of every refusal. security: by name."""

    title: str
    about: str
    failure: dict[str, Any]
    security: dict[str, dict[str, Any]] = {}


def document(about: About, routes: Iterable[Route]) -> dict[str, Any]:
    """OpenAPI 3.1 of these routes."""
    table = tuple(routes)
    kinds = [kind for route in table for kind in (route.body, route.result) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
    known = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    components["Failure_"] = about.failure
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": about.title, "version": version("crocevia"), "description": about.about},
        "security": [{name: []} for name in about.security],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": about.security},
    }


def page(content: Mapping[str, Any], address: str) -> bytes:
    """A document as one HTML page. address: of the document itself."""
    title = escape(content["info"]["title"])
    rows = [
        _row(method, path, operation)
        for path, methods in content["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = escape(msgspec.json.format(json.encode(content["components"]["schemas"])).decode())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{title}</h1><p>{escape(content['info']['description'])}</p>"
        f'<p><a href="{escape(address)}">{escape(address)}</a></p>{"".join(rows)}'
        f"<details><summary>Schemas</summary><pre>{schemas}</pre></details></main></body></html>"
    ).encode()


def endpoint(make: Callable[[], dict[str, Any]], address: str) -> Callable[[Scope, Receive, Send], Any]:
    """An ASGI application: the document at `address`, and its page at any other path it is mounted on."""
    made: dict[str, bytes] = {}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await _send(send, 405, b"", ((b"allow", b"GET, HEAD"),))
            return
        if not made:
            content = make()
            made.update(json=json.encode(content), page=page(content, address))
        if scope["path"] == address:
            await _send(send, 200, made["json"], ((b"content-type", b"application/json"),))
        else:
            await _send(send, 200, made["page"], PAGE_HEADERS)

    return serve


async def _send(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    lines = [*headers, (b"content-length", b"%d" % len(body)), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def _row(method: str, path: str, operation: Mapping[str, Any]) -> str:
    answers = ", ".join(f"{status} {answer['description']}" for status, answer in operation["responses"].items())
    named = ", ".join(f"{one['name']} ({one['in']})" for one in operation["parameters"])
    needs = f"<p>Parameters: {escape(named)}</p>" if named else ""
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['description'])}</p>"
        f"{needs}<p>{escape(answers)}</p>"
    )


def _operation(route: Route, known: Mapping[int, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    if route.result is not None:
        success["content"] = {"application/json": {"schema": known[id(route.result)]}}
        if route.stream:
            success["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    refusal = {"application/json": {"schema": {"$ref": TEMPLATE.format(name="Failure_")}}}
    found: dict[str, Any] = {
        "operationId": route.id,
        "description": route.about,
        "parameters": _parameters(route),
        "responses": {
            str(route.status): success,
            **{str(code): {"description": HTTPStatus(code).phrase, "content": refusal} for code in route.refuses},
        },
    }
    if route.public:
        found["security"] = []
    if route.body is not None:
        content = {"application/json": {"schema": known[id(route.body)]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return [
        *({"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names),
        *({"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in route.headers),
        *(
            {"name": name, "in": "query", "required": needed, "schema": schema}
            for name, (schema, needed) in route.query.items()
        ),
    ]
