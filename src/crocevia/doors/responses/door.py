"""The door as one ASGI application below `/v1/`: which address is whose, and what is said of failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from crocevia.asgi.body import ClientGone
from crocevia.asgi.document import About, Route, describing, document, endpoint
from crocevia.asgi.types import SOCKETS, Application, Receive, Scope, Send
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import chat, compact, create, embeddings, models, queries, socket, stored, wire
from crocevia.doors.responses.background import Background
from crocevia.doors.responses.chat import wire as chat_wire
from crocevia.doors.responses.errors import expected, refuse
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.requests import check_method

Handler: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

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
ADDRESSES: Final = (
    Route(
        id="createResponse",
        method="POST",
        path="/v1/responses",
        about="One answer of an agent or a model; with `stream` as server-sent events.",
        body=wire.Request,
        result=wire.Resource,
        also=("text/event-stream",),
        refuses=_CALL,
    ),
    Route(
        id="compactResponse",
        method="POST",
        path="/v1/responses/compact",
        about="A long input as a short one that means the same.",
        body=wire.Request,
        result=wire.Compacted,
        refuses=_CALL,
    ),
    Route(
        id="getResponse",
        method="GET",
        path="/v1/responses/{response_id}",
        about="A stored answer; with `stream` its events again, and those to come if it is still being made.",
        query=queries.Retrieval,
        result=wire.Resource,
        also=("text/event-stream",),
        refuses=_READ,
    ),
    Route(
        id="deleteResponse",
        method="DELETE",
        path="/v1/responses/{response_id}",
        about="Forget a stored answer.",
        result=dict[str, Any],
        refuses=_READ,
    ),
    Route(
        id="cancelResponse",
        method="POST",
        path="/v1/responses/{response_id}/cancel",
        about="End an answer that is made in the background.",
        result=wire.Resource,
        refuses=_READ,
    ),
    Route(
        id="listInputItems",
        method="GET",
        path="/v1/responses/{response_id}/input_items",
        about="What a stored answer was given, newest first unless asked otherwise.",
        query=queries.Listing,
        result=dict[str, Any],
        refuses=_READ,
    ),
    Route(
        id="createChatCompletion",
        method="POST",
        path="/v1/chat/completions",
        about="One answer in the form of chat completions; with `stream` as server-sent events.",
        body=chat_wire.Request,
        result=chat_wire.Completion,
        also=("text/event-stream",),
        refuses=_CALL,
    ),
    Route(
        id="createEmbeddings",
        method="POST",
        path="/v1/embeddings",
        about="Texts as vectors.",
        body=embeddings.Request,
        result=dict[str, Any],
        refuses=_CALL,
    ),
    Route(
        id="listModels",
        method="GET",
        path="/v1/models",
        about="The agents, and where they are shown the models, that can be asked.",
        result=dict[str, Any],
        refuses=_READ,
    ),
    Route(
        id="getModel",
        method="GET",
        path="/v1/models/{model}",
        about="One of them.",
        result=dict[str, Any],
        refuses=_READ,
    ),
    *describing(DOCUMENT, PAGE),
)
_RESPONSES: Final = "/v1/responses/"
_MODELS: Final = "/v1/models/"


class ResponsesDoor:
    """Everything OpenAI-like. chat_only: chat completions, embeddings and models, without `/v1/responses`."""

    def __init__(self, desk: Desk, embedder: embeddings.Embedder, *, chat_only: bool = False) -> None:
        self._desk = desk
        self._background = Background(desk)
        self._posts: dict[str, Handler] = {
            "/v1/chat/completions": partial(chat.complete, desk),
            "/v1/embeddings": partial(embeddings.embed, desk, embedder),
        }
        if not chat_only:
            self._posts |= {
                "/v1/responses": partial(create.create, desk, self._background),
                "/v1/responses/compact": partial(compact.compact, desk),
            }
        self._chat_only = chat_only

    def routes(self) -> dict[str, Application]:
        """By address; one that ends with a slash takes everything below it."""
        ours = {address.partition("{")[0] for row in ADDRESSES for address in row.addresses}
        described = endpoint(self.content, DOCUMENT)
        return dict.fromkeys(ours, self) | {
            f"{SOCKETS}/v1/responses": self,
            DOCUMENT: described,
            PAGE: described,
        }

    def content(self) -> dict[str, Any]:
        """The OpenAPI document of what is on."""
        off = "/v1/responses" if self._chat_only else "-"
        return document(_ABOUT, [row for row in ADDRESSES if not row.path.startswith(off)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        try:
            post = self._posts.get(scope["path"])
            if post is None:
                await self._others(scope, receive, send)
            else:
                check_method(scope, "POST")
                await post(scope, receive, send)
        except ClientGone:
            return
        except Exception as error:
            await refuse(send, expected(error))

    async def start(self) -> None:
        """Go on with answers that an earlier process did not finish."""
        await self._background.resume()

    async def close(self) -> None:
        """Cut what runs in the background."""
        await self._background.close()

    async def _others(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == "/v1/models":
            await models.listed(self._desk, scope, send)
        elif path.startswith(_MODELS):
            await models.one(self._desk, path.removeprefix(_MODELS), scope, send)
        elif path.startswith(_RESPONSES) and not self._chat_only:
            rest = path.removeprefix(_RESPONSES)
            await stored.serve(self._desk, self._background, rest, scope, receive, send)
        else:
            raise GatewayError(Reason.NOT_FOUND)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/responses" and not self._chat_only:
            await socket.serve(self._desk, scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
