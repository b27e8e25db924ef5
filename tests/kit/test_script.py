"""The pure half of the kit in Node: Markdown is built, never parsed as HTML; streamed and whole texts look the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia import kit
from tests.kit.node import PARTS, node_or_skip, run_js, script

TAGS = {
    *("p", "br", "hr", "strong", "em", "del", "code", "pre", "a", "ul", "ol", "li", "blockquote", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"href", "target", "rel", "start", "scope", "tabindex"}


def trees(*texts: str) -> list[list[Any]]:
    found: list[list[Any]] = run_js("return given.map((text) => kit.markdown(text));", list(texts))
    return found


def shape(node: Any) -> str:
    """A tree on one line: `p(Hello strong(you))`."""
    if isinstance(node, str):
        return node
    inner = "".join(shape(child) for child in node.get("c", []))
    return "/" if node["t"] == "br" else f"{node['t']}({inner})"


def shown(text: str) -> str:
    return "".join(shape(node) for node in trees(text)[0])


def nodes(tree: Any) -> list[dict[str, Any]]:
    return [] if isinstance(tree, str) else [tree, *(found for child in tree.get("c", []) for found in nodes(child))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a **b** c", "p(a strong(b) c)"),
        ("a *b* _c_ ~~d~~ `e`", "p(a em(b) em(c) del(d) code(e))"),
        ("***both***", "p(strong(em(both)))"),
        ("snake_case_name 2*3*4", "p(snake_case_name 2em(3)4)"),
        ("2 * 3 * 4", "p(2 * 3 * 4)"),
        (r"\*plain\*", "p(*plain*)"),
        ("**never closed", "p(**never closed)"),
        ("# Title\ntext", "p(Title)p(text)"),
        ("- a\n- b\n  - c\n\n1. d", "div(ul(li(a)li(bul(li(c))))ol(li(d)))"),
        ("> q\n> r\n\ns", "blockquote(p(q/r))p(s)"),
        ("|a|b|\n|-|:-:|\n|1|**2**|", "div(table(thead(tr(th(a)th(b)))tbody(tr(td(1)td(strong(2))))))"),
        ("```js\n**x**\n<b>\n```\ny", "pre(code(**x**\n<b>))p(y)"),
        ("[x](https://a.it) https://b.it/c.", "p(a(x) a(https://b.it/c).)"),
        ("![x](https://a.it/p.png)", "p(a(x))"),
        ("[a [b](https://c.it) d](https://e.it)", "p(a(a b d))"),
        ("one\ntwo\n\nthree", "p(one/two)p(three)"),
        ("---", "hr()"),
    ],
)
def test_the_documented_formatting_and_nothing_else(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ciao. Come va? Bene!", "p(Ciao./Come va?/Bene!)"),
        ("**Attento. Molto.** Poi vai.", "p(strong(Attento./Molto.)/Poi vai.)"),
        ("Il dott. Rossi, il sig. Bianchi e A. Verdi.", "p(Il dott. Rossi, il sig. Bianchi e A. Verdi.)"),
        ("Costa 3.5 euro, p.es. Oggi.", "p(Costa 3.5 euro, p.es. Oggi.)"),
        ("Aspetta… poi arriva. 🙂 Sì.", "p(Aspetta… poi arriva./🙂 Sì.)"),
        ("«Vieni.» Disse così.", "p(«Vieni.»/Disse così.)"),
        ("Leggi `a. B` adesso. Poi no.", "p(Leggi code(a. B) adesso./Poi no.)"),
        ("- Primo. Secondo.", "ul(li(Primo./Secondo.))"),
    ],
)
def test_a_new_line_after_every_sentence(text: str, expected: str) -> None:
    assert shown(text) == expected


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://a.it/1)",
    "[x](//evil.example)",
    "[x](/relative)",
    "[x](https:evil.example)",
    "[x](http://)",
    '[x](https://a.it" onmouseover="alert(1))',
    "[x](https://a.it 'on' onclick=alert(1))",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    "<a href='javascript:alert(1)'>x</a>",
    "javascript:alert(1) jhttps://x",
    "`<img src=x>` **<b onclick=x>**",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "|<script>|b|\n|-|-|\n|<img src=x onerror=1>|[x](javascript:1)|",
    "> <iframe src=javascript:alert(1)>",
    "- <style>@import 'https://evil.example'</style>",
    "# <base href=https://evil.example>",
    "[**<img>**](javascript:x)",
    "\u202e[x](https://a.it)\u0000<x>",
    "__proto__ [constructor](https://a.it) {{7*7}} ${1}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_model_writes_is_text_or_a_link_to_a_web_page(text: str) -> None:
    for tree in trees(text)[0]:
        for node in nodes(tree):
            assert node["t"] in TAGS and set(node.get("a", {})) <= ATTRIBUTES
            if node["t"] == "a":
                assert re.match(r"https?://[^/]", node["a"]["href"])
                assert "noopener" in node["a"]["rel"]


PIECES = [
    *("**", "*", "_", "__", "`", "``", "```\n", "~~", "[", "](", "](https://a.it)", "!", "\\", "https://b.it/x?y=1"),
    *("\n", "\n\n", "- ", "1. ", "  - ", "> ", "# ", "---\n", "|a|b|\n", "|-|-|\n", "| c | d |\n", "\r\n", " "),
    *("parola ", "Frase. ", "Dott. Rossi ", "è", "🙂", "fine.", "x_y_z ", "\t", "~~~\n", "<b>", "A. ", "(", ")"),
]
# What the kit does in the browser: read on from the stable place, and draw the rest again.
STREAMED = """
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
return given.filter(({text, cuts}) => {
  const drawn = [];
  let read = 0;
  let goesOn = null;
  let loose = [];
  for (const end of cuts.concat([text.length])) {
    const {blocks, stable, goes} = kit.splitBlocks(text.slice(read, end), goesOn);
    drawn.push(...blocks.filter((block) => block.firm).map((block) => kit.blockTree(block, false)));
    loose = blocks.filter((block) => !block.firm).map((block) => kit.blockTree(block, end < text.length));
    read += stable;
    goesOn = goes;
  }
  return !same(drawn.concat(loose), kit.markdown(text));
});
"""


def cases(text: str, cuts: list[int]) -> dict[str, Any]:
    units = len(text.encode("utf-16-le")) // 2
    return {"text": text, "cuts": sorted({cut % (units + 1) for cut in cuts} - {units})}


texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
cut_places = st.lists(st.integers(0, 10_000), max_size=12)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.builds(cases, texts, cut_places), min_size=400, max_size=400))
def test_a_text_looks_the_same_however_it_was_cut_into_deltas(rows: list[dict[str, Any]]) -> None:
    assert run_js(STREAMED, rows) == []


repeated = st.tuples(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), st.integers(1, 900))
long_texts = st.lists(repeated, min_size=1, max_size=6).map(
    lambda runs: "".join(piece * times for piece, times in runs)[:40_000]
)
far_cuts = st.lists(st.integers(0, 40_000), max_size=12)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.builds(cases, long_texts, far_cuts), min_size=40, max_size=40))
def test_what_is_too_long_to_be_drawn_at_once_is_cut_at_the_same_places(rows: list[dict[str, Any]]) -> None:
    assert run_js(STREAMED, rows) == []


@pytest.mark.parametrize("piece", ["a ", "a", "a\n", "- a\n", "  - a\n", "> a\n", "| a | b |\n", "🙂"])
@pytest.mark.parametrize("begin", ["", "- ", "> ", "# ", "```\n", "| a |\n|-|\n| ", "- a\n\n", "| a | b |\n|-|-|\n"])
def test_no_block_is_larger_than_what_is_drawn_in_one_frame(begin: str, piece: str) -> None:
    longest = run_js(
        "return Math.max(...kit.splitBlocks(given).blocks.map((block) => block.lines.join('').length));",
        begin + piece * 20_000,
    )
    assert longest <= 12_000


def test_every_single_cut_of_a_rich_text_gives_the_same_picture() -> None:
    text = (
        "# T\n\nUno **due. Tre** `q` [l](https://a.it/b).\n\n- a\n  - b\n\n- c\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n"
        "> cita\n\n```py\n# no\n```\n---\n" + "Frase lunga. " * 1500 + "\n1. z\n"
    )
    singles = [{"text": text, "cuts": [cut]} for cut in range(300)]
    longer = [{"text": text, "cuts": [cut]} for cut in range(7_900, len(text), 997)]
    assert run_js(STREAMED, [*singles, *longer, {"text": text, "cuts": list(range(0, len(text), 13))}]) == []


@pytest.mark.parametrize(
    "piece",
    ["*", "**a", "_a_", "[", "![", "](", "[a](", "`", "``` ", "~~", "\\", "h", "https://", ".", "! ", "|", "> "],
)
def test_no_text_costs_more_than_its_length(piece: str) -> None:
    """A quadratic reader would take minutes for these."""
    milliseconds = run_js(
        "const text = given.repeat(200000 / given.length); const t = Date.now(); kit.markdown(text); "
        "kit.sentences(text); return Date.now() - t;",
        piece,
    )
    assert milliseconds < 5_000


def test_a_line_of_megabytes_is_one_event() -> None:
    program = """
      let got = 0;
      const feed = kit.eventParser((name, data) => (got += data.length));
      const text = "event: tool_call\\ndata: " + "x".repeat(5e6) + "\\n\\n";
      for (let at = 0; at < text.length; at += 1000) feed(text.slice(at, at + 1000));
      return got;
    """
    assert run_js(program) == 5_000_000


def test_a_line_without_end_is_given_up() -> None:
    program = """
      const feed = kit.eventParser(() => {});
      try { for (;;) feed("x".repeat(1 << 20)); } catch (error) { return error.message; }
    """
    assert "too long" in run_js(program)


def test_both_languages_say_the_same_things() -> None:
    texts = run_js("return kit.TEXTS;")
    assert set(texts) == {"it", "en"} and set(texts["it"]) == set(texts["en"])
    for key in texts["it"]:
        assert texts["it"][key] and texts["en"][key]
        assert set(re.findall(r"\{\w+\}", texts["it"][key])) == set(re.findall(r"\{\w+\}", texts["en"][key])), key
    used = set(re.findall(r"""(?:words|w|button|label)\((?:\w+, )?"(\w+)\"""", script().read_text(encoding="utf-8")))
    assert used <= set(texts["it"]), used - set(texts["it"])


