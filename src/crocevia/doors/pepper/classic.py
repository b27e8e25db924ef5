"""`POST /api.php`: a recipe, a content, perhaps a conversation. `DELETE` forgets a conversation."""

from __future__ import annotations

from typing import Final
from unicodedata import normalize
from urllib.parse import parse_qs

from msgspec import UNSET

from crocevia.asgi.answers import reply
from crocevia.asgi.body import ClientGone, read_body
from crocevia.asgi.hangup import watching
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.messages import Part, TextPart
from crocevia.doors.pepper import decode, encode, wire
from crocevia.doors.pepper.errors import expected, refuse
from crocevia.doors.pepper.head import read_head
from crocevia.doors.pepper.standing import Standing
from crocevia.doors.pepper.wire_classic import (
    CONVERSATION,
    MOST_NAME,
    ORIGINS,
    Cancellata,
    Citazione,
    Richiesta,
    Risposta,
)
from crocevia.runtime.classic import Citation, Classic, Exchange, Question
from crocevia.runtime.classic import Reply as Answered
from crocevia.runtime.gateway import Attachment, Wants, check_permission, placeholder

_MOST_PARAMETERS: Final = 20


class ClassicEndpoint:
    """The classic call. max_body: bytes."""

    def __init__(self, classic: Classic, *, max_body: int = wire.MAX_BODY) -> None:
        self._classic = classic
        self._gateway = classic.gateway
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refusals come as in the agent call: method, key, size, JSON, project, content, limits."""
        standing = Standing(self._gateway)
        try:
            if scope["method"] == "DELETE":
                await self._forget(scope, send, standing)
                return
            exchange = await self._open(scope, receive, standing)
            with watching(receive, exchange.hang_up):
                answered = await exchange.answer()
            if answered is not None:
                body = json.encode(_risposta(answered, exchange.conversation))
                await reply(send, 200, body, standing.headers())
        except ClientGone:
            return
        except Exception as error:
            known = expected(error)
            await refuse(send, known, close=known.code is Code.TOO_LARGE, more=standing.headers())

    async def _open(self, scope: Scope, receive: Receive, standing: Standing) -> Exchange:
        head = read_head(scope, "POST", "DELETE")
        body = await read_body(receive, self._max_body, head.length, asks=head.asks)
        request = json.decode(body, Richiesta)
        project = standing.project = self._gateway.authenticate(request.progetto or head.project, head.key)
        wants = decode.wants(project)
        return self._classic.open(project, _question(request, wants, len(body)), wants)

    async def _forget(self, scope: Scope, send: Send, standing: Standing) -> None:
        head = read_head(scope, "DELETE")
        asked = _parameters(scope.get("query_string", b""))
        project = standing.project = self._gateway.authenticate(head.project or asked.get("progetto", ""), head.key)
        name = _name(asked.get(CONVERSATION, ""))
        gone = await self._classic.conversations.forget(project.name, name)
        await reply(send, 200, json.encode(Cancellata(gone)), standing.headers())


def _question(request: Richiesta, wants: Wants, bytes_in: int) -> Question:
    parts: list[Part] = []
    attachments: list[Attachment] = []
    remembered: list[str] = []
    content = request.contenuto
    blocks = [wire.Testo(content)] if isinstance(content, str) else content
    for index, block in enumerate(blocks):
        if isinstance(block, wire.Testo):
            parts.append(TextPart(text=block.testo))
            remembered.append(block.testo)
            continue
        found = decode.attachment(block, f"contenuto[{index}]")
        check_permission(found, wants)
        attachments.append(found)
        parts.append(placeholder(found))
        remembered.append(f"[{block.nome or 'documento'}]")
    if not attachments and not any(part.text.strip() for part in parts if isinstance(part, TextPart)):
        raise GatewayError(Reason.CONTENUTO_EMPTY, param="contenuto")
    return Question(
        encode=request.encode,
        parts=tuple(parts),
        text="\n".join(remembered),
        attachments=tuple(attachments),
        conversation=None if request.conversazione is None else _name(request.conversazione),
        max_tokens=decode.clamp(request.max_tokens),
        bytes_in=bytes_in,
    )


def _name(name: str) -> str:
    """What looks the same is the same conversation. Raises GatewayError(INVALID_REQUEST)."""
    name = normalize("NFC", name)
    if not name or name != name.strip() or len(name) > MOST_NAME or not name.isprintable():
        raise GatewayError(Reason.CONVERSATION_NAME, param=CONVERSATION, most=MOST_NAME)
    return name


def _parameters(query: bytes) -> dict[str, str]:
    try:
        found = parse_qs(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict"
        )
    except ValueError:
        raise GatewayError(Reason.INVALID_REQUEST) from None
    return {name: values[0] for name, values in found.items()}


def _risposta(answered: Answered, conversation: str | None) -> Risposta:
    cited = answered.citations
    return Risposta(
        risposta=answered.text,
        conversazione=conversation,
        versione=answered.model.name,
        usage=encode.usage(answered.usage),
        citazioni=UNSET if cited is None else [_citazione(each) for each in cited],
        troncato=True if answered.cut else UNSET,
    )


def _citazione(cited: Citation) -> Citazione:
    return Citazione(
        origine=ORIGINS[cited.origin],
        documento=UNSET if cited.document is None else cited.document,
        pagina=UNSET if cited.page is None else cited.page,
        passo=UNSET if cited.passage is None else cited.passage,
        titolo=UNSET if cited.title is None else cited.title,
        url=UNSET if cited.url is None else cited.url,
    )
