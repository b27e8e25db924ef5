"""Text files to text, and a fence around text that nobody vouches for."""

from __future__ import annotations

import codecs
import re
import secrets
import unicodedata
from collections.abc import Callable

_SAMPLE = 256 * 1024
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Names a caller may give: the standard library also knows codecs that run code pages of rot13, zip and punycode.
_REFUSED_CODECS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7", "utf-7"})

OPENING = "EXTERNAL_UNTRUSTED_CONTENT"
CLOSING = "END_EXTERNAL_UNTRUSTED_CONTENT"

_GAP = r"[\s_\-]*"
_ANGLES = r"[<>\[\](){}]"
_WORDS = r"(END)?" + _GAP + _GAP.join("EXTERNAL") + _GAP + _GAP.join("UNTRUSTED") + _GAP + _GAP.join("CONTENT")
_LOOK_ALIKE = re.compile(_WORDS.replace(_GAP, r"[\s_\-]{0,8}"), re.IGNORECASE)
_SPECIAL = re.compile(
    r"<\|[A-Za-z0-9_./ -]{1,64}\|>|\[/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?s>|<(?:start|end)_of_turn>|<bos>|<eos>|<pad>|<unk>",
    re.IGNORECASE,
)
_FILE_TAG = re.compile(r"<(/?)(?=\s{0,8}file\b)", re.IGNORECASE)
_FOLDED_ANGLES = str.maketrans(dict.fromkeys("‹〈〈⟨⟪《❮❰⧼﹤＜", "<") | dict.fromkeys("›〉〉⟩⟫》❯❱⧽﹥＞", ">"))


def decode_text(data: bytes, content_type: str | None) -> str:
    """The text of a file: by its byte order mark, its declared charset, as UTF-8, else by detection. Never raises.

    Line ends become LF. Takes CPU time in proportion to the size: not for an event loop.
    """
    text = _decode(data, content_type)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def cut(text: str, max_chars: int) -> str:
    """At most `max_chars` characters, with a last line that says so when there were more."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}\n[cut after {max_chars} characters]"


def fence(text: str, name: str) -> str:
    """`text` as data inside a named block whose marker cannot be guessed, with look-alikes inside made harmless."""
    mark = secrets.token_hex(8)
    return (
        f'<file name="{escape(name)}">\n\n<<<{OPENING} id="{mark}">>>\nSource: External\n---\n'
        f'{neutralise(text)}\n<<<{CLOSING} id="{mark}">>>\n</file>'
    )


def placeholder(note: str, name: str) -> str:
    """A block without content of the file's own: what we say in its place."""
    return f'<file name="{escape(name)}">[{note}]</file>'


def neutralise(text: str) -> str:
    """`text` without anything that reads like our markers, a model's control tokens or the end of a file block."""
    text = _replace_folded(text, _LOOK_ALIKE, lambda match: f"[[{'END_' if match[1] else ''}MARKER_SANITIZED]]")
    text = _replace_folded(text, _SPECIAL, lambda _: "[REMOVED_SPECIAL_TOKEN]")
    return _replace_folded(text, _FILE_TAG, lambda match: "&lt;" + match[1])


def escape(name: str) -> str:
    """A file name for an attribute."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _decode(data: bytes, content_type: str | None) -> str:
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return data.decode(charset, "replace")
    for charset in filter(None, (_declared(content_type), "utf-8")):
        try:
            return data.decode(charset)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode(_detected(data), "replace")


def _declared(content_type: str | None) -> str | None:
    found = _CHARSET.search(content_type or "")
    if found is None or found[1].lower() in _REFUSED_CODECS:
        return None
    try:
        known = codecs.lookup(found[1])
    except LookupError:
        return None
    return known.name if known._is_text_encoding else None


def _detected(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    return best.encoding if best is not None else "cp1252"


def _replace_folded(text: str, pattern: re.Pattern[str], put: Callable[[re.Match[str]], str]) -> str:
    """Replace what `pattern` finds in the folded text, in the text itself, whose other characters stay as they are."""
    if text.isascii():
        return pattern.sub(put, text)
    folded, places = _fold(text)
    out: list[str] = []
    at = 0
    for match in pattern.finditer(folded):
        start, end = places[match.start()], places[match.end() - 1] + 1
        out += (text[at:start], put(match))
        at = end
    return "".join([*out, text[at:]])


def _fold(text: str) -> tuple[str, list[int]]:
    """What a reader would take the text for: full-width letters narrow, brackets plain, invisible characters gone.

    Returns the folded text and, for each of its characters, where it came from.
    """
    folded: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        plain = sign if sign.isascii() else _plain(sign)
        folded.append(plain)
        places.extend([place] * len(plain))
    return "".join(folded), places


def _plain(sign: str) -> str:
    if unicodedata.category(sign) in ("Cf", "Mn", "Me"):
        return ""
    return unicodedata.normalize("NFKC", sign.translate(_FOLDED_ANGLES))
