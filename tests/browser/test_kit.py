"""The chat kit on somebody else's page, in real Chromium, under a strict policy."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import Watch
from tests.browser.kit_site import Reply, Site, delta, done, event, kit_site, stream

pytestmark = pytest.mark.browser

ALL = {name: True for name in ("allegati", "lettura", "microfono", "conferme", "nuova")}
RICH = (
    "Ciao! Ho controllato **tutta la casa. Va bene.**\n\n## Stato\n\n- Salone: *19,5*\n  1. `a`\n\n"
    "| stanza | gradi |\n|---|---|\n| salone | 19,5 |\n\n> Fine.\n\n```\ncodice\n```\n[guida](https://example.com)"
)
ACTION = {"id": "c1", "name": "set_light", "text": "Switch the light on?", "arguments": {"on": True}}
CALL = event("tool_call", {"id": "c1", "name": "set_light", "arguments": {"on": True}})
PENDING = event("pending", {"actions": [ACTION]})


@pytest.fixture
def site() -> Iterator[Site]:
    with kit_site() as running:
        yield running


def open_chat(site: Site, watch: Watch) -> Any:
    watch.page.goto(site.page)
    watch.page.wait_for_selector(".pc-campo")
    return watch.page


def say(page: Any, text: str) -> None:
    page.fill(".pc-campo", text)
    page.keyboard.press("Enter")


def until(true: Callable[[], bool]) -> None:
    """Wait for something outside the page; the test's own time limit bounds it."""
    while not true():
        threading.Event().wait(0.01)


def finished(page: Any, count: int = 1) -> None:
    page.wait_for_function(
        "(n) => document.querySelectorAll('.pc-risposta[aria-busy=false]').length === n && "
        "!document.querySelector('.pc-viva')",
        arg=count,
    )


def announced(page: Any) -> list[str]:
    found: list[str] = page.locator(".pc-voce p").all_text_contents()
    return found


def test_an_answer_grows_in_its_bubble(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: stream(delta("It is "), lambda: site.released.wait(10), delta("**warm**."), done())
    page = open_chat(site, page_watch)
    say(page, "How is it?")
    page.wait_for_selector("text=It is")
    assert page.locator(".pc-stato").text_content() == "Pepper 7 is writing…"
    assert page.locator(".pc-attrezzo").count() == 0
    site.released.set()
    finished(page)
    assert page.locator(".pc-risposta .pc-testo").inner_text() == "It is warm."
    assert page.locator(".pc-risposta strong").text_content() == "warm"
    assert page.locator(".pc-stato").text_content() == ""
    page_watch.check()


def test_what_is_posted_is_the_documented_body(site: Site, page_watch: Watch) -> None:
    page = open_chat(site, page_watch)
    say(page, "  Hello  ")
    finished(page)
    say(page, "Again")
    finished(page, 2)
    first, second = site.of_kind("messaggio")
    assert first == {
        "versione": 1,
        "tipo": "messaggio",
        "conversazione": first["conversazione"],
        "turno": first["turno"],
        "progetto": "casa",
        "lingua": "en",
        "testo": "Hello",
        "allegati": [],
    }
    assert second["conversazione"] == first["conversazione"] and second["turno"] != first["turno"]


def test_the_empty_chat_says_who_is_there(site: Site, page_watch: Watch) -> None:
    page = open_chat(site, page_watch)
    page.wait_for_selector(".pc-nome:visible")
    assert page.locator(".pc-vuota").inner_text().split("\n")[0] == "Pepper 7"
    assert "/kit.php?progetto=casa" in site.asked
    page_watch.check()


def test_a_project_nobody_knows_leaves_the_name_out(site: Site, page_watch: Watch) -> None:
    site.model = None
    page = open_chat(site, page_watch)
    page.wait_for_load_state("networkidle")
    assert page.locator(".pc-nome").is_hidden() and page.locator(".pc-invito").text_content() == "How can I help?"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["it", "en"])
