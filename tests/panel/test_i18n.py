"""Both languages say the same things, every sentence is used, and templates hold no text of their own."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

from crocevia.panel import formats, i18n
from crocevia.panel.icons import ICONS
from crocevia.panel.render import NAVIGATION, NOTICES

PANEL = Path(str(files("crocevia.panel")))
TEMPLATES = sorted((PANEL / "templates").glob("*.html"))
SOURCES = [*TEMPLATES, *sorted(PANEL.rglob("*.py"))]
# Families whose last part comes from a value.
MADE = (
    "step.",
    "chats.state.",
    "webhooks.state.",
    "webhooks.kind.",
    "mcp.states.",
    "mcp.failure.",
    "field.",
    "help.",
    "option.",
    "group.",
    "outcome.",
    "ended.",
    "origin.",
    "audit.actions.",
    "audit.kinds.",
)
FAMILIES = (*MADE, "nav.", "notice.", "usage.", "period.", "overlap.", "keys.days_", "keys.", "api.", "overview.by_")


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys_arguments_and_no_empty_sentence() -> None:
    italian, english = i18n.messages("it"), i18n.messages("en")
    assert italian.keys() == english.keys()
    for key, text in english.items():
        assert text.strip() and italian[key].strip(), key
        assert _names(text) == _names(italian[key]), key


def test_every_key_that_is_said_exists_and_every_one_that_exists_is_said() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    said = set(re.findall(r'\bt\("([a-z_.A-Z0-9]+)"[,)]', text))
    known = {re.sub(r"\.(one|other)$", "", key) for key in i18n.messages("en")}
    plurals = {key for key in known if f"{key}.one" in i18n.messages("en")}
    assert said - known - plurals == set()
    made = {key for key in known if key.startswith(FAMILIES) or re.fullmatch(r"\w+\.(title|new|one|remove_help)", key)}
    made |= {"projects", "recipes", "models", "engines", "agents", "teams"}
    made |= {"entry.setup", "entry.login", "layout.auto", "layout.light", "layout.dark"}
    made |= {"models.example_question", "models.example_round"}
    assert known - said - made == set()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_no_words_of_its_own(path: Path) -> None:
    text = re.sub(r"\{[{%#].*?[}%#]\}", "", path.read_text(encoding="utf-8"), flags=re.S)
    bare = re.sub(r"<[^>]*>", " ", text)
    found = set(re.findall(r"[A-Za-zÀ-ú]{3,}", bare)) - {"Crocevia", "Italiano", "English", "funzioni"}
    assert not found


def test_the_navigation_has_at_most_nine_entries_each_with_a_name_and_an_icon() -> None:
    entries = [entry for _, group in NAVIGATION for entry in group]
    assert len(entries) <= 9
    assert all(f"nav.{entry.key}" in i18n.messages("it") and entry.icon in ICONS for entry in entries)
    assert all(f"notice.{notice}" in i18n.messages("it") for notice in NOTICES)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("it-IT,it;q=0.9,en;q=0.8", "it"),
        ("de, en;q=0.5, it;q=0.9", "it"),
        ("it;q=0, en;q=0.1", "en"),
        ("fr", "en"),
        ("", "en"),
        ("it;q=x,,;q=", "en"),
        ("," * 5000, "en"),
    ],
)
def test_the_language_follows_what_the_browser_prefers(header: str, language: str) -> None:
    assert i18n.preferred_language(header) == language


@pytest.mark.parametrize(
    ("text", "italian", "english"),
    [
        (lambda language: formats.number(1234567.5, language, 2), "1.234.567,50", "1,234,567.50"),
        (lambda language: formats.money(0.0234, language), "0,0234\u00a0USD", "0.0234\u00a0USD"),
        (lambda language: formats.money(None, language), "—", "—"),
        (lambda language: formats.money(0, language), "0,00\u00a0USD", "0.00\u00a0USD"),
        (lambda language: formats.share(0.125, language), "12,5\u00a0%", "12.5%"),
        (lambda language: formats.duration(0.0831, language), "83 ms", "83 ms"),
        (lambda language: formats.duration(12.34, language), "12,3 s", "12.3 s"),
        (lambda language: formats.size(3 << 19, language), "1,5 MB", "1.5 MB"),
        (lambda language: formats.size(32 << 20, language), "32 MB", "32 MB"),
        (lambda language: formats.when(1_796_000_000, language), "30 nov, 00:53:20 UTC", "Nov 30, 00:53:20 UTC"),
        (lambda language: formats.change(3, 2, language), "+50\u00a0%", "+50%"),
        (lambda language: formats.change(3, 0, language), None, None),
        (lambda language: formats.change(None, 3, language), None, None),
    ],
)
def test_figures_are_written_as_people_of_the_language_read_them(
    text: object, italian: str | None, english: str | None
) -> None:
    assert callable(text)
    assert (text("it"), text("en")) == (italian, english)