def test_the_switches_of_the_script_are_those_of_the_documentation() -> None:
    found = re.search(r"const SWITCHES = \{(.*?)\};", script().read_text(encoding="utf-8"))
    assert found
    pairs = dict(pair.strip().split(": ") for pair in found.group(1).split(",") if pair.strip())
    assert pairs == {switch.name: str(switch.default).lower() for switch in kit.SWITCHES}


@pytest.mark.parametrize("part", sorted(PARTS.glob("*.js")), ids=lambda part: part.name)
def test_a_part_is_short_and_a_script_of_its_own(part: Path, tmp_path: Path) -> None:
    text = part.read_text(encoding="utf-8")
    assert text.count("\n") <= 400 and text.endswith("\n")
    if part.name in ("00_begin.js", "99_end.js"):  # the two halves of the function around the others
        text = "(function () {" + text.replace("(function () {", "").replace("})();", "") + "})();"
    (tmp_path / part.name).write_text(text, encoding="utf-8")
    ran = subprocess.run([node_or_skip(), "--check", str(tmp_path / part.name)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_parts_together_are_one_script() -> None:
    ran = subprocess.run([node_or_skip(), "--check", str(script())], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_nothing_in_the_script_turns_text_into_markup_or_code() -> None:
    source = script().read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
    ):
        assert word not in code
    assert not re.search(r"""setAttribute\("(on|style)|\.style\b""", code)
