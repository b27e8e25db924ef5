"""Workspace files over the door: what the contract says, for every address and every wrong path."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import quote

import pypdfium2
import pytest

from tests.contract.requirements import requirement
from tests.doors.atp.house import House, Reply, live
from tests.runtime.files.test_workspace import WRONG

ANSWERED = {
    "/guide.md": (201, None),
    "/wiki": (409, "file_conflict"),
    "/skills": (409, "file_conflict"),
    "/": (409, "file_conflict"),
    "/guide.md/below": (409, "file_conflict"),
}


async def space(place: House) -> str:
    return f"/workspaces/{place.made.workspace_id}/files"


def at(path: str) -> str:
    return quote(path, safe="", errors="surrogatepass")


@requirement("A-FILE-1")
def test_a_file_is_created_read_changed_and_deleted() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        made = await place.call("POST", files, {"path": "/wiki/guide.md", "content": "# Guide\n"})
        assert made.status == 201
        described = made.data
        assert described == described | {"path": "wiki/guide.md", "name": "guide.md", "type": "file", "size": 8}
        assert described["mime_type"] == "text/markdown" and "content" not in described and "entries" not in described
        read = (await place.call("GET", f"{files}?path=/wiki/guide.md")).data
        assert read == described | {"content": "# Guide\n"}
        again = await place.call("POST", files, {"path": "/wiki/guide.md", "content": "x"})
        assert (again.status, again.json["error"]["type"]) == (409, "file_conflict")
        changed = await place.call("PUT", files, {"path": "/wiki/guide.md", "content": "more"})
        assert (changed.status, changed.data["size"]) == (200, 4)
        listed = (await place.call("GET", f"{files}?path=/")).data
        assert [(entry["path"], entry["type"], entry["mime_type"]) for entry in listed["entries"]] == [
            ("skills", "directory", None),
            ("wiki", "directory", None),
        ]
        assert (await place.call("DELETE", f"{files}?path=/wiki/guide.md")).status == 204
        gone = await place.call("GET", f"{files}?path=/wiki/guide.md")
        assert (gone.status, gone.json["error"]["type"]) == (404, "file_not_found")

    live(work)


@requirement("A-FILE-1")
@pytest.mark.parametrize("path", ANSWERED)
def test_what_is_there_already_is_in_the_way(path: str) -> None:
    async def work(place: House) -> None:
        files = await space(place)
        if path.count("/") > 1:
            await place.call("POST", files, {"path": "/guide.md", "content": "x"})
        reply = await place.call("POST", files, {"path": path, "content": "x"})
        status, kind = ANSWERED[path]
        assert reply.status == status and (kind is None or reply.json["error"]["type"] == kind)

    live(work)


@requirement("A-FILE-1")
def test_what_every_workspace_has_cannot_be_deleted() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        await place.call("POST", files, {"path": "/wiki/kept.md", "content": "x"})
        for path in ("/", "/wiki", "/skills"):
            for end in ("", "&recursive=true"):
                reply = await place.call("DELETE", f"{files}?path={path}{end}")
                assert (reply.status, reply.json["error"]["type"]) == (409, "file_conflict"), path
        assert (await place.call("GET", f"{files}?path=/wiki/kept.md")).data["content"] == "x"

    live(work)


@requirement("A-FILE-2")
def test_no_address_takes_a_path_that_cannot_be() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        for path in WRONG:
            if "\ud800" in path:  # cannot travel in a URL
                continue
            for reply in (
                await place.call("GET", f"{files}?path={at(path)}"),
                await place.call("DELETE", f"{files}?path={at(path)}&recursive=true"),
                await place.call("GET", f"{files}/download?path={at(path)}"),
                await place.call("POST", files, {"path": path, "content": "x"}),
                await place.call("PUT", files, {"path": path, "content": "x"}),
                await place.call("POST", f"{files}/convert-to-pdf", {"path": f"{path}.md"}),
            ):
                refused(reply, path)
        for query in ("", "?path", "?path=", "?path=/a&path=/b", "?path=%ff", "?path=/a&recursive=maybe"):
            reply = await place.call("DELETE", files + query)
            assert reply.status == 422, query

    live(work)


def refused(reply: Reply, path: str) -> None:
    # What is too long, or has become another path by its ending, may be unknown instead.
    assert reply.status in (422, 404, 429), (path, reply.status)


@requirement("A-FILE-3")
def test_a_download_is_the_file_under_its_name() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        for path, name, kind in (
            ("/a.md", 'filename="a.md"', "text/markdown; charset=utf-8"),
            ("/perché.txt", "filename=\"perch_.txt\"; filename*=UTF-8''perch%C3%A9.txt", "text/plain; charset=utf-8"),
            (
                '/say "hi".bin',
                "filename=\"say _hi_.bin\"; filename*=UTF-8''say%20%22hi%22.bin",
                "application/octet-stream",
            ),
        ):
            await place.call("POST", files, {"path": path, "content": "perché\n"})
            reply = await place.ask("GET", f"{files}/download?path={at(path)}")
            assert (reply.status, reply.raw) == (200, "perché\n".encode())
            assert reply.header("content-disposition") == f"attachment; {name}"
            assert reply.header("content-type") == kind
            assert reply.header("content-length") == "8"
            assert reply.header("x-content-type-options") == "nosniff"
        for path, status in (("/wiki", 409), ("/", 409), ("/absent", 404)):
            assert (await place.call("GET", f"{files}/download?path={path}")).status == status

    live(work)


@requirement("A-FILE-4")
def test_text_becomes_a_pdf_with_its_words_in_it() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        texts = {
            "/a.md": "# Título\n\n*uno* **due** `tre`\n\n| x | y |\n|--|--|\n| 4 | 5 |\n\n```python\nsei\n```\n",
            "/b.MARKDOWN": '#set page(width: 1pt)\n\n#read("/etc/passwd") $x$ \\#panic() ![p](file:///etc/passwd)',
            "/c.txt": "#panic()\n  a   b\n\nsette",
        }
        wanted = {
            "/a.md": ["Título", "uno due tre", "4", "sei"],
            "/b.MARKDOWN": ['#read("/etc/passwd")'],
            "/c.txt": ["sette"],
        }
        for path, text in texts.items():
            await place.call("POST", files, {"path": path, "content": text})
            reply = await place.ask("POST", f"{files}/convert-to-pdf", {"path": path})
            assert reply.status == 200, reply.raw
            assert reply.header("content-type") == "application/pdf"
            assert reply.header("content-disposition") == f'attachment; filename="{path[1:2]}.pdf"'
            words = written(reply.raw)
            assert all(word in words for word in wanted[path]), words
            assert "root:" not in words

    live(work)


@requirement("A-FILE-4")
def test_a_server_without_the_pdf_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crocevia.documents.typeset.find_spec", lambda name: None if name == "typst" else name)

    async def work(place: House) -> None:
        files = await space(place)
        await place.call("POST", files, {"path": "/a.md", "content": "x"})
        reply = await place.call("POST", f"{files}/convert-to-pdf", {"path": "/a.md"})
        error = reply.json["error"]
        assert (reply.status, error["type"], error["code"]) == (422, "file_service_error", "pdf_not_installed")
        assert "pip install 'crocevia[pdf]'" in error["message"]

    live(work)


def written(data: bytes) -> str:
    document = pypdfium2.PdfDocument(io.BytesIO(data))
    try:
        return "\n".join(page.get_textpage().get_text_range() for page in document)
    finally:
        document.close()


@requirement("A-FILE-4")
def test_only_text_becomes_a_pdf() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        await place.call("POST", files, {"path": "/a.html", "content": "x"})
        await place.call("POST", files, {"path": "/d.md/x", "content": "x"})
        for path, status in (("/a.html", 422), ("/wiki", 422), ("/absent.md", 404), ("/d.md", 409), ("/md", 422)):
            reply = await place.call("POST", f"{files}/convert-to-pdf", {"path": path})
            assert reply.status == status, path

    live(work)


@requirement("A-FILE-2")
def test_content_has_the_contracts_limits() -> None:
    async def work(place: House) -> None:
        files = await space(place)
        bad: list[Any] = ["", "x" * 1_048_577, "y\n" * 600_000, "x\n" * 1001, 1, None, [], "\ud800"]
        for content in bad:
            refused = await place.call("POST", files, {"path": "/a", "content": content})
            large = isinstance(content, str) and len(content) > 1_048_576
            assert refused.status == 422
            assert refused.json["error"]["type"] == ("file_too_large" if large else "validation_error"), content
        assert (await place.call("POST", files, {"path": "/MEMORY.md", "content": "x" * 12_001})).status == 422
        assert (await place.call("POST", files, {"path": "/MEMORY.md", "content": "x" * 12_000})).status == 201
        assert (await place.call("POST", files, {"path": "/é", "content": "é" * 524_288})).status == 201

    live(work)
