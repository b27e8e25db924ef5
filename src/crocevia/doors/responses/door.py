"""The door as one ASGI application below `/v1/`: which address is whose, and what is said of failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from crocevia.asgi.body import ClientGone
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core.errors import Code, GatewayError

from . import chat, compact, create, embeddings, models, socket, stored
from .background import Background
from .errors import expected, refuse
from .plan import Desk
from .requests import check_method

Handler: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_RESPONSES: Final = "/v1/responses/"
_MODELS: Final = "/v1/models/"


class ResponsesDoor:
    """Everything OpenAI-like. chat_only: chat completions, embeddings and models, without `/v1/responses`."""

    def __init__(self, desk: Desk, embedder: embeddings.Embedder, *, chat_only: bool = False) -> None:
        self._desk = desk
        self._embedder = embedder
        self._background = Background(desk)
        self._posts: dict[str, Handler] = {
            "/v1/chat/completions": self._chat,
            "/v1/embeddings": self._embed,
        }
        if not chat_only:
            self._posts |= {"/v1/responses": self._create, "/v1/responses/compact": self._compact}
        self._chat_only = chat_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        try:
            await self._serve(scope, receive, send)
        except ClientGone:
            return
        except Exception as error:
            await refuse(send, expected(error))

    async def close(self) -> None:
        """Cut what runs in the background."""
        await self._background.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        post = self._posts.get(path)
        if post is not None:
            check_method(scope, "POST")
            await post(scope, receive, send)
        elif path == "/v1/models":
            await models.listed(self._desk, scope, send)
        elif path.startswith(_MODELS):
            await models.one(self._desk, path.removeprefix(_MODELS), scope, send)
        elif path.startswith(_RESPONSES) and not self._chat_only:
            rest = path.removeprefix(_RESPONSES)
            await stored.serve(self._desk, self._background, rest, scope, receive, send)
        else:
            raise GatewayError(Code.NOT_FOUND)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/responses" and not self._chat_only:
            await socket.serve(self._desk, scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        await create.create(self._desk, self._background, scope, receive, send)

    async def _compact(self, scope: Scope, receive: Receive, send: Send) -> None:
        await compact.compact(self._desk, scope, receive, send)

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        await chat.complete(self._desk, scope, receive, send)

    async def _embed(self, scope: Scope, receive: Receive, send: Send) -> None:
        await embeddings.embed(self._desk, self._embedder, scope, receive, send)
