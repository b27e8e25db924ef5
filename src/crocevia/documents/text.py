"""Text files to text, and a fence around text that nobody vouches for."""

from __future__ import annotations

import codecs
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterator

_SAMPLE = 256 * 1024
_WINDOW = 1 << 15
_ASCII = bytes(range(128))
_FEW = 8
_LONGEST = 1024  # characters; more than any pattern here can match
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Text codecs of the standard library that are no charset of a file: they run escapes or name rules over it.
_REFUSED_CODECS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7"})

OPENING = "EXTERNAL_UNTRUSTED_CONTENT"
CLOSING = "END_EXTERNAL_UNTRUSTED_CONTENT"

_GAP = r"[\s_\-]{0,8}"
_LOOK_ALIKE = re.compile(
    rf"(?:<{{1,3}}\s{{0,8}})?(?:(END){_GAP})?{_GAP.join('EXTERNALUNTRUSTEDCONTENT')}(?:[^<>\n]{{0,200}}>{{1,3}})?",
    re.IGNORECASE,
)
_SPECIAL = re.compile(
    r"<\|[A-Za-z0-9_./ -]{1,64}\|>|\[/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?s>|<(?:start|end)_of_turn>|<bos>|<eos>|<pad>|<unk>",
    re.IGNORECASE,
)
_FILE_TAG = re.compile(r"<\s{0,8}/\s{0,8}file\s{0,8}>|<(?=\s{0,8}/?\s{0,8}file\b)", re.IGNORECASE)
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
    return f'<file name="{escape(name)}">{note}</file>'


def neutralise(text: str) -> str:
    """`text` without anything that reads like our markers, a model's control tokens or the end of a file block."""
    text = _replace_folded(text, _LOOK_ALIKE, lambda match: f"[[{'END_' if match[1] else ''}MARKER_SANITIZED]]")
    text = _replace_folded(text, _SPECIAL, lambda _: "[REMOVED_SPECIAL_TOKEN]")
    return _replace_folded(text, _FILE_TAG, lambda match: "&lt;" if len(match[0]) == 1 else "&lt;/file&gt;")


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
        except (UnicodeError, LookupError):
            continue
    return data.decode(_detected(data), "replace")


def _declared(content_type: str | None) -> str | None:
    found = _CHARSET.search(content_type or "")
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1]).name
    except LookupError:
        return None
    return None if name.replace("-", "_") in _REFUSED_CODECS else name


def _detected(data: bytes) -> str:
    from charset_normalizer import from_bytes

    high = len(data.translate(None, _ASCII))
    if high < _FEW and len(data) > 2 * high:  # letters of ours with a few accents: too little to tell languages by
        return "cp1252"
    # Without a byte order mark nobody writes UTF-16: any four letters would be two signs of it.
    matches = from_bytes(data[:_SAMPLE], cp_exclusion=["utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_7"])
    best = matches.best()
    # Between equals the detector takes the first name in the alphabet, which makes «più» «piů».
    western = any("cp1252" in match.could_be_from_charset and match.chaos <= best.chaos for match in matches if best)
    return "cp1252" if best is None or western else best.encoding


def _replace_folded(text: str, pattern: re.Pattern[str], put: Callable[[re.Match[str]], str]) -> str:
    """Replace what `pattern` finds in the folded text, in the text itself, whose other characters stay as they are."""
    plain = {} if text.isascii() else {sign: _plain(sign) for sign in set(text)}
    folded = text.translate({ord(sign): fold for sign, fold in plain.items()}) if plain else text
    found = list(_scan(pattern, folded))
    if not found:
        return text
    # Where each folded character came from; only texts that do hold a look-alike pay for this.
    places = [place for place, sign in enumerate(text) for _ in plain[sign]] if plain else range(len(text))
    out: list[str] = []
    at = 0
    for match in found:
        start, end = places[match.start()], places[match.end() - 1] + 1
        out += (text[at:start], put(match))
        at = max(at, end)
    return "".join([*out, text[at:]])


def _scan(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """`finditer` in short steps: one search holds the interpreter's lock, and with it the event loop, until it ends."""
    at = 0
    while at < len(text):
        match = pattern.search(text, at, at + _WINDOW + _LONGEST)
        if match is None or match.start() >= at + _WINDOW:
            at += _WINDOW
        else:
            yield match
            at = match.end()


def _plain(sign: str) -> str:
    """What a reader takes a character for: full-width letters narrow, brackets plain, invisible ones nothing."""
    if sign.isascii():
        return sign
    if unicodedata.category(sign) in ("Cf", "Mn", "Me"):
        return ""
    return unicodedata.normalize("NFKC", sign.translate(_FOLDED_ANGLES))
