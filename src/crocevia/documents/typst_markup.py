"""CommonMark with tables as the source of a Typst document.

Everything is written in Typst's code mode, where a text is a quoted string: nothing that somebody wrote can become
markup, code or the name of a file. Pictures are named, never loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_SCHEMES: Final = ("http://", "https://", "mailto:")
_MAX_COLUMNS: Final = 64
_RULE: Final = "line(length: 100%, stroke: 0.5pt + luma(60%))"

_PREAMBLE: Final = """\
#set document(title: {title}, date: none)
#set page(paper: "a4", margin: (x: 2.5cm, y: 2.5cm), numbering: "1", number-align: center)
#set text(size: 11pt, font: {fonts}, hyphenate: false)
#set par(leading: 0.7em, spacing: 1.1em)
#show heading: set block(above: 1.6em, below: 0.9em)
#show link: set text(fill: rgb("#1a4f8b"))
#show raw.where(block: true): it => block(fill: luma(245), inset: 8pt, radius: 3pt, width: 100%, it)
#set table(stroke: 0.5pt + luma(70%), inset: 6pt)
#set quote(block: true)
"""
_FONTS: Final = (
    '("Libertinus Serif", "Noto Serif", "Noto Serif CJK SC", "Noto Sans CJK SC", "Noto Sans", "DejaVu Sans", '
    '"Noto Color Emoji", "Noto Emoji")'
)


def markdown(text: str, title: str) -> str:
    """The document of a Markdown text."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(text)
    return _document(title, _Writer().blocks(tokens))


def plain(text: str, title: str) -> str:
    """The document of a plain text: its lines stay lines, and what was aligned with blanks stays aligned."""
    lines = text.expandtabs(4).splitlines()
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line.rstrip())
        else:
            blocks.append([])
    return _document(title, "".join(_paragraph(block) for block in blocks if block))


def quoted(text: str) -> str:
    """A Typst string of this text. Control characters have no shape on paper."""
    kept = "".join(character for character in text if character >= " " or character in "\n\t")
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _document(title: str, body: str) -> str:
    return _PREAMBLE.format(title=quoted(title), fonts=_FONTS) + "#{ []; " + body + "}\n"


def _paragraph(lines: list[str]) -> str:
    if any(line != line.lstrip() or "  " in line.strip() for line in lines):
        return f"block(raw({quoted(chr(10).join(lines))})); "
    return "par({ []; " + "linebreak(); ".join(f"{quoted(line)}; " for line in lines) + "}); "


def _content(inner: str) -> str:
    return "{ []; " + inner + "}"


class _Writer:
    """Tokens come flat: what has begun waits on the stack until its end."""

    def __init__(self) -> None:
        self._stack: list[tuple[Token | None, list[str]]] = [(None, [])]

    def blocks(self, tokens: list[Token]) -> str:
        """The expressions of these tokens."""
        for token in tokens:
            if token.nesting > 0:
                self._stack.append((token, []))
            elif token.nesting < 0:
                opened, parts = self._stack.pop()
                assert opened is not None
                self._add(_CLOSED.get(opened.type, _through)(opened, parts))
            else:
                self._add(_SINGLE.get(token.type, _nothing)(token))
        return "".join(self._stack[0][1])

    def _add(self, part: str) -> None:
        self._stack[-1][1].append(part)


def _through(opened: Token, parts: list[str]) -> str:
    return "".join(parts)


def _call(function: str) -> Callable[[Token, list[str]], str]:
    return lambda opened, parts: f"{function}({_content(''.join(parts))}); "


def _paragraph_end(opened: Token, parts: list[str]) -> str:
    return "".join(parts) if opened.hidden else f"par({_content(''.join(parts))}); "


def _heading(opened: Token, parts: list[str]) -> str:
    return f"heading(level: {int(opened.tag[1:])}, {_content(''.join(parts))}); "


def _list(name: str) -> Callable[[Token, list[str]], str]:
    def end(opened: Token, parts: list[str]) -> str:
        start = f"start: {int(opened.attrs.get('start', 1))}, " if name == "enum" else ""
        return f"{name}({start}{', '.join(parts)}); "

    return end


def _item(opened: Token, parts: list[str]) -> str:
    return _content("".join(parts))


def _link(opened: Token, parts: list[str]) -> str:
    target = str(opened.attrs.get("href", ""))
    inner = _content("".join(parts))
    return f"link({quoted(target)}, {inner}); " if target.lower().startswith(_SCHEMES) else f"{inner}; "


def _cell(opened: Token, parts: list[str]) -> str:
    # An alignment comes as a style that the parser itself writes.
    side = str(opened.attrs.get("style", "")).partition("text-align:")[2]
    align = f"align: {side}, " if side in ("left", "right", "center") else ""
    return f"table.cell({align}{_content(''.join(parts))})"


def _row(opened: Token, parts: list[str]) -> str:
    return ", ".join(parts) + "\0" + str(len(parts)) + "\0"


def _table(opened: Token, parts: list[str]) -> str:
    pieces = "".join(parts).split("\0")
    rows, widths = pieces[:-1:2], pieces[1::2]
    columns = int(widths[0])
    if columns > _MAX_COLUMNS:  # no page is wide enough
        return f"par({quoted('…')}); "
    return f"table(columns: {columns}, table.header({rows[0]}), {', '.join(rows[1:])}); "


_CLOSED: Final[dict[str, Callable[[Token, list[str]], str]]] = {
    "paragraph_open": _paragraph_end,
    "heading_open": _heading,
    "bullet_list_open": _list("list"),
    "ordered_list_open": _list("enum"),
    "list_item_open": _item,
    "blockquote_open": _call("quote"),
    "em_open": _call("emph"),
    "strong_open": _call("strong"),
    "s_open": _call("strike"),
    "link_open": _link,
    "table_open": _table,
    "tr_open": _row,
    "th_open": _cell,
    "td_open": _cell,
}


def _nothing(token: Token) -> str:
    return ""


def _text(token: Token) -> str:
    return f"{quoted(token.content)}; " if token.content else ""


def _code(token: Token) -> str:
    return f"raw({quoted(token.content)}); "


def _code_block(token: Token) -> str:
    words = token.info.split()
    lang = f", lang: {quoted(words[0][:40])}" if words else ""
    return f"raw({quoted(token.content.rstrip(chr(10)))}, block: true{lang}); "


def _picture(token: Token) -> str:
    return f"emph({quoted(token.content or str(token.attrs.get('src', ''))[:200])}); "


def _inline(token: Token) -> str:
    return _Writer().blocks(token.children or [])


_SINGLE: Final[dict[str, Callable[[Any], str]]] = {
    "inline": _inline,
    "text": _text,
    "softbreak": lambda token: '" "; ',
    "hardbreak": lambda token: "linebreak(); ",
    "code_inline": _code,
    "code_block": _code_block,
    "fence": _code_block,
    "image": _picture,
    "hr": lambda token: f"{_RULE}; ",
}
