"""The OpenAPI document of this door: `/pepper/openapi.json`."""

from __future__ import annotations

from typing import Any, Final

from crocevia.asgi.document import About, Route, document, endpoint

from . import wire, wire_classic, wire_reports

ADDRESS: Final = "/pepper/openapi.json"
PAGE: Final = "/pepper/docs"

_REFUSES: Final = (400, 401, 403, 404, 405, 413, 422, 429, 502, 503)
_ABOUT: Final = About(
    title="Crocevia: Pepper Agent API",
    about="One question to one model: the application owns the tools and the history. The project goes with its key.",
    failure={
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            }
        },
    },
    security={"key": {"type": "apiKey", "in": "header", "name": "X-Pepper-Key"}},
)
_HEAD: Final = ("X-Pepper-Project",)
_PROJECT: Final = {"progetto": ({"type": "string"}, False)}
_ROUTES: Final = (
    Route(
        id="agent",
        headers=_HEAD,
        method="POST",
        path="/agent",
        about="One step of an agent: an answer, or calls of the application's tools; with `stream` as events.",
        body=wire.Request,
        result=wire.Reply,
        stream=True,
        refuses=_REFUSES,
    ),
    Route(
        id="verifica",
        headers=_HEAD,
        method="POST",
        path="/agent/verifica",
        about="What would become of this request, without asking any model.",
        body=wire.Request,
        result=wire_reports.Report,
        refuses=_REFUSES,
    ),
    Route(
        id="capacita",
        headers=_HEAD,
        method="GET",
        path="/capacita.php",
        about="What the project's model can do, and how much is left of its limits.",
        result=wire_reports.Capabilities,
        refuses=_REFUSES,
    ),
    Route(
        id="classica",
        method="POST",
        path="/api.php",
        about="The classic call: a content by a recipe, with conversations that the server remembers.",
        body=wire_classic.Richiesta,
        result=wire_classic.Risposta,
        refuses=_REFUSES,
    ),
    Route(
        id="kit",
        method="GET",
        path="/kit.php",
        about="The chat kit's version, the name of a project's model, or one of the kit's files.",
        result=dict[str, Any],
        refuses=(400, 404, 405),
        public=True,
        query=_PROJECT,
    ),
)


def content() -> dict[str, Any]:
    """The document."""
    return document(_ABOUT, _ROUTES)


description = endpoint(content, ADDRESS)
"""The ASGI application for ADDRESS and PAGE."""