def test_every_state_is_accessible_and_fits(
    site: Site,
    new_page: Callable[..., Watch],
    axe: Callable[[Any], list[str]],
    width: int,
    theme: str,
    language: str,
) -> None:
    failed = event("tool_call", {"id": "c2", "name": "x"}) + event("tool_done", {"id": "c2", "ok": False})
    refusal = Reply([b'{"error": {"message": "Too many."}}'], 429, "application/json", {"Retry-After": "90"})
    answers = [
        stream(delta(RICH), CALL, event("tool_done", {"id": "c1", "ok": True}), done()),
        stream(failed, CALL, PENDING, done("tool_use")),
        refusal,
    ]
    remaining = iter(answers)
    site.play = lambda body: next(remaining)
    site.lang = language
    site.options = {"funzioni": ALL}
    watch = new_page(width=width, theme=theme)
    watch.allow.append("429")
    page = open_chat(site, watch)
    page.wait_for_selector(".pc-nome:visible")
    assert axe(page) == []
    for count in range(1, len(answers) + 1):
        say(page, "avanti")
        finished(page, count)
        assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expected = {"it": "Riprova fra 90 s", "en": "Try again in 90 s"}[language]
    assert page.locator(".pc-azioni button:disabled").text_content() in (expected, expected.replace("90", "89"))
    watch.check()


def longest_task(watch: Watch, site: Site, deltas: list[bytes]) -> float:
    """CPU milliseconds of the longest task while these deltas arrive and are drawn."""
    site.play = lambda body: stream(*deltas, done())
    page = open_chat(site, watch)
    page.wait_for_load_state("networkidle")

    def ask() -> None:
        say(page, "go")
        finished(page)

    return watch.longest_task(ask)


def test_five_thousand_deltas_leave_the_page_responsive(site: Site, page_watch: Watch) -> None:
    words = [f"parola{n} " if n % 12 else f"fine{n}. Nuova " for n in range(1, 5001)]
    page_watch.page.add_init_script("""
        window.announced = 0;
        addEventListener("DOMContentLoaded", () => setTimeout(() => new MutationObserver((all) => {
          for (const one of all) window.announced += one.addedNodes.length;
        }).observe(document.querySelector(".pc-voce"), {childList: true})));
    """)
    assert longest_task(page_watch, site, [delta(word) for word in words]) < 100
    page = page_watch.page
    text = page.locator(".pc-risposta .pc-testo").inner_text()
    assert text.count("parola") + text.count("fine") == 5000
    assert page.evaluate("announced") == 417  # 416 full stops, and what stands after the last
    assert all(line.startswith("Nuova") for line in announced(page))


