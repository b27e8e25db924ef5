"""The OpenAPI document of this door: `/v1/openapi.json`."""

from __future__ import annotations

from typing import Any, Final

from crocevia.asgi.document import About, Route, document, endpoint

from . import embeddings, wire
from .chat import wire as chat_wire

ADDRESS: Final = "/v1/openapi.json"
PAGE: Final = "/v1/docs"

_REFUSES: Final = (400, 401, 402, 403, 404, 405, 409, 413, 422, 429, 500, 502, 503, 504)
_ABOUT: Final = About(
    title="Crocevia: OpenAI-like API",
    about="Open Responses, chat completions, embeddings and models, over the agents and models of this server.",
    failure={
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type"],
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "code": {"type": ["string", "null"]},
                    "param": {"type": ["string", "null"]},
                },
            }
        },
    },
    security={"bearer": {"type": "http", "scheme": "bearer"}},
)
_ROUTES: Final = (
    Route(
        id="createResponse",
        method="POST",
        path="/v1/responses",
        about="One answer of an agent or a model; with `stream` as server-sent events.",
        body=wire.Request,
        result=wire.Resource,
        stream=True,
        refuses=_REFUSES,
    ),
    Route(
        id="compactResponse",
        method="POST",
        path="/v1/responses/compact",
        about="A long input as a short one that means the same.",
        body=wire.Request,
        result=wire.Compacted,
        refuses=_REFUSES,
    ),
    Route(
        id="getResponse",
        method="GET",
        path="/v1/responses/{response_id}",
        about="A stored answer.",
        result=wire.Resource,
        refuses=_REFUSES,
    ),
    Route(
        id="deleteResponse",
        method="DELETE",
        path="/v1/responses/{response_id}",
        about="Forget a stored answer.",
        result=dict[str, Any],
        refuses=_REFUSES,
    ),
    Route(
        id="createChatCompletion",
        method="POST",
        path="/v1/chat/completions",
        about="One answer in the form of chat completions; with `stream` as server-sent events.",
        body=chat_wire.Request,
        result=chat_wire.Completion,
        stream=True,
        refuses=_REFUSES,
    ),
    Route(
        id="createEmbeddings",
        method="POST",
        path="/v1/embeddings",
        about="Texts as vectors.",
        body=embeddings.Request,
        result=dict[str, Any],
        refuses=_REFUSES,
    ),
    Route(
        id="listModels",
        method="GET",
        path="/v1/models",
        about="The agents, and where they are shown the models, that can be asked.",
        result=dict[str, Any],
        refuses=_REFUSES,
    ),
    Route(
        id="getModel",
        method="GET",
        path="/v1/models/{model}",
        about="One of them.",
        result=dict[str, Any],
        refuses=_REFUSES,
    ),
)


def content() -> dict[str, Any]:
    """The document."""
    return document(_ABOUT, _ROUTES)


description = endpoint(content, ADDRESS)
"""The ASGI application for ADDRESS and PAGE."""
