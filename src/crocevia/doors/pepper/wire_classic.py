"""The wire of the classic API, word for word."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from crocevia.doors.pepper.wire import Documento, Testo, Usage

CONVERSATION: Final = "conversazione"  # also the parameter of a deletion
MOST_NAME: Final = 200

# How `origine` calls the origins of a citation.
ORIGINS: Final = {"engine": "motore", "text": "testo", "web": "web"}


class Richiesta(msgspec.Struct, frozen=True):
    """What is asked. The project may come as header instead."""

    encode: str
    contenuto: str | list[Testo | Documento]
    progetto: str | None = None
    conversazione: str | None = None
    max_tokens: int | float | None = None


class Citazione(msgspec.Struct, frozen=True, kw_only=True):
    """origine: `motore` (the model's provider says so), `testo` (found by Crocevia in the extracted text), `web`."""

    origine: str
    documento: str | UnsetType = UNSET
    pagina: int | UnsetType = UNSET
    passo: str | UnsetType = UNSET
    titolo: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class Risposta(msgspec.Struct, frozen=True, kw_only=True):
    """`citazioni` is there when there was something to cite from; `troncato` only when it is true."""

    risposta: str
    conversazione: str | None
    versione: str
    usage: Usage
    citazioni: list[Citazione] | UnsetType = UNSET
    troncato: bool | UnsetType = UNSET


class Cancellazione(msgspec.Struct, frozen=True):
    """Which conversation. The project may come as header instead."""

    conversazione: str
    progetto: str | None = None


class Cancellata(msgspec.Struct, frozen=True):
    """Whether there was a conversation of that name."""

    cancellata: bool
