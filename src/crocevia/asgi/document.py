"""A door's OpenAPI 3.1 document, made from its wire structs, and the same as a page to read.

The page holds everything: it asks nothing of anybody, runs nothing, and may be framed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec

from crocevia.asgi.http import SOCKET, Operation, Request, Response
from crocevia.core import json

TEMPLATE: Final = "#/components/schemas/{name}"
PAGE_HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
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


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says of the door as a whole."""

    title: str
    about: str
    failure: Any
    """The type of every refusal."""
    security: dict[str, dict[str, Any]] = {}
    """By name."""


class _Types:
    """Schemas of the wire's types; `components` has those with a name."""

    def __init__(self, table: tuple[Operation, ...], failure: Any) -> None:
        found = (kind for row in table for kind in (row.body, row.result, row.query))
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


def document(about: About, rows: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1 of a table. Sockets and what only answers 404 are left out."""
    table = tuple(row for row in rows if not row.absent and row.method != SOCKET)
    types = _Types(table, about.failure)
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        for index, address in enumerate((route.path, *route.aliases)):
            name = route.id if index == 0 else f"{route.id}_{index}"
            paths.setdefault(address.replace("+}", "}"), {})[route.method.lower()] = _described(route, name, types)
    return {
        "openapi": "3.1.0",
        "info": {"title": about.title, "version": version("crocevia"), "description": about.about},
        "security": [{name: []} for name in about.security],
        "paths": paths,
        "components": {"schemas": types.components, "securitySchemes": about.security},
    }


def describing(about: About, table: Iterable[Operation], address: str, page_address: str) -> tuple[Operation, ...]:
    """The rows that describe a table, themselves included."""

    @cache
    def content() -> dict[str, Any]:  # read seldom, made once
        return document(about, (*table, *rows))

    async def as_document(request: Request[Any]) -> Response:
        return Response(200, content(), cache=b"no-cache")

    async def as_page(request: Request[Any]) -> Response:
        return Response(200, page(content(), address), PAGE_HEADERS, b"text/html; charset=utf-8", b"no-cache")

    rows = (
        Operation(
            "getDocument",
            "GET",
            address,
            as_document,
            "This description, as OpenAPI 3.1.",
            result=dict[str, Any],
            public=True,
            head=True,
        ),
        Operation(
            "readDocument",
            "GET",
            page_address,
            as_page,
            "This description, as a page to read.",
            produces="text/html",
            public=True,
            head=True,
        ),
    )
    return rows


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


def _row(method: str, path: str, operation: Mapping[str, Any]) -> str:
    answers = ", ".join(f"{status} {answer['description']}" for status, answer in operation["responses"].items())
    named = ", ".join(f"{one['name']} ({one['in']})" for one in operation["parameters"])
    needs = f"<p>Parameters: {escape(named)}</p>" if named else ""
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['description'])}</p>"
        f"{needs}<p>{escape(answers)}</p>"
    )


def _described(route: Operation, name: str, types: _Types) -> dict[str, Any]:
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


def _success(route: Operation, types: _Types) -> dict[str, Any]:
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


def _parameters(route: Operation, types: _Types) -> list[dict[str, Any]]:
    names = [part.strip("{+}") for part in route.path.split("/") if part.startswith("{")]
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
