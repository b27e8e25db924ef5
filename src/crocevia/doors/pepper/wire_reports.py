"""The wire of what Pepper says about itself and about a request: `/capacita.php`, `/agent/verifica`."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.errors import Word

# How a model's reasoning, and a lost piece of it, are called on the wire.
REASONING: Final = {"off": "spento", "on": "acceso", "always": "sempre"}
LOSSES: Final = {
    "missing": ("blocchi_mancanti", Word.REASONING_LOST_MISSING),
    "edited": ("blocchi_modificati", Word.REASONING_LOST_EDITED),
    "unrecognised": ("blocchi_sconosciuti", Word.REASONING_LOST_UNRECOGNISED),
    "other_engine": ("altro_motore", Word.REASONING_LOST_OTHER_ENGINE),
    "history_changed": ("cronologia_cambiata", Word.REASONING_LOST_HISTORY_CHANGED),
}


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """abilitati: the project may send them. accettati: the model can be given them. `massimo` counts both kinds."""

    abilitati: bool
    accettati: bool
    massimo: int
    megabyte: int
    tipi: list[str]


class Documents(Files, frozen=True, kw_only=True):
    """interi: the model reads the file itself; else it is given its text and pictures of its pages."""

    pagine: int
    interi: bool


class MaxTokens(msgspec.Struct, frozen=True, kw_only=True):
    predefinito: int
    minimo: int
    massimo: int


class Pepper(msgspec.Struct, frozen=True, kw_only=True):
    """What the project's model can do. citazioni, ricerca_web: on `/api.php` only."""

    versione: str
    novita: str | None
    voce_nelle_app: bool
    ragionamento: str
    riserva: str | None
    contesto: int | None
    max_tokens: MaxTokens
    streaming: bool
    attrezzi: bool
    blocchi: bool
    documenti: Documents
    immagini: Files
    citazioni: bool
    ricerca_web: bool


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Null: there is no such limit."""

    richieste_ora: int | None
    spesa_giorno_usd: float | None
    contemporanee: int | None
    corpo_megabyte: int


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    progetto: str
    modalita: str
    pepper: Pepper
    limiti: Limits


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why `/agent` would refuse. campo: a path into the request, if one place is to blame."""

    stato: int
    codice: str
    campo: str | None
    spiegazione: str


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A message whose reasoning would not go back to the model."""

    messaggio: int
    motivo: str
    spiegazione: str


class Answerer(msgspec.Struct, frozen=True, kw_only=True):
    """Who would answer. al_posto_di: the project's model, when its reserve would."""

    versione: str
    al_posto_di: str | None
    riserva: str | None
    ragiona: bool
    max_tokens: int


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """token_ingresso: estimated, on the safe side."""

    byte: int
    messaggi: int
    attrezzi: int
    allegati: int
    token_ingresso: int
    contesto: int | None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """massimo_usd: null when nobody knows the price. Budgets are null where the project has none."""

    massimo_usd: float | None
    budget_usd: float | None
    residuo_usd: float | None
    residuo_dopo_usd: float | None
    basta: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Fields below `problemi` are null when the request is too broken to tell."""

    accettata: bool
    problemi: list[Problem]
    ragionamento_perso: list[Lost]
    app_senza_blocchi: bool
    istruzioni: str | None
    risponde: Answerer | None
    dimensione: Size
    costo: Cost | None


class KitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What of the kit: a file by its short name, else the name of a project's model, else the version."""

    f: str | None = None
    progetto: str | None = None
