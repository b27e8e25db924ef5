"""The OpenAPI document of this door, made from its own table and structs, and the same as a page to read."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec

from .operation import Operation, Rule
from .routing import PREFIX, names

_TEMPLATE: Final = "#/components/schemas/{name}"
_FORM: Final = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """details: sentences by field."""

    type: str
    message: str
    code: str | None = None
    details: dict[str, list[str]] | None = None


class Error(msgspec.Struct, frozen=True, kw_only=True):
    error: ErrorDetail


def document(table: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1. Addresses that this server only refuses are left out."""
    described = [operation for operation in table if operation.about != "Not on this server."]
    parts = (part for row in described for part in (row.body, row.result, row.query))
    kinds = [Error, *(part for part in parts if part is not None)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    known = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in described:
        path = operation.path if operation.path.startswith("/.well-known/") else PREFIX + operation.path
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, known, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Crocevia: Envai API",
            "version": version("crocevia"),
            "description": "The control plane and the Agent Team Protocol, contract 3 and version 2 at one address.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def page(content: dict[str, Any]) -> bytes:
    """The document as one HTML page: no script, nothing from elsewhere."""
    rows = [
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['description'])}</p>"
        f"<p>{escape(', '.join(_answers(operation)))}</p>"
        for path, methods in content["paths"].items()
        for method, operation in methods.items()
    ]
    style = "body{font:16px/1.5 system-ui;max-width:50rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    title = escape(content["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><p>{escape(content['info']['description'])}</p>"
        f'<p><a href="{PREFIX}/openapi.json">openapi.json</a></p>{"".join(rows)}</html>'
    ).encode()


def _answers(operation: dict[str, Any]) -> list[str]:
    return [f"{status} {answer['description']}" for status, answer in operation["responses"].items()]


def _operation(operation: Operation, known: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.id,
        "description": operation.about,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation, components), *_headers(operation)],
        "responses": {
            str(operation.status): _success(operation, known),
            **{str(status): _refusal(status) for status in _refusals(operation)},
        },
    }
    if operation.public:
        found["security"] = []
    if operation.body is not None:
        schema = known[id(operation.body)]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.upload:
        found["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
    return found


def _success(operation: Operation, known: dict[int, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.produces is not None:
        answer["content"] = {operation.produces: {"schema": {"type": "string", "format": "binary"}}}
    elif operation.result is not None:
        schema = known[id(operation.result)]
        if not operation.bare:
            schema = {"type": "object", "required": ["data"], "properties": {"data": schema}}
        answer["content"] = {"application/json": {"schema": schema}}
    return answer


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(name="Error")}
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}


def _refusals(operation: Operation) -> list[int]:
    """What the operation may answer besides success, lowest first."""
    negotiated = operation.rule is not Rule.PLAIN
    writes = operation.method in ("POST", "PUT")
    tests = {
        400: negotiated,
        401: not operation.public,
        404: "{" in operation.path,
        413: writes,
        422: True,
        426: negotiated,
        429: operation.per_minute is not None,
        500: True,
        503: True,
    }
    return sorted({status for status, holds in tests.items() if holds} | set(operation.refuses))


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names(operation)]


def _query_parameters(operation: Operation, components: dict[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    described = components[operation.query.__name__]
    needed = described.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": _not_null(schema)}
        for name, schema in described["properties"].items()
    ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    # A parameter is absent, never null.
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return options[0] if len(options) == 1 else {key: value for key, value in schema.items() if key != "default"}


def _headers(operation: Operation) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "header", "required": True, "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"}}
        for name in operation.headers
    ]
    if operation.rule is Rule.PLAIN:
        return found
    required = operation.rule is Rule.CONTRACT_3
    values = {"type": "string", "enum": ["3"] if required else ["2", "3"]}
    return [*found, {"name": "X-Envai-Contract-Version", "in": "header", "required": required, "schema": values}]
