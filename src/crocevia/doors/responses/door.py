"""The door: which address is whose, and what each of them takes, answers and refuses."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from crocevia.asgi.document import About, describing
from crocevia.asgi.http import SOCKET, Door, Operation
from crocevia.core import json
from crocevia.doors.responses import compact, create, embeddings, models, plan, queries, socket, stored, wire
from crocevia.doors.responses.caller import READ, WRITE, authenticate
from crocevia.doors.responses.chat import completions
from crocevia.doors.responses.chat import wire as chat_wire
from crocevia.doors.responses.errors import refuse
from crocevia.doors.responses.run import Background
from crocevia.doors.responses.services import Services

DOCUMENT: Final = "/v1/openapi.json"
PAGE: Final = "/v1/docs"

_ABOUT: Final = About(
    title="Crocevia: OpenAI-like API",
    about="Open Responses, chat completions, embeddings and models, over the agents and models of this server.",
    failure=wire.Refusal,
    security={"bearer": {"type": "http", "scheme": "bearer"}},
)
_CALL: Final = (400, 401, 402, 403, 404, 409, 413, 429, 500, 502, 503, 504)
_READ: Final = (400, 401, 403, 404, 429, 500, 503)


def responses_door(
    services: Services,
    background: Background,
    embedder: embeddings.Embedder,
    *,
    max_body: int,
    chat_only: bool = False,
) -> Door:
    """Everything OpenAI-like. chat_only: chat completions, embeddings and models, without `/v1/responses`."""
    rows = chat_rows(services, embedder, max_body)
    if not chat_only:
        rows = (*answer_rows(services, background, max_body), *rows)
    return Door(
        name="responses",
        table=(*rows, *describing(_ABOUT, rows, DOCUMENT, PAGE)),
        prefixes=("/v1",),
        authenticate=partial(authenticate, services.operators),
        refuse=refuse,
        decode=_decode,
    )


def _decode(data: bytes, kind: Any) -> Any:
    return plan.read(data) if kind is wire.Request else json.decode(data or b"{}", kind)


def answer_rows(services: Services, background: Background, max_body: int) -> tuple[Operation, ...]:
    """Answers, and what can be done with those that were kept."""
    return (
        Operation(
            "createResponse",
            "POST",
            "/v1/responses",
            partial(create.create, services, background),
            "One answer of an agent or a model; with `stream` as server-sent events.",
            rule=WRITE,
            max_body=max_body,
            body=wire.Request,
            result=wire.Resource,
            also=("text/event-stream",),
            refuses=_CALL,
        ),
        Operation(
            "compactResponse",
            "POST",
            "/v1/responses/compact",
            partial(compact.compact, services),
            "A long input as a short one that means the same.",
            rule=WRITE,
            max_body=max_body,
            body=wire.Request,
            result=wire.Compacted,
            refuses=_CALL,
        ),
        Operation(
            "getResponse",
            "GET",
            "/v1/responses/{response_id}",
            partial(stored.get, services, background),
            "A stored answer; with `stream` its events again, and those to come if it is still being made.",
            rule=READ,
            query=queries.Retrieval,
            result=wire.Resource,
            also=("text/event-stream",),
            refuses=_READ,
        ),
        Operation(
            "deleteResponse",
            "DELETE",
            "/v1/responses/{response_id}",
            partial(stored.delete, services, background),
            "Forget a stored answer.",
            rule=WRITE,
            result=dict[str, Any],
            refuses=_READ,
        ),
        Operation(
            "cancelResponse",
            "POST",
            "/v1/responses/{response_id}/cancel",
            partial(stored.cancel, services, background),
            "End an answer that is made in the background.",
            rule=WRITE,
            result=wire.Resource,
            refuses=_READ,
        ),
        Operation(
            "listInputItems",
            "GET",
            "/v1/responses/{response_id}/input_items",
            partial(stored.input_items, services),
            "What a stored answer was given, newest first unless asked otherwise.",
            rule=READ,
            query=queries.Listing,
            result=dict[str, Any],
            refuses=_READ,
        ),
        Operation(
            "streamResponses",
            SOCKET,
            "/v1/responses",
            partial(socket.serve, services),
            "The same answers, one at a time, on a connection that remembers its own.",
            rule=WRITE,
        ),
    )


def chat_rows(services: Services, embedder: embeddings.Embedder, max_body: int) -> tuple[Operation, ...]:
    """Chat completions, embeddings and models."""
    return (
        Operation(
            "createChatCompletion",
            "POST",
            "/v1/chat/completions",
            partial(completions.complete, services),
            "One answer in the form of chat completions; with `stream` as server-sent events.",
            rule=WRITE,
            max_body=max_body,
            body=chat_wire.Request,
            result=chat_wire.Completion,
            also=("text/event-stream",),
            refuses=_CALL,
        ),
        Operation(
            "createEmbeddings",
            "POST",
            "/v1/embeddings",
            partial(embeddings.embed, services, embedder),
            "Texts as vectors.",
            rule=WRITE,
            max_body=max_body,
            body=wire.EmbeddingRequest,
            result=dict[str, Any],
            refuses=_CALL,
        ),
        Operation(
            "listModels",
            "GET",
            "/v1/models",
            partial(models.listed, services),
            "The agents, and where they are shown the models, that can be asked.",
            rule=READ,
            result=dict[str, Any],
            refuses=_READ,
        ),
        Operation(
            "getModel",
            "GET",
            "/v1/models/{model+}",
            partial(models.one, services),
            "One of them.",
            rule=READ,
            result=dict[str, Any],
            refuses=_READ,
        ),
    )
