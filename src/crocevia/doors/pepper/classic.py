"""`POST /api.php`: a recipe, a content, perhaps a conversation. `DELETE` forgets a conversation."""

from __future__ import annotations

from unicodedata import normalize

from msgspec import UNSET

from crocevia.asgi.http import ClientGone, Response
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import Part, TextPart
from crocevia.doors.pepper import decode, encode, wire
from crocevia.doors.pepper.caller import Request, identify
from crocevia.doors.pepper.wire_classic import (
    CONVERSATION,
    MOST_NAME,
    ORIGINS,
    Cancellata,
    Citazione,
    Richiesta,
    Risposta,
)
from crocevia.runtime.classic import Citation, Classic, ClassicAnswer, Question
from crocevia.runtime.classic import Reply as Answered
from crocevia.runtime.gateway import Attachment, Wants, check_permission, placeholder


async def ask(classic: Classic, request: Request) -> Response:
    """Refusals come as in the agent call: method, key, size, JSON, project, content, limits."""
    exchange = _open(classic, request)
    with request.on_disconnect(exchange.hang_up):
        answered = await exchange.answer()
    if answered is None:
        raise ClientGone
    return Response(200, _risposta(answered, exchange.conversation))


def _open(classic: Classic, request: Request) -> ClassicAnswer:
    body: Richiesta = request.take()
    assert request.caller is not None
    project = identify(classic.gateway, request, body.progetto or request.caller.named)
    wants = decode.wants(project)
    return classic.open(project, _question(body, wants, request.size), wants)


async def forget(classic: Classic, request: Request) -> Response:
    """Forget a conversation."""
    asked = {name: values[0] for name, values in request.query.items()}
    assert request.caller is not None
    project = identify(classic.gateway, request, request.caller.named or asked.get("progetto"))
    name = _name(asked.get(CONVERSATION, ""))
    return Response(200, Cancellata(await classic.conversations.forget(project.name, name)))


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
