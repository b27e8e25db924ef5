import asyncio
import io
import os
import signal
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from PIL import Image

from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render
from crocevia.documents.jobs import PdfContent
from crocevia.documents.pdf import check_pdf, read_pdf
from crocevia.documents.workers import Workers
from tests.aio import run
from tests.documents import zoo

try:
    import uvloop
except ImportError:
    uvloop = None  # type: ignore[assignment]


def check(data: bytes, max_pages: int = 600) -> Awaitable[PdfContent]:
    return check_pdf(Workers(), data, max_pages=max_pages)


def _children() -> float:
    """CPU seconds of every child that has ended."""
    times = os.times()
    return times.children_user + times.children_system


def read(data: bytes, workers: Workers | None = None, **limits: int) -> Awaitable[PdfContent]:
    usual = {"max_pages": 600, "max_chars": 100_000, "min_text_chars": 20, "max_rendered": 4, "page_pixels": 500_000}
    return read_pdf(workers or Workers(), data, **{**usual, **limits})


async def refusal(work: Awaitable[Any]) -> str:
    with pytest.raises(GatewayError) as caught:
        await work
    assert caught.value.code is Code.INVALID_REQUEST
    for language in ("en", "it"):
        assert "{" not in render(caught.value.message, language)  # type: ignore[arg-type]
    return caught.value.message.reason


