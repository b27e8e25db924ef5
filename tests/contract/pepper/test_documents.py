"""Documents and photos that come with a message."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import sys
from typing import Any

import pytest
import trustme

from crocevia.core.catalogue import Permissions
from crocevia.core.messages import FilePart, TextPart, UserMessage
from crocevia.documents.fetch import Fetcher
from crocevia.documents.workers import Workers
from crocevia.runtime.intake import Intake
from tests.aio import run
from tests.contract.pepper.claude import says, talking, whole
from tests.contract.requirements import requirement
from tests.documents import zoo
from tests.documents.servers import OUTER, Names, outside, reply, serving
from tests.doors.pepper.asgi import Exchange, ask
from tests.doors.pepper.house import ALL_ALLOWED, House, Puppet, house

TEXT = {"tipo": "testo", "testo": "Di cosa parla?"}
PDF = zoo.pdf(("Verbale della riunione. " * 20,))
JPEG = zoo.photo("JPEG")


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(data: bytes = PDF, **more: Any) -> dict[str, Any]:
    return {"tipo": "documento", "nome": "verbale.pdf", "dati": coded(data)} | more


def photo(data: bytes = JPEG, kind: str = "image/jpeg", **more: Any) -> dict[str, Any]:
    return {"tipo": "documento", "nome": "foto.jpg", "tipo_file": kind, "dati": coded(data)} | more


def body(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def sent(*blocks: dict[str, Any], at: House | None = None, **project: Any) -> tuple[Exchange, House]:
    """The exchange of one message with these blocks, to an engine that takes pictures and whole PDFs."""
    place = at or house(Puppet(documents=True, images=True), **({"permissions": ALL_ALLOWED} | project))
    exchange = run(ask(place.agent, body(*blocks)), timeout=40)
    place.nothing_left()
    return exchange, place


def parts(place: House, call: int = -1) -> tuple[Any, ...]:
    message = place.engine.requests[call].messages[0]
    assert isinstance(message, UserMessage)
    return message.parts


@requirement("P-DOC-1", "P-DOC-6")
def test_a_document_and_a_text_arrive_in_order() -> None:
    exchange, place = sent(document(), TEXT)
    assert exchange.status == 200
    assert parts(place) == (
        FilePart(kind="document", media_type="application/pdf", data=PDF, name="verbale.pdf"),
        TextPart(text="Di cosa parla?"),
    )


@requirement("P-DOC-6")
def test_claude_gets_the_file_itself_and_no_mark_of_citations() -> None:
    async def work() -> None:
        async with talking(whole(says("Un verbale.")), permissions=ALL_ALLOWED) as app:
            app.user([document(), TEXT])
            reply = await app.call()
            assert "citazioni" not in reply
            first, second = app.sent()["messages"][0]["content"]
            assert first == {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": coded(PDF)},
                "title": "verbale.pdf",
            }
            assert second["text"] == "Di cosa parla?"

    run(work(), timeout=30)


@requirement("P-DOC-6")
def test_an_engine_that_reads_no_files_gets_the_text() -> None:
    place = house(Puppet(), permissions=ALL_ALLOWED)
    exchange, _ = sent(document(), TEXT, at=place)
    assert exchange.status == 200
    extracted = parts(place)[0]
    assert isinstance(extracted, TextPart)
    assert "Verbale della riunione." in extracted.text and "verbale.pdf" in extracted.text


@requirement("P-DOC-4")
@pytest.mark.parametrize(
    ("kind", "media"), [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("GIF", "image/gif"), ("WEBP", "image/webp")]
)
def test_photos_of_four_kinds_arrive_as_they_are(kind: str, media: str) -> None:
    data = zoo.photo(kind)
    exchange, place = sent(photo(data, media), TEXT)
    assert exchange.status == 200
    assert parts(place)[0] == FilePart(kind="image", media_type=media, data=data, name="foto.jpg")


@requirement("P-DOC-4")
@pytest.mark.parametrize("declared", ["image/png", "application/pdf", None, "application/octet-stream"])
def test_what_a_file_is_its_bytes_say_not_its_label(declared: str | None) -> None:
    exchange, place = sent(photo(kind=declared) if declared else document(JPEG))  # type: ignore[arg-type]
    assert exchange.status == 200
    assert parts(place)[0].media_type == "image/jpeg"


@requirement("P-DOC-3")
@pytest.mark.parametrize(
    ("block", "permissions", "word"),
    [
        (document(), Permissions(images=True), "documenti_non_abilitati"),
        (document(), Permissions(), "documenti_non_abilitati"),
        (photo(), Permissions(documents=True), "immagini_non_abilitate"),
        (photo(), Permissions(), "immagini_non_abilitate"),
        (document(JPEG), Permissions(documents=True), "immagini_non_abilitate"),
        (photo(PDF), Permissions(images=True), "documenti_non_abilitati"),
        (document(tipo_file="application/pdf"), Permissions(images=True), "documenti_non_abilitati"),
    ],
)
def test_each_kind_needs_its_own_permission_whatever_it_is_called(
    block: dict[str, Any], permissions: Permissions, word: str
) -> None:
    exchange, place = sent(block, TEXT, permissions=permissions)
    assert exchange.error() == (403, word)
    assert "'casa'" in exchange.json()["error"]["message"]
    assert place.engine.requests == []


@requirement("P-DOC-2")
def test_five_files_of_both_kinds_together_are_the_limit() -> None:
    three, two = [document()] * 3, [photo()] * 2
    assert sent(*three, *two, TEXT)[0].status == 200
    for blocks in ([document()] * 6, [photo()] * 6, [*three, *two, photo()]):
        exchange, place = sent(*blocks, TEXT)
        assert exchange.error() == (400, "richiesta_non_valida")
        assert "5" in exchange.json()["error"]["message"]
        assert place.engine.requests == []


MIB = 1024 * 1024
TOO_MUCH: dict[str, tuple[Any, str]] = {
    "a document over 10 MB": (lambda: document(zoo.pdf(padding=10 * MIB)), "10"),
    "a photo over 5 MB": (lambda: photo(JPEG + b"\0" * (5 * MIB)), "5"),
    "601 pages": (lambda: document(zoo.pdf(("x",) * 601)), "600"),
    "a page count that lies": (lambda: document(zoo.pdf(("x",), count=9999)), ""),
    "protected": (lambda: document(zoo.encrypted_pdf()), ""),
    "a bomb": (lambda: document(zoo.form_bomb()), ""),
    "a picture bomb": (lambda: photo(zoo.bomb_png(), "image/png"), ""),
    "text called a PDF": (lambda: document(b"ciao"), ""),
    "cut in the middle": (lambda: document(PDF[: len(PDF) // 2]), ""),
    "no base64": (lambda: {"tipo": "documento", "dati": "%%%"}, ""),
    "empty": (lambda: {"tipo": "documento", "dati": ""}, ""),
    "neither data nor address": (lambda: {"tipo": "documento", "nome": "x.pdf"}, ""),
    "both": (lambda: document(url="https://example.com/x.pdf"), ""),
    "plain http": (lambda: {"tipo": "documento", "url": "http://example.com/x.pdf"}, ""),
    "the inner network": (lambda: {"tipo": "documento", "url": "https://169.254.169.254/x.pdf"}, ""),
}


@requirement("P-DOC-2", "P-DOC-5")
@pytest.mark.parametrize("name", TOO_MUCH)
def test_files_beyond_the_limits_are_refused_with_their_place(name: str) -> None:
    make, limit = TOO_MUCH[name]
    exchange, place = sent(TEXT, make())
    assert exchange.error() == (400, "richiesta_non_valida")
    said = exchange.json()["error"]["message"]
    assert "messages[0].content[1]" in said and limit in said and "{" not in said
    assert place.engine.requests == []


@requirement("P-DOC-2")
def test_a_cheap_model_takes_100_pages() -> None:
    hundred = zoo.pdf(("x",) * 100)
    assert sent(document(hundred), TEXT, model={"max_pages": 100})[0].status == 200
    exchange, _ = sent(document(zoo.pdf(("x",) * 101)), TEXT, model={"max_pages": 100})
    assert exchange.error() == (400, "richiesta_non_valida")
    assert "100" in exchange.json()["error"]["message"]


@requirement("P-DOC-5")
def test_a_document_by_address_is_fetched_over_https() -> None:
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("files.example").configure_cert(theirs)
    authority.configure_trust(ours)

    async def handle(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(PDF, headers="Content-Type: application/pdf\r\n"))
        await writer.drain()

    async def work() -> None:
        async with serving(handle, OUTER, theirs) as server:
            names = Names({"files.example": [[OUTER]]})
            files = Intake(Fetcher(resolve=names, is_open=outside, tls_context=ours))
            place = house(Puppet(documents=True), permissions=ALL_ALLOWED, intake=files)
            block = {"tipo": "documento", "nome": "v.pdf", "url": f"https://files.example:{server.port}/v.pdf"}
            for _ in range(2):
                assert (await ask(place.agent, body(block, TEXT))).status == 200
                assert parts(place)[0] == FilePart(
                    kind="document", media_type="application/pdf", data=PDF, name="v.pdf"
                )
            assert server.hits == 1  # the second round sees what the first one fetched
            await files.close()

    run(work(), timeout=30)


class CountingWorkers(Workers):
    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0

    async def run(self, *job: Any, **how: Any) -> Any:
        self.jobs += 1
        return await super().run(*job, **how)


@requirement("P-DOC-7")
def test_a_tool_loop_reads_its_document_once_and_the_engine_sees_the_same_bytes() -> None:
    async def work() -> None:
        workers = CountingWorkers()
        place = house(Puppet(), permissions=ALL_ALLOWED, intake=Intake(workers=workers))
        history: list[dict[str, Any]] = body(document(), TEXT)["messages"]
        for turn in range(4):
            assert (await ask(place.agent, {"messages": history})).status == 200
            call = {"id": f"c{turn}", "name": "t", "arguments": {}}
            history = [
                *history,
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{turn}", "content": "ok"},
            ]
        assert workers.jobs == 1
        assert len({parts(place, call) for call in range(4)}) == 1

    run(work(), timeout=30)


@requirement("P-DOC-7")
def test_what_is_kept_of_files_is_bounded_and_belongs_to_its_form() -> None:
    async def work() -> None:
        workers = CountingWorkers()
        files = Intake(workers=workers, kept_bytes=2 * len(PDF))
        place = house(Puppet(documents=True), permissions=ALL_ALLOWED, intake=files)
        for data in (PDF, zoo.pdf(("altro " * 900,)), PDF):
            assert (await ask(place.agent, body(document(data), TEXT))).status == 200
        assert workers.jobs == 3  # none fits: each is read again rather than kept beyond the bound

    run(work(), timeout=30)


@requirement("P-DOC-8")
def test_blocks_of_text_are_joined_and_other_kinds_refused() -> None:
    exchange, place = sent(TEXT, {"tipo": "testo", "testo": " E poi?"})
    assert exchange.status == 200
    assert place.engine.requests[0].messages[0].text == "Di cosa parla? E poi?"
    assert sent({"tipo": "video"})[0].error() == (400, "richiesta_non_valida")


@requirement("P-DOC-7")
def test_nothing_is_started_before_a_file_comes() -> None:
    code = (
        "import asyncio, sys\nfrom crocevia.runtime.intake import Intake\n"
        "async def main():\n    files = Intake()\n    assert files._fetcher._session is None\n"
        "    assert not files._workers.pids\n    await files.close()\n"
        "asyncio.run(main())\nassert 'pypdfium2' not in sys.modules and 'PIL' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@requirement("P-DOC-7")
def test_a_project_over_its_limit_has_no_file_read_for_it() -> None:
    async def work() -> None:
        workers = CountingWorkers()
        files = Intake(workers=workers)
        place = house(Puppet(), permissions=ALL_ALLOWED, intake=files, hourly_limit=1)
        assert (await ask(place.agent, body(document(), TEXT))).status == 200
        refused = await ask(place.agent, body(document(zoo.pdf(("altro",))), TEXT))
        assert refused.error() == (429, "troppe_richieste")
        assert int(refused.headers["retry-after"]) > 3000
        assert workers.jobs == 1

    run(work(), timeout=30)
