import asyncio
import io
import struct
import time

import pytest
from PIL import Image

from crocevia.core.errors import Code, GatewayError
from crocevia.documents.images import prepare_photo
from crocevia.documents.sniff import sniff
from crocevia.documents.workers import Workers
from tests.aio import run
from tests.documents import zoo


def taken(data: bytes, *, side: int = 8000, pixels: int = 64_000_000) -> tuple[str, bytes]:
    async def work() -> tuple[str, bytes]:
        media_type = sniff(data) or ""
        return await prepare_photo(Workers(), data, media_type, max_pixels=pixels, max_side=side)

    return run(work())


def refusal(data: bytes, *, side: int = 8000) -> str:
    with pytest.raises(GatewayError) as caught:
        taken(data, side=side)
    assert caught.value.code is Code.INVALID_REQUEST
    return caught.value.message.reason


def colours(data: bytes) -> tuple[tuple[int, int], str, str]:
    """Size, and the names of the colours at the top left and the bottom right."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    corners = [picture.getpixel(place) for place in ((2, 2), (picture.width - 3, picture.height - 3))]
    names = ["red" if pixel[0] > pixel[2] else "blue" for pixel in corners]  # type: ignore[index]
    return picture.size, names[0], names[1]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_a_plain_photo_within_the_limits_passes_byte_for_byte(kind: str) -> None:
    data = zoo.photo(kind)
    assert taken(data) == (f"image/{kind.lower()}", data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_rotated_photo_arrives_upright_without_metadata(kind: str) -> None:
    media_type, turned = taken(zoo.photo(kind, (64, 32), orientation=6))
    assert media_type == "image/jpeg"
    assert colours(turned) == ((32, 64), "red", "blue")
    assert b"Exif" not in turned
    assert b"secret serial" not in turned


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photo_that_stands_upright_loses_what_it_tells_and_no_pixel(kind: str) -> None:
    data = zoo.photo(kind, (64, 32), orientation=1)
    assert b"secret serial" in data
    media_type, bare = taken(data)
    assert media_type == f"image/{kind.lower()}" and b"secret serial" not in bare
    assert not Image.open(io.BytesIO(bare)).getexif()
    before, after = (Image.open(io.BytesIO(each)).convert("RGB").tobytes() for each in (data, bare))
    assert before == after


def test_a_rotated_heic_photo_arrives_upright_as_a_jpeg_without_metadata() -> None:
    media_type, turned = taken(zoo.rotated_heic())
    assert media_type == "image/jpeg"
    assert colours(turned) == ((32, 64), "red", "blue")
    assert b"Camera" not in turned
    assert not Image.open(io.BytesIO(turned)).getexif()


@pytest.mark.parametrize(("kind", "expected"), [("JPEG", "image/jpeg"), ("PNG", "image/jpeg"), ("WEBP", "image/jpeg")])
def test_a_photo_with_a_side_over_the_limit_is_shrunk_in_proportion(kind: str, expected: str) -> None:
    media_type, shrunk = taken(zoo.photo(kind, (400, 200)), side=100)
    assert media_type == expected
    assert colours(shrunk) == ((100, 50), "red", "blue")


def test_transparency_survives_a_rewrite() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (200, 100), (255, 0, 0, 0)).save(out, "PNG")
    media_type, shrunk = taken(out.getvalue(), side=50)
    assert media_type == "image/png"
    assert Image.open(io.BytesIO(shrunk)).convert("RGBA").getpixel((1, 1))[3] == 0  # type: ignore[index]


def test_an_image_small_on_the_wire_and_huge_in_memory_is_refused_from_its_header() -> None:
    bomb = zoo.bomb_png()
    assert len(bomb) < 200_000
    before, started = _resident(), time.perf_counter()
    assert refusal(bomb) == "image_pixels"
    assert time.perf_counter() - started < 0.2
    assert _resident() - before < 20 * 1024 * 1024


def _resident() -> int:
    with open("/proc/self/statm") as figures:
        return int(figures.read().split()[1]) * 4096


HOSTILE = {
    "JPEG cut short": zoo.photo("JPEG", (300, 300))[:-200],
    "PNG cut short": zoo.photo("PNG", (300, 300))[:-60],
    "WebP cut short": zoo.photo("WEBP", (300, 300))[:-40],
    "HEIC cut short": zoo.rotated_heic()[:300],
    "PNG of no pixels": zoo.png_header(0, 0) + zoo.chunk(b"IEND", b""),
    "only a signature": b"\x89PNG\r\n\x1a\n",
    "HEIC that asks for 4 GB": zoo.rotated_heic()[:28] + b"\xff\xff\xff\xff" + zoo.rotated_heic()[32:],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_damaged_photo_is_refused_before_it_is_sent(case: str) -> None:
    assert refusal(HOSTILE[case]) == "image_damaged"


def _lying_heic() -> bytes:
    data = zoo.rotated_heic()
    return data.replace(b"ispe" + bytes(4) + struct.pack(">II", 64, 64), b"ispe" + bytes(4) + struct.pack(">II", 8, 8))


@pytest.mark.parametrize(
    "data",
    [
        zoo.png_header(3000, 3000) + zoo.chunk(b"IDAT", b"not deflate") + zoo.chunk(b"IEND", b""),
        zoo.rotated_heic()[:-30] + bytes(30),
        zoo.photo("JPEG", (300, 300))[:-400] + b"\xff\xd9",
    ],
)
def test_a_photo_that_breaks_in_its_worker_is_a_clear_refusal_or_a_picture(data: bytes) -> None:
    try:
        assert colours(taken(data, side=30)[1])[0] <= (64, 64)
    except GatewayError as error:
        assert error.message.reason in {"image_damaged", "file_broke", "file_heavy"}


def test_a_header_that_lies_low_does_not_get_a_bomb_decoded() -> None:
    data = _lying_heic()
    assert data != zoo.rotated_heic()
    try:
        assert colours(taken(data)[1])[0] <= (64, 64)
    except GatewayError as error:
        assert error.code is Code.INVALID_REQUEST


def test_many_photos_at_once_keep_the_loop_free() -> None:
    async def work() -> float:
        workers = Workers(processes=2)
        data = zoo.photo("JPEG", (2000, 1500), orientation=3)
        working = [
            asyncio.create_task(prepare_photo(workers, data, "image/jpeg", max_pixels=10**8, max_side=8000))
            for _ in range(4)
        ]
        worst = 0.0
        while not all(task.done() for task in working):
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            worst = max(worst, time.perf_counter() - before)
        assert {(await task)[0] for task in working} == {"image/jpeg"}
        return worst

    assert run(work(), timeout=30) < 0.5