HOSTILE = {
    "too many pages": (zoo.pdf(["x"] * 601), {"pdf_pages"}),
    "says a million pages": (zoo.pdf(count=1_000_000), {"pdf_pages"}),
    "says more pages than it has": (zoo.pdf(count=500), {"pdf_damaged"}),
    "says one page and has many": (zoo.pdf(["x"] * 700, count=1), {"pdf_pages"}),
    "says one page and hides many": (zoo.packed_liar(700), {"pdf_pages"}),
    "no pages": (zoo.pdf([]), {"pdf_empty"}),
    "its own child": (zoo.circular_pdf(), {"pdf_empty", "pdf_damaged"}),
    "cut near its end": (zoo.pdf(["x" * 50] * 20)[:-300], {"pdf_truncated"}),
    "cut in half": (zoo.pdf(["x" * 50] * 20)[:2000], {"pdf_truncated"}),
    "only a header": (b"%PDF-1.7\n", {"pdf_truncated"}),
    "noise between header and end": (b"%PDF-1.7\n" + b"\x00\xff" * 999 + b"startxref\n0\n%%EOF", {"pdf_damaged"}),
    "password": (zoo.encrypted_pdf(), {"pdf_encrypted"}),
    "a page of a thousand kilometres": (zoo.pdf(box="0 0 1000000000 1000000000"), {"pdf_page_size"}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_pdf_is_refused_by_its_own_sentence_whether_checked_or_read(case: str) -> None:
    data, keys = HOSTILE[case]

    async def work() -> None:
        assert await refusal(check(data)) in keys
        assert await refusal(read(data)) in keys

    run(work(), timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [zoo.inflating_bomb(), zoo.form_bomb()], ids=["inflating", "forms"])
def test_a_bomb_is_refused_within_its_cpu_time_and_only_its_worker_feels_it(bomb: bytes) -> None:
    async def work() -> None:
        before, spent = time.process_time(), _children()
        assert await refusal(check(bomb)) in {"file_slow", "file_heavy", "file_broke"}
        assert time.process_time() - before < 1
        assert _children() - spent < 2.5  # of CPU: five seconds by the clock even when something else runs beside it

    run(work(), timeout=30)


@pytest.mark.parametrize("data", [zoo.nested_pdf(), zoo.content_pdf(b"[" * 10_000), zoo.content_pdf(b"q " * 100_000)])
def test_deep_nesting_is_read_or_refused_but_never_hangs(data: bytes) -> None:
    async def work() -> None:
        try:
            assert (await check(data)).pages == 1
        except GatewayError as error:
            assert error.code is Code.INVALID_REQUEST

    run(work(), timeout=30)


def test_text_comes_page_by_page_in_order() -> None:
    content = run(_await(read(zoo.pdf([f"Page number {index}\nsecond line" for index in range(1, 6)]))))
    assert content.pages == 5
    assert [page.text for page in content.read] == [f"Page number {index}\nsecond line" for index in range(1, 6)]
    assert all(page.image is None for page in content.read)
    assert content.complete
    assert not content.locked


def test_text_stops_at_the_limit_and_the_rest_is_not_taken_for_a_scan() -> None:
    content = run(_await(read(zoo.pdf(["word " * 20] * 10), max_chars=250)))
    assert sum(len(page.text) for page in content.read) == 250
    assert not content.complete
    assert content.unseen == 0
    assert all(page.image is None for page in content.read)


def test_a_document_without_text_is_rendered_from_its_first_page_within_the_pixel_limit() -> None:
    content = run(_await(read(zoo.scanned_pdf(6), max_rendered=4)))
    assert [page.image is not None for page in content.read] == [True] * 4 + [False] * 2
    assert content.unseen == 2
    for page in content.read[:4]:
        picture = Image.open(io.BytesIO(page.image or b""))
        assert picture.format == "JPEG"
        assert picture.width * picture.height <= 500_000 * 1.01
        red, green, blue = picture.convert("RGB").getpixel((picture.width // 3, picture.height * 2 // 3))  # type: ignore[misc]
        assert red > 200 > 60 > max(green, blue)


def test_a_scanned_page_among_pages_of_text_is_rendered_and_a_blank_one_is_not() -> None:
    content = run(_await(read(zoo.scanned_pdf(1, ["plenty of text on this page " * 3, "", "and some more text here"]))))
    assert [bool(page.image) for page in content.read] == [True, False, False, False]


@pytest.mark.parametrize("box", ["0 0 14000 1", "0 0 1 14000", "0 0 14400 14400", "0 0 0.5 0.5"])
def test_a_page_of_odd_shape_is_rendered_within_the_pixel_limit(box: str) -> None:
    content = run(_await(read(zoo.pdf([""], box=box))))
    picture = Image.open(io.BytesIO(content.read[0].image or b""))
    assert picture.width * picture.height <= 520_000


def test_a_worker_killed_midway_is_one_failed_file() -> None:
    async def work() -> None:
        workers = Workers(processes=2)
        doomed = asyncio.create_task(check_pdf(workers, zoo.form_bomb(), max_pages=600))
        while not workers.pids:
            await asyncio.sleep(0.01)
        os.kill(next(iter(workers.pids)), signal.SIGKILL)
        assert await refusal(doomed) == "file_broke"
        assert (await read(zoo.pdf(["still alive and well, thanks"]), workers)).read[0].text.startswith("still alive")
        assert not workers.pids

    run(work())


@pytest.mark.skipif(uvloop is None, reason="no uvloop here")
def test_a_worker_that_dies_while_it_is_fed_is_one_failed_file_on_the_server_s_loop_too() -> None:
    async def work() -> None:
        workers = Workers()
        doomed = asyncio.create_task(check_pdf(workers, zoo.pdf(padding=30_000_000), max_pages=600))
        while not workers.pids:
            await asyncio.sleep(0)
        os.kill(next(iter(workers.pids)), signal.SIGKILL)
        assert await refusal(doomed) == "file_broke"
        assert (await read(zoo.pdf(["still alive and well, thanks"]), workers)).pages == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(work(), 20))


def test_a_cancelled_reading_kills_its_worker() -> None:
    async def work() -> None:
        workers = Workers()
        reading = asyncio.create_task(check_pdf(workers, zoo.form_bomb(), max_pages=600))
        while not workers.pids:
            await asyncio.sleep(0.01)
        pid = next(iter(workers.pids))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run(work())


@pytest.mark.slow
def test_many_files_at_once_each_give_their_own_text() -> None:
    async def work() -> None:
        workers = Workers(processes=2)
        names = [f"document number {index} and its own text" for index in range(40)]
        contents = await asyncio.gather(*(read(zoo.pdf([name]), workers) for name in names))
        assert [content.read[0].text for content in contents] == names

    run(work(), timeout=50)


def test_more_files_than_may_wait_are_told_to_come_back() -> None:
    async def work() -> None:
        workers = Workers(processes=1, waiting=2)
        results = await asyncio.gather(*(read(zoo.pdf(), workers) for _ in range(4)), return_exceptions=True)
        busy = [result for result in results if isinstance(result, GatewayError)]
        assert [error.code for error in busy] == [Code.UNAVAILABLE] * 2
        assert all(error.retry_after for error in busy)

    run(work())


def test_a_worker_inherits_no_secret_and_may_write_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "planted")

    async def work() -> None:
        workers = Workers()
        reading = asyncio.create_task(check_pdf(workers, zoo.form_bomb(), max_pages=600))
        while not workers.pids:
            await asyncio.sleep(0.01)
        pid = next(iter(workers.pids))
        limits = ""
        while "Max file size             0" not in limits:
            await asyncio.sleep(0.01)
            with open(f"/proc/{pid}/limits") as lines:
                limits = lines.read()
        with open(f"/proc/{pid}/environ", "rb") as environment:
            assert b"planted" not in environment.read()
        assert f"Max address space         {768 << 20}" in limits
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    run(work())


def _await(work: Awaitable[PdfContent]) -> Any:
    async def inner() -> PdfContent:
        return await work

    return inner()