ENDLESS = {
    "words": ("", "**parola** `x` "),
    "items": ("", "- parola **a**\n"),
    "paragraphs": ("", "parola\n\n"),
    "lines": ("", "parola\n"),
    "links": ("", "[parola](https://a.it/b) "),
    "one word": ("", "parola"),
    "table": ("| a | b | c |\n|---|---|---|\n", "| parola | **due** | `tre` |\n"),
    "one cell": ("| a | b |\n|---|---|\n| ", "parola "),
    "code": ("```\n", "parola = 1\n"),
    "one line of code": ("```\n", "parola += 1; "),
    "one item": ("- ", "parola "),
    "inner items": ("- a\n", "  - parola\n"),
    "quote": ("", "> parola **a**\n"),
    "one heading": ("# ", "parola "),
    "rules": ("", "parola\n\n---\n"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_five_thousand_deltas_without_a_full_stop_are_no_harder(site: Site, page_watch: Watch, kind: str) -> None:
    begin, piece = ENDLESS[kind]
    assert longest_task(page_watch, site, [delta(begin)] * bool(begin) + [delta(piece)] * 5000) < 100
    assert page_watch.page.locator(".pc-risposta .pc-testo").text_content().count("parola") == 5000


@pytest.mark.parametrize("kind", ["table", "code", "items"])
def test_a_long_answer_in_one_piece_is_drawn_a_little_at_a_time(site: Site, page_watch: Watch, kind: str) -> None:
    begin, piece = ENDLESS[kind]
    assert longest_task(page_watch, site, [delta(begin + piece * 5000)]) < 100
    assert page_watch.page.locator(".pc-risposta .pc-testo").text_content().count("parola") == 5000


def test_arguments_of_megabytes_do_not_stop_the_page(site: Site, page_watch: Watch) -> None:
    site.options = {"funzioni": {"conferme": True}}
    action = {"id": "c1", "name": "write", "arguments": {"text": "parola " * 300_000}}
    asked = [event("tool_call", action), event("pending", {"actions": [action]})]
    assert longest_task(page_watch, site, asked) < 100
    assert page_watch.page.get_by_role("button", name="Approve").is_visible()


def test_a_long_table_is_one_table_with_its_columns(site: Site, page_watch: Watch) -> None:
    rows = [f"| r{n} | {n} |\n" for n in range(200)]
    site.play = lambda body: stream(delta("| a | b |\n|---|---|\n"), *map(delta, rows), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    finished(page)
    assert page.locator(".pc-testo table").count() == 1 and page.locator(".pc-testo tbody tr").count() == 200
    assert page.locator(".pc-testo thead th").all_text_contents() == ["a", "b"]
    widths = page.evaluate(
        "[...document.querySelectorAll('.pc-testo tr')].map((row) => row.cells[0].getBoundingClientRect().width)"
    )
    assert len(set(widths)) == 1


def test_a_screen_reader_hears_sentences(site: Site, page_watch: Watch) -> None:
    letters = [delta(letter) for letter in "Prima **frase. Seconda** frase! E l'ultima senza punto"]
    site.play = lambda body: stream(*letters, lambda: site.released.wait(10), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("text=senza punto")
    page.wait_for_function("() => document.querySelectorAll('.pc-voce p').length === 2")
    assert announced(page) == ["Prima frase.", "Seconda frase!"]
    site.released.set()
    finished(page)
    assert announced(page) == ["Prima frase.", "Seconda frase!", "E l'ultima senza punto"]
    assert page.locator("[role=log]").get_attribute("aria-live") == "off"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_characters_are_whole_however_the_bytes_arrive(site: Site, page_watch: Watch, size: int) -> None:
    text = "perché 🙂 già — 日本 👩‍👩‍👧"
    raw = delta(text) + done()
    site.play = lambda body: stream(*(raw[at : at + size] for at in range(0, len(raw), size)))
    page = open_chat(site, page_watch)
    say(page, "go")
    finished(page)
    assert page.locator(".pc-risposta .pc-testo").inner_text() == text
    page_watch.check()


def test_a_lost_line_is_taken_up_where_it_broke(site: Site, page_watch: Watch) -> None:
    def play(body: dict[str, Any]) -> Reply:
        if body["tipo"] == "messaggio":
            half = b'event: delta\ndata: {"text": "per'
            return Reply([delta("Uno "), delta("due "), half, lambda: site.released.wait(10)], cut=True)
        return stream(delta("tre."), done())

    site.play = play
    page_watch.allow.append("ERR_INCOMPLETE_CHUNKED_ENCODING")
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("text=Uno due")
    site.released.set()
    finished(page)
    assert page.locator(".pc-risposta .pc-testo").inner_text() == "Uno due tre."
    (sent,), (resumed,) = site.of_kind("messaggio"), site.of_kind("riprendi")
    assert resumed == {
        **{name: sent[name] for name in ("versione", "conversazione", "turno", "progetto", "lingua")},
        "tipo": "riprendi",
        "dopo": 2,
    }
    page_watch.check()


def test_a_server_that_cannot_resume_leaves_a_button(site: Site, page_watch: Watch) -> None:
    def play(body: dict[str, Any]) -> Reply:
        if body["tipo"] == "riprendi":
            return Reply(status=404, kind="text/plain")
        first = len(site.of_kind("messaggio")) == 1
        return Reply([delta("Half")], cut=True) if first else stream(delta("Whole."), done())

    site.play = play
    page = open_chat(site, page_watch)
    say(page, "go")
    page.click("text=Try again")
    page.wait_for_selector("text=Whole.")
    finished(page)
    assert page.locator(".pc-risposta").count() == 1 and page.locator(".pc-errore").count() == 0
    first, second = site.of_kind("messaggio")
    assert first == second


def test_a_refusal_counts_down_what_the_server_said(site: Site, page_watch: Watch) -> None:
    busy = Reply(
        [b'{"error": {"code": "troppe_richieste", "message": "Piano, <b>piano</b>."}}'], 429, "application/json"
    )
    busy.headers["Retry-After"] = "2"
    site.play = lambda body: busy if len(site.of_kind("messaggio")) == 1 else stream(delta("Ok."), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("[role=alert]:has-text('Piano, <b>piano</b>.')")
    button = page.locator(".pc-azioni button")
    assert button.is_disabled() and "Try again in" in button.text_content()
    page.wait_for_selector(".pc-azioni button:enabled")
    button.click()
    page.wait_for_selector("text=Ok.")
    assert len(site.of_kind("messaggio")) == 2


@pytest.mark.parametrize("code", ["richiesta_rifiutata", "non_autorizzato"])
def test_what_cannot_get_better_has_no_button(site: Site, page_watch: Watch, code: str) -> None:
    site.play = lambda body: stream(event("error", {"code": code, "message": "No."}))
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("[role=alert]:has-text('No.')")
    finished(page)
    assert page.locator(".pc-azioni button").count() == 0


def test_an_error_in_the_stream_can_be_tried_again(site: Site, page_watch: Watch) -> None:
    broken = stream(delta("Ha"), event("error", {"code": "errore_ai", "message": "The provider failed."}))
    site.play = lambda body: broken if len(site.of_kind("messaggio")) == 1 else stream(delta("Good."), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    page.click("text=Try again")
    page.wait_for_selector("text=Good.")
    page_watch.check()


@pytest.mark.parametrize(
    ("button", "outcome", "said"), [("Approve", "approvata", "done"), ("Deny", "negata", "denied")]
)
def test_an_action_is_approved_or_denied(site: Site, page_watch: Watch, button: str, outcome: str, said: str) -> None:
    def play(body: dict[str, Any]) -> Reply:
        if body["tipo"] == "messaggio":
            return stream(CALL, PENDING, done("tool_use"))
        ran = event("tool_done", {"id": "c1", "ok": True}) if body["esito"] == "approvata" else b""
        return stream(ran, delta("All right."), done())

    site.play = play
    site.options = {"funzioni": {"conferme": True}}
    page = open_chat(site, page_watch)
    say(page, "light please")
    page.wait_for_selector("text=waiting for approval")
    assert page.locator(".pc-stato").text_content() == "An action waits for your approval."
    page.click(f"button:has-text('{button}')")
    page.wait_for_selector("text=All right.")
    finished(page, 2)
    (posted,) = site.of_kind("conferma")
    assert (posted["azione"], posted["esito"]) == ("c1", outcome)
    assert page.locator(".pc-attrezzo-stato").text_content() == said
    assert page.locator(".pc-approva:visible").count() == 0
    page_watch.check()


def test_a_confirmation_that_fails_can_be_given_again(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: (
        stream(CALL, PENDING, done("tool_use")) if body["tipo"] == "messaggio" else Reply(status=503, kind="text/plain")
    )
    site.options = {"funzioni": {"conferme": True}}
    page = open_chat(site, page_watch)
    say(page, "light please")
    page.click(".pc-approva")
    page.wait_for_selector("[role=alert]:visible")
    assert page.locator(".pc-approva:visible").count() == 1


def test_the_keyboard_alone_is_enough(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: (
        stream(CALL, PENDING, done("tool_use"))
        if body["tipo"] == "messaggio"
        else stream(event("tool_done", {"id": "c1", "ok": True}), delta("It is on."), done())
    )
    site.options = {"funzioni": {"conferme": True}}
    page = open_chat(site, page_watch)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "pc-campo":
            break
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    page.wait_for_selector(".pc-approva")
    assert site.posted[0]["testo"] == "one\ntwo"
    for _ in range(10):
        page.keyboard.press("Shift+Tab")
        if "pc-approva" in page.evaluate("document.activeElement.className"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("text=It is on.")
    assert page.evaluate("document.activeElement.className") == "pc-campo"


def test_switches_are_off_until_they_are_switched_on(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: stream(CALL, PENDING, delta("Text."), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    finished(page)
    for name in (".pc-allega", ".pc-parla", ".pc-nuova", ".pc-approva", ".pc-leggi"):
        assert page.locator(f"{name}:visible").count() == 0, name
    assert page.evaluate("PepperChat.funzioni.allegati") is False
    page_watch.check()


def test_attachments_travel_as_the_blocks_of_the_agent_call(site: Site, page_watch: Watch) -> None:
    site.options = {"funzioni": {"allegati": True}}
    page = open_chat(site, page_watch)
    pdf = {"name": "verbale.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 \xff"}
    photo = {"name": "foto.png", "mimeType": "image/png", "buffer": b"\x89PNG"}
    page.set_input_files(".pepper-chat input[type=file]", [pdf, photo])
    page.wait_for_function("() => document.querySelectorAll('.pc-allegato:not(.pc-legge)').length === 2")
    say(page, "read")
    finished(page)
    assert site.posted[0]["allegati"] == [
        {"tipo": "documento", "nome": "verbale.pdf", "dati": "JVBERi0xLjQg/w=="},
        {"tipo": "documento", "nome": "foto.png", "tipo_file": "image/png", "dati": "iVBORw=="},
    ]
    assert page.locator(".pc-mio .pc-nomefile").all_text_contents() == ["verbale.pdf", "foto.png"]
    page_watch.check()


def test_files_that_no_model_takes_are_refused_before_they_are_sent(site: Site, page_watch: Watch) -> None:
    site.options = {"funzioni": {"allegati": True}}
    page = open_chat(site, page_watch)
    for file, said in (
        ({"name": "a.exe", "mimeType": "application/x-msdownload", "buffer": b"MZ"}, "a.exe is neither"),
        ({"name": "b.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"}, "b.svg is neither"),
        ({"name": "c.png", "mimeType": "image/png", "buffer": bytes(5 * 2**20 + 1)}, "c.png is too large: 5 MB"),
    ):
        page.set_input_files(".pepper-chat input[type=file]", [file])
        page.wait_for_selector(f".pc-avviso:has-text('{said}')")
    pdf = {"name": "d.pdf", "mimeType": "application/pdf", "buffer": b"%PDF"}
    page.set_input_files(".pepper-chat input[type=file]", [pdf] * 6)
    page.wait_for_selector(".pc-avviso:has-text('At most 5 files')")
    assert page.locator(".pc-allegato").count() == 5


def test_a_new_chat_is_another_conversation(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: (
        Reply(status=204, kind="text/plain") if body["tipo"] == "nuova" else stream(delta("Ok."), done())
    )
    site.options = {"funzioni": {"nuova": True}}
    page = open_chat(site, page_watch)
    say(page, "one")
    finished(page)
    page.click(".pc-nuova")
    page.wait_for_selector(".pc-invito:visible")
    say(page, "two")
    finished(page)
    first, second = site.of_kind("messaggio")
    assert first["conversazione"] != second["conversazione"]
    assert site.of_kind("nuova")[0]["conversazione"] == first["conversazione"]


def test_a_page_may_delete_the_history_its_own_way(site: Site, page_watch: Watch) -> None:
    site.before = "window.told = []; const when = (what) => { window.told.push(what); };"
    page = page_watch.page
    page.goto(site.page)
    page.evaluate(
        "chat.stacca(); window.chat = PepperChat.attacca(document.getElementById('chat'), "
        "{indirizzo: '/chat', nuova: {quando: when}})"
    )
    say(page, "one")
    finished(page)
    page.click(".pc-nuova")
    page.wait_for_selector(".pc-invito:visible")
    assert page.evaluate("told") == [{"conversazione": site.posted[0]["conversazione"]}]
    assert site.of_kind("nuova") == []


def test_the_novelty_is_told_when_the_model_changes_also_after_a_reload(site: Site, page_watch: Watch) -> None:
    answers = iter(["Pepper 7", "Pepper 7", "Pepper 8", "Pepper 8"])
    site.play = lambda body: stream(delta("Ok."), done(versione=next(answers), novita="Thinks longer."))
    page = open_chat(site, page_watch)
    for count in (1, 2):
        say(page, "go")
        finished(page, count)
    assert page.locator(".pc-novita").count() == 0
    page.reload()
    say(page, "go")
    page.wait_for_selector(".pc-novita:has-text('Pepper 8 answers now. Thinks longer.')")
    say(page, "go")
    finished(page, 2)
    assert page.locator(".pc-novita").count() == 1


def test_stop_closes_the_line_and_tells_the_server(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: stream(delta("One"), lambda: site.released.wait(20), delta("two"), done())
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("text=One")
    page.keyboard.press("Escape")
    finished(page)
    page.wait_for_function("() => document.querySelector('.pc-invia').title === 'Send'")
    assert page.locator(".pc-errore").count() == 0
    until(lambda: bool(site.of_kind("ferma")))
    assert site.of_kind("ferma")[0]["turno"] == site.posted[0]["turno"]
    assert site.of_kind("riprendi") == []


def test_read_aloud_and_push_to_talk(site: Site, page_watch: Watch) -> None:
    page_watch.page.add_init_script("""
        window.spoken = [];
        speechSynthesis.speak = (one) => window.spoken.push([one.lang, one.text]);
        window.SpeechRecognition = class extends EventTarget {
          start() {
            this.dispatchEvent(Object.assign(new Event("result"), {results: [[{transcript: "detto a voce"}]]}));
          }
          stop() { this.dispatchEvent(new Event("end")); }
        };
    """)
    site.lang = "it"
    site.options = {"funzioni": {"lettura": True, "microfono": True}}
    site.play = lambda body: stream(delta("Ciao **bella**. Poi."), done())
    page = open_chat(site, page_watch)
    page.locator(".pc-parla").focus()
    page.keyboard.press("Space")
    assert page.locator(".pc-parla").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Space")
    assert page.locator(".pc-parla").get_attribute("aria-pressed") == "false"
    page.keyboard.press("Enter")
    finished(page)
    assert site.posted[0]["testo"] == "detto a voce"
    page.click(".pc-leggi")
    ((language, text),) = page.evaluate("spoken")
    assert language == "it-IT" and text.split() == ["Ciao", "bella.", "Poi."]


def test_nothing_moves_for_those_who_asked_for_it(site: Site, new_page: Callable[..., Watch]) -> None:
    site.play = lambda body: stream(delta("One"), CALL, lambda: site.released.wait(20), done())
    page = open_chat(site, new_page(reduced_motion=True))
    say(page, "go")
    page.wait_for_selector(".pc-tool-running")
    assert page.evaluate("document.getAnimations().length") == 0


def test_eight_tabs_load_at_once(site: Site, page_watch: Watch) -> None:
    site.play = lambda body: stream(delta("One"), done())
    pages = [page_watch.page, *(page_watch.page.context.new_page() for _ in range(7))]
    for page in pages:
        page.goto(site.page, wait_until="load", timeout=5_000)
        say(page, "go")
        finished(page)


def test_a_json_answer_is_an_answer_too(site: Site, page_watch: Watch) -> None:
    reply = {"stop_reason": "end_turn", "content": "Whole.", "tool_calls": [], "versione": "Pepper 7", "blocchi": []}
    site.play = lambda body: Reply([json.dumps(reply).encode()], kind="application/json")
    page = open_chat(site, page_watch)
    say(page, "go")
    page.wait_for_selector("text=Whole.")
    page_watch.check()
