"""Bad input where bytes and names come in: a clear 4xx, nothing stored, nothing left on the disk, whatever it was."""

from __future__ import annotations

import gzip
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import pytest

from crocevia.documents import workers
from tests.contract.atp.forms import form, headers
from tests.contract.atp.studio import Studio, paint
from tests.contract.atp.test_attachments import chat, send
from tests.contract.atp.test_images import png
from tests.contract.requirements import requirement
from tests.doors.atp.house import THREE, House, live

# As they stand in an address: every way that has been used to spell «the folder above» or «another root».
SPELLINGS = (
    *("..", "/..", "/../", "/../../etc/passwd", "/a/../../b", "../../../../etc/passwd", "/..;/x", "/..."),
    *("%2e%2e%2fx", "/%2e%2e/x", "/.%2e/x", "/%2e%2e%2f%2e%2e%2fx", "%2F..%2Fx", "/..%2fx", "/..%5cx", "/..\\x"),
    *("/%252e%252e%252fx", "/%c0%ae%c0%ae/x", "/%c0%af", "/%e0%80%ae", "/%u002e%u002e/x", "/%00", "/a%00.md"),
    *("/a%0d%0aX-Evil:%201", "/a%0a", "//host/share", "%5c%5chost%5cshare", "C:%5cx", "C:/x", "file:///etc/passwd"),
    *("/./x", "/a/./b", "/a//b", "/a/", "~/x", "~root", "", "%20", "x", "/%ff%fe"),
)
# What these spell is decoded once and no more: a name like any other, which is not there.
NAMES = {"/%252e%252e%252fx": 404, "/%u002e%u002e/x": 404}


def everything(place: House) -> dict[str, bytes]:
    """All bytes of the home but the store's own."""
    home = place.control.home.path
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and not path.name.startswith("crocevia.db")
    }


@requirement("A-FILE-2")
def test_no_spelling_of_a_way_out_is_a_path() -> None:
    async def work(place: House) -> None:
        place.control.throttle.admit = lambda who, what, limit: None  # type: ignore[method-assign]
        space = f"/workspaces/{place.made.workspace_id}"
        before = everything(place)
        for spelled in SPELLINGS:
            for method, path in (
                ("GET", f"{space}/files?path={spelled}"),
                ("GET", f"{space}/files/download?path={spelled}"),
                ("DELETE", f"{space}/files?path={spelled}&recursive=true"),
            ):
                reply = await place.call(method, path)
                assert reply.status == NAMES.get(spelled, 422), (method, spelled, reply.raw)
        for spelled in SPELLINGS:
            if "?" in spelled:
                continue
            for path in (f"/workspaces/{spelled}/files?path=/", f"{space}/{spelled}", f"/agents/{spelled}"):
                place.strict = False  # some of these are addresses of lists
                reply = await place.call("PUT", path, {"name": "x"})
                assert 400 <= reply.status < 500, (path, reply.status)
        assert everything(place) == before

    live(work)


@requirement("A-FILE-2")
def test_paths_that_differ_only_in_form_are_one_path() -> None:
    async def work(place: House) -> None:
        files = f"/workspaces/{place.made.workspace_id}/files"
        for composed in ("/perché.md", "/Å.md", "/한.md", "/ñ/é.md"):
            apart = unicodedata.normalize("NFD", composed)
            assert apart != composed
            made = await place.call("POST", files, {"path": apart, "content": "x"})
            assert (made.status, made.data["path"]) == (201, unicodedata.normalize("NFC", composed)[1:])
            assert (await place.call("POST", files, {"path": composed, "content": "y"})).status == 409
        assert len([name for name in everything(place) if name.startswith("files")]) == 4

    live(work)


SENT = {
    "../../x.txt": "x.txt",
    "..\\..\\x.txt": "x.txt",
    "/etc/passwd.txt": "passwd.txt",
    "C:\\secrets\\x.txt": "x.txt",
    "a%0d%0aX-Evil: 1.txt": "a%0d%0aX-Evil: 1.txt",
    "perche\u0301.txt": "perché.txt",
    "..txt": "..txt",
    "a\u2028b.txt": None,
    "a\x00.txt": None,
    "a\u202etxt.exe": None,
    "...": None,
}


