import asyncio
import base64
import io
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from PIL import Image

from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render
from crocevia.documents.intake import RESPONSES, Attachment, Prepared
from crocevia.documents.jobs import Job, Outcome, PdfContent, PdfPage
from crocevia.documents.pdf import check_pdf, read_pdf
from crocevia.documents.workers import Workers
from crocevia.runtime.intake import Intake
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


def test_a_filled_form_is_read_with_its_values_and_comments_and_drawn_with_them() -> None:
    filled = [("Name", "Più Rossi"), ("City", "Forlì 😀")]
    content = run(_await(read(zoo.form_pdf(filled), min_text_chars=200)))
    (page,) = content.read
    assert page.text.startswith("Modulo di iscrizione.")
    assert "Name: Più Rossi" in page.text and "City: Forlì 😀" in page.text and "Privacy: [x] Yes" in page.text
    assert "Ada: Firmare qui." in page.text
    assert "hidden words" not in page.text and "a link" not in page.text
    drawn = Image.open(io.BytesIO(page.image or b"")).convert("L")
    scale = drawn.height / 842
    field = drawn.crop([round(scale * side) for side in (40, 842 - 730, 400, 842 - 700)])  # type: ignore[arg-type]
    assert field.getextrema()[0] < 100  # letters


def test_what_is_filled_in_does_not_stand_for_a_scan_and_counts_towards_the_limit() -> None:
    long = [("Name", "x" * 400)]
    (scan,) = run(_await(read(zoo.form_pdf(long, page=b"1 0 0 rg 100 100 300 300 re f")))).read
    assert scan.image is not None and "x" * 400 in scan.text
    content = run(_await(read(zoo.form_pdf(long), max_chars=100)))
    assert len(content.read[0].text) == 100 and not content.complete


@pytest.mark.parametrize("mark", [b"startxref", b"%%EOF"])
def test_a_writer_may_leave_out_one_of_the_two_last_lines(mark: bytes) -> None:
    whole = zoo.pdf(["Every word of it."])
    assert mark in whole
    assert run(_await(read(whole.replace(mark, b"")))).read[0].text == "Every word of it."


class _Clerk(Workers):
    """Takes no time of its own: each file waits until it is told."""

    def __init__(self) -> None:
        super().__init__(processes=2, waiting=40)
        self.at_work: list[asyncio.Future[bytes]] = []
        self.begun: list[str] = []

    async def _spend(self, job: Job, data: bytes, max_output: int) -> bytes:
        self.at_work.append(asyncio.get_running_loop().create_future())
        self.begun.append("slow" if b"slow" in data else "quick")
        return await self.at_work[-1]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_nobody_waits_for_another_s_second_file_and_nobody_takes_every_place() -> None:
    content = PdfContent(pages=1, read=(PdfPage(text="read"),))
    done = msgspec.msgpack.encode(Outcome(result=msgspec.Raw(msgspec.msgpack.encode(content))))

    async def work() -> None:
        clerk = _Clerk()
        intake = Intake(workers=clerk)

        def send(owner: str, count: int) -> list[asyncio.Task[tuple[Prepared, ...]]]:
            file = Attachment(param="x", data=base64.b64encode(zoo.pdf([owner])).decode(), kind="document")
            sending = (intake.prepare_as_text([file], RESPONSES, images=False, tenant=owner) for _ in range(count))
            return [asyncio.create_task(one) for one in sending]

        slow = send("slow", 24)
        await _until(lambda: sum(task.done() for task in slow) == 4)  # one owner alone has half of the 40 places
        gone, quick = send("quick", 2)
        await asyncio.sleep(0.1)  # until both wait for their turn, as nothing outside tells
        gone.cancel()
        for count in range(20):
            clerk.at_work[count].set_result(done)
            await _until(lambda count=count: len(clerk.begun) >= min(21, count + 3))
        assert "quick" in clerk.begun[2:4], clerk.begun
        clerk.at_work[-1].set_result(done)
        results = await asyncio.gather(*slow, quick, return_exceptions=True)
        assert [type(one) for one in results].count(GatewayError) == 4
        assert quick.result()[0].page_texts == ("read",)
        await intake.close()

    run(work(), timeout=30)
