"""Every code as this door says it, and the answer that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crocevia.asgi.http import Response
from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render
from crocevia.doors.pepper import wire

# The words are the closed set of the specification, plus `non_trovato` for addresses it does not know. Codes that
# it has no row for take the nearest row, so that an app never meets a word that it cannot have been written for.
TABLE: Final[Mapping[Code, tuple[int, str]]] = {
    Code.INVALID_REQUEST: (400, "richiesta_non_valida"),
    Code.UNSUPPORTED: (400, "richiesta_non_valida"),
    Code.CONFLICT: (400, "richiesta_non_valida"),
    Code.UNAUTHENTICATED: (401, "non_autorizzato"),
    Code.FORBIDDEN: (401, "non_autorizzato"),
    Code.AGENT_NOT_ENABLED: (403, "agente_non_abilitato"),
    Code.DOCUMENTS_NOT_ENABLED: (403, "documenti_non_abilitati"),
    Code.IMAGES_NOT_ENABLED: (403, "immagini_non_abilitate"),
    Code.NOT_FOUND: (404, "non_trovato"),
    Code.METHOD_NOT_ALLOWED: (405, "metodo_non_valido"),
    Code.TOO_LARGE: (413, "richiesta_troppo_grande"),
    Code.REFUSED: (422, "richiesta_rifiutata"),
    Code.RATE_LIMITED: (429, "troppe_richieste"),
    Code.CONCURRENCY_LIMITED: (429, "troppe_richieste"),
    Code.BUDGET_EXHAUSTED: (429, "budget_esaurito"),
    Code.UPSTREAM_FAILED: (502, "errore_ai"),
    Code.UPSTREAM_OVERLOADED: (502, "errore_ai"),
    Code.UPSTREAM_TIMEOUT: (502, "errore_ai"),
    Code.UPSTREAM_REJECTED: (502, "errore_ai"),
    Code.MODEL_UNPRICED: (503, "servizio_non_disponibile"),
    Code.UNAVAILABLE: (503, "servizio_non_disponibile"),
    Code.DRAINING: (503, "servizio_non_disponibile"),
    Code.INTERNAL: (503, "servizio_non_disponibile"),
}


def failure(error: GatewayError) -> wire.Failure:
    """Code and sentence, without the status."""
    return wire.Failure(TABLE[error.code][1], render(error.message, "it"))


def refuse(error: GatewayError) -> Response:
    """The answer that carries the error."""
    return Response(TABLE[error.code][0], wire.Refusal(failure(error)))
