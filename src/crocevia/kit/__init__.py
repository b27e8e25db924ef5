"""The chat kit: two files that a browser loads, and what there is to know about them.

The script is written in parts: `parts/*.js`, one after the other in the order of their names, are `pepper-chat.js`.
Joining is all that is done to them, so that `cat` makes the same file.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

RELEASE: Final = "1.0.0"


class KitFile(msgspec.Struct, frozen=True):
    """One file as it is served. `etag` comes with its quotes."""

    name: str
    media_type: str
    content: bytes
    etag: str


class Switch(msgspec.Struct, frozen=True):
    """One of `funzioni`: what it turns on, in both languages of the panel."""

    name: str
    default: bool
    en: str
    it: str


# The script has the same names and defaults; a test compares them.
SWITCHES: Final = (
    Switch(
        "allegati",
        False,
        "Attach PDFs and photos: button, drop and paste.",
        "Allega PDF e foto: pulsante, trascinamento e incolla.",
    ),
    Switch(
        "lettura",
        False,
        "A button on every answer that reads it aloud, with the browser's own voice.",
        "Un pulsante su ogni risposta che la legge ad alta voce, con la voce del browser.",
    ),
    Switch(
        "microfono",
        False,
        "Push to talk: hold the button, speak, let go. Only where the browser can listen.",
        "Premi e parla: tieni premuto, parla, lascia. Solo dove il browser sa ascoltare.",
    ),
    Switch(
        "conferme",
        False,
        "Approve and deny buttons for the actions of a `pending` event.",
        "I pulsanti Approva e Nega per le azioni di un evento `pending`.",
    ),
    Switch(
        "nuova",
        False,
        "The «New chat» button. Your server deletes the history, told by `nuova.quando` or by a request.",
        "Il pulsante «Nuova chat». La cronologia la cancella il tuo server: lo avvisa `nuova.quando`, o una richiesta.",
    ),
    Switch(
        "novita",
        True,
        "A line that says what is new when the model has changed.",
        "Una riga che dice cosa c'è di nuovo quando il modello è cambiato.",
    ),
)

_FILES: Final = {
    "js": ("pepper-chat.js", "text/javascript", "parts"),
    "css": ("pepper-chat.css", "text/css", "pepper-chat.css"),
}


@cache
def load() -> dict[str, KitFile]:
    """The files by what `?f=` calls them. Read once: a served kit changes with its server."""
    return {short: _read(*file) for short, file in _FILES.items()}


@cache
def version() -> str:
    """Release and a digest of both files: another kit has another version, whatever its release says."""
    together = hashlib.sha256(b"\0".join(file.content for file in load().values()))
    return f"{RELEASE}+{together.hexdigest()[:10]}"


def _read(name: str, media_type: str, source: str) -> KitFile:
    found = files("crocevia.kit").joinpath(source)
    parts = sorted(found.iterdir(), key=lambda part: part.name) if found.is_dir() else [found]
    content = b"".join(part.read_bytes() for part in parts if part.name.endswith((".js", ".css")))
    return KitFile(name, f"{media_type}; charset=utf-8", content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
