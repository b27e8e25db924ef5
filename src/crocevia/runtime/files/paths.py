"""What a path and a text of a workspace may be. Paths are absolute inside the workspace and in one Unicode form."""

from __future__ import annotations

import unicodedata
from typing import Final

from crocevia.core.errors import GatewayError, Reason

MAX_PATH: Final = 1024  # characters
MAX_NAME: Final = 255  # bytes: what file systems take
MAX_DEPTH: Final = 64  # folders in each other: deleting them holds one descriptor for each
MAX_BYTES: Final = 1_048_576
MAX_LINES: Final = 1000
MAX_MEMORY: Final = 12_000  # characters of /MEMORY.md
MEMORY: Final = "/MEMORY.md"
INCOMING: Final = "incoming"  # beside the workspaces, on their file system: what is not in place yet, or not any more
_REFUSED: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, lone surrogates, line and paragraph separators


def split(path: str) -> tuple[str, ...]:
    """The names on the way to `path`; none for the root. What looks the same is the same: names come back in NFC.

    Raises GatewayError(INVALID_REQUEST) for a path that no workspace has.
    """
    whole = unicodedata.normalize("NFC", path)
    if not _is_plain(whole):
        raise _wrong()
    if whole == "/":
        return ()
    names = tuple(whole[1:].split("/"))
    if len(names) > MAX_DEPTH or not all(map(_is_name, names)):
        raise _wrong()
    return names


def check_text(path: str, text: str) -> None:
    """Raises GatewayError(INVALID_REQUEST) for a content that no file may have."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise GatewayError(Reason.FILE_NOT_TEXT, param="content") from None
    if size > MAX_BYTES:
        raise GatewayError(Reason.FILE_TOO_LARGE, limit=MAX_BYTES)
    if not text or text.count("\n") >= MAX_LINES + text.endswith("\n"):
        raise GatewayError(Reason.FILE_LIMITS, param="content", lines=MAX_LINES)
    if path == MEMORY and len(text) > MAX_MEMORY:
        raise GatewayError(Reason.MEMORY_LIMIT, param="content", limit=MAX_MEMORY)


def _is_plain(path: str) -> bool:
    return (
        path.startswith("/")
        and len(path) <= MAX_PATH
        and "\\" not in path
        and ".." not in path
        and not any(unicodedata.category(character) in _REFUSED for character in path)
    )


def _is_name(name: str) -> bool:
    return name not in ("", ".") and len(name.encode()) <= MAX_NAME


def _wrong() -> GatewayError:
    return GatewayError(Reason.PATH_WRONG, param="path")
