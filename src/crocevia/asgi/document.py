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

from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json

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
_BINARY: Final = {"type": "string", "format": "binary"}
_TEXT: Final = {"type": "string"}
_KINDS: Final = {
    "text/html": _TEXT,
    "text/css": _TEXT,
    "text/javascript": _TEXT,
    "text/event-stream": {  # of each event
        "type": "object",
        "required": ["data"],
        "properties": {"event": _TEXT, "data": _TEXT, "id": _TEXT},
    },
}
_FORM: Final = {"type": "object", "required": ["file"], "properties": {"file": _BINARY}}
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "h2{font-size:1rem;margin:2rem 0 .3rem;border-top:1px solid;padding-top:1rem}code{overflow-wrap:anywhere}"
    "pre{overflow:auto;padding:.7rem;border:1px solid}summary{cursor:pointer}"
)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a door. addresses: `path`, and `aliases` that are the same.

    body, result: types of the wire; None: there is none. wrapped: the answer is `{"data": result}`.
    produces: the media type of an answer that is no JSON. also: media types that the answer may have instead.
    upload: the body is a form with one `file`. query: the struct of its parameters. public: asks for no key.
    headers: that it reads, each with its schema and whether it is needed. refuses: statuses besides success.
    """

    id: str
    method: str
    path: str
    about: str
    aliases: tuple[str, ...] = ()
    body: Any = None
    result: Any = None
    wrapped: bool = False
    produces: str | None = None
    also: tuple[str, ...] = ()
    upload: bool = False
    status: int = 200
    refuses: tuple[int, ...] = ()
    public: bool = False
    headers: dict[str, tuple[dict[str, Any], bool]] = {}
    query: Any = None

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.path, *self.aliases)


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says of the door as a whole. failure: the type of every refusal. security: by name."""

    title: str
    about: str
    failure: Any
    security: dict[str, dict[str, Any]] = {}


class _Types:
    """Schemas of the wire's types; `components` has those with a name."""

    def __init__(self, routes: tuple[Route, ...], failure: Any) -> None:
        found = (kind for route in routes for kind in (route.body, route.result, route.query))
        kinds = [failure, *(kind for kind in found if kind is not None)]
        schemas, self.components = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
        self._known = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
        self.failure = schemas[0]

    def of(self, kind: Any) -> dict[str, Any]:
        """Usually a reference."""
        return self._known[id(kind)]

    def members(self, kind: Any) -> Iterable[tuple[str, dict[str, Any], bool]]:
        """The fields of a struct: name, schema, whether it is needed."""
        schema = self.components[self.of(kind)["$ref"].rpartition("/")[2]]
        needed = schema.get("required", ())
        return ((name, member, name in needed) for name, member in schema["properties"].items())


def document(about: About, routes: Iterable[Route]) -> dict[str, Any]:
    """OpenAPI 3.1 of these routes."""
    table = tuple(routes)
    types = _Types(table, about.failure)
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        for index, address in enumerate(route.addresses):
            name = route.id if index == 0 else f"{route.id}_{index}"
            paths.setdefault(address, {})[route.method.lower()] = _operation(route, name, types)
    return {
        "openapi": "3.1.0",
        "info": {"title": about.title, "version": version("crocevia"), "description": about.about},
        "security": [{name: []} for name in about.security],
        "paths": paths,
        "components": {"schemas": types.components, "securitySchemes": about.security},
    }


def describing(address: str, page_address: str) -> tuple[Route, ...]:
    """The rows of the description itself."""
    return (
        Route(
            id="getDocument",
            method="GET",
            path=address,
            about="This description, as OpenAPI 3.1.",
            result=dict[str, Any],
            public=True,
        ),
        Route(
            id="readDocument",
            method="GET",
            path=page_address,
            about="This description, as a page to read.",
            produces="text/html",
            public=True,
        ),
    )


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


def _operation(route: Route, name: str, types: _Types) -> dict[str, Any]:
    refusal = {"application/json": {"schema": types.failure}}
    found: dict[str, Any] = {
        "operationId": name,
        "description": route.about,
        "parameters": _parameters(route, types),
        "responses": {
            str(route.status): _success(route, types),
            **{str(code): {"description": HTTPStatus(code).phrase, "content": refusal} for code in route.refuses},
        },
    }
    if route.public:
        found["security"] = []
    if route.upload:
        found["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
    elif route.body is not None:
        content = {"application/json": {"schema": types.of(route.body)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _success(route: Route, types: _Types) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    content: dict[str, Any] = {}
    if route.result is not None:
        schema = types.of(route.result)
        if route.wrapped:
            schema = {"type": "object", "required": ["data"], "properties": {"data": schema}}
        content["application/json"] = {"schema": schema}
    for kind in (route.produces, *route.also):
        if kind is not None:
            content[kind] = {"schema": _KINDS.get(kind, _BINARY)}
    return answer | {"content": content} if content else answer


def _parameters(route: Route, types: _Types) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    found = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    if route.query is not None:
        found += [
            {"name": name, "in": "query", "required": needed, "schema": _not_null(schema)}
            for name, schema, needed in types.members(route.query)
        ]
    return found + [
        {"name": name, "in": "header", "required": needed, "schema": schema}
        for name, (schema, needed) in route.headers.items()
    ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    # A parameter is absent, never null.
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return options[0] if len(options) == 1 else {key: value for key, value in schema.items() if key != "default"}