@requirement("A-ATT-3")
def test_a_name_is_its_last_part_in_one_form_and_never_a_place() -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        for index, (sent, kept) in enumerate(SENT.items()):
            reply = await send(place, path, [form(b"x", sent)], f"k{index}")
            if kept is None:
                assert reply.status == 422, sent
                continue
            assert (reply.status, reply.data["original_name"]) == (202, kept), sent
            read = await place.ask("GET", f"{path}/{reply.data['attachment_id']}/download?kind=original", headers=THREE)
            assert read.status == 200 and not [name for name, _ in read.headers if "evil" in name]
            assert all("\r" not in value and "\n" not in value for _, value in read.headers)
        composed = await send(place, path, [form(b"x", "perché.txt")], "k5")
        assert composed.data["original_name"] == "perché.txt"  # the same upload, spelled another way
        names = {Path(name).parent.as_posix() for name in everything(place) if name.startswith("files")}
        assert names == {"files/attachments"}

    live(work)


@requirement("A-BODY-1", "A-ATT-3")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_body_is_never_inflated(coding: str) -> None:
    squeezed = zlib.compress(b" " * 50_000_000, 9) if coding == "deflate" else gzip.compress(b" " * 50_000_000, 9)

    async def work(place: House) -> None:
        before = everything(place)
        coded = {"content-encoding": coding}
        assert (await place.call("POST", "/workspaces", raw=[squeezed], headers=coded)).status == 422
        path = await chat(place)
        for raw in (squeezed, form(squeezed, "a.pdf"), form(squeezed, "a.txt")):
            assert (await send(place, path, [raw], **coded)).status == 422
        assert everything(place) == before

    live(work)


async def stops(place: House, path: str, pieces: list[bytes], lines: dict[str, str]) -> list[Any]:
    """What is answered to a caller who hangs up after `pieces`."""
    waiting: list[Any] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting.append({"type": "http.disconnect"})
    sent: list[Any] = []

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    all_lines = {**lines, "authorization": f"Bearer {place.ada.key}"}
    scope = {"type": "http", "method": "POST", "path": f"/api/v1{path}", "query_string": b""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in all_lines.items()]
    await place.door(scope, receive, send)
    return sent


@requirement("A-IMG-3", "A-BODY-1")
def test_a_caller_who_leaves_in_the_middle_of_any_body_leaves_nothing() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        before, rows = everything(place), await place.stored()
        whole = form(png(600), "a.png")
        files = f"/workspaces/{place.made.workspace_id}/files"
        for at in (0, 10, 90, len(whole) // 2, len(whole) - 1):
            assert await stops(place, "/images/uploads", [whole[:at]], headers(None)) == []
        for path in ("/images/generations", "/tools", files, f"{files}/convert-to-pdf"):
            assert await stops(place, path, [b'{"path":"/a.md",', b'"content":"'], {}) == []
        assert (everything(place), await place.stored()) == (before, rows)

    paint(work)


@requirement("A-IMG-3")
def test_no_form_but_one_whole_picture_is_an_upload() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        place.control.throttle.admit = lambda who, what, limit: None  # type: ignore[method-assign]
        before, whole = everything(place), form(png(), "a.png")
        for raw in (b"", b"x", whole[:-4], form(png(), end="") + whole, form(png(), field="picture"), form(b"")):
            reply = await place.call("POST", "/images/uploads", headers=headers(None), raw=[raw])
            assert reply.status == 422, raw[:20]
        assert everything(place) == before

    paint(work)


@requirement("A-FILE-4")
def test_making_a_pdf_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(workers._ENVIRONMENT, "TMPDIR", str(tmp_path))

    async def work(place: House) -> None:
        files = f"/workspaces/{place.made.workspace_id}/files"
        for path, content in (("/a.md", "# Hi\n\n" + "words " * 500), ("/b.md", "![x](file:///etc/passwd)\n" * 99)):
            await place.call("POST", files, {"path": path, "content": content})
            before = everything(place)
            assert (await place.ask("POST", f"{files}/convert-to-pdf", {"path": path})).status in (200, 422)
            assert (everything(place), list(tmp_path.rglob("*"))) == (before, [])

    live(work)
