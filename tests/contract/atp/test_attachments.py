"""Attachments of chats over the door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crocevia.core.limits import Quotas
from crocevia.runtime.control import chat_attachments
from crocevia.runtime.files.workspace import WorkspaceFiles
from tests.contract.atp.forms import BOUNDARY, form, headers
from tests.contract.requirements import requirement
from tests.doors.atp.house import THREE, House, Reply, live, site_of

PDF = b"%PDF-1.7\n1 0 obj\n"
GOOD = {
    "notes.md": b"# Hi\n",
    "notes.TXT": "perché".encode(),
    "latin.txt": b"perch\xe9",
    "wide.csv": "perché,più".encode("utf-16"),
    "rows.csv": b"a,b\r\n1,2\r\n",
    "paper.pdf": PDF,
    "song.mp3": b"ID3\x04\0\0",
    "raw.mp3": b"\xff\xfb\x90\x64",
    "film.mp4": b"\0\0\0\x18ftypmp42",
}
BAD = {
    "notes.exe": b"x",
    "notes": b"x",
    "notes.md.exe": b"x",
    "empty.txt": b"",
    "nul.txt": b"a\0b",
    "text.pdf": b"just words",
    "text.mp3": b"just words",
    "gif.mp3": b"\xff\xd8\xff\xe0",
    "text.mp4": b"just words",
    "zip.csv": b"PK\x03\x04\0\0",
}


async def chat(place: House) -> str:
    made = await place.call("POST", f"/workspaces/{place.made.workspace_id}/chats", {"team_id": place.made.team_id})
    return f"/workspaces/{place.made.workspace_id}/chats/{made.data['id']}/attachments"


async def send(place: House, path: str, raw: list[bytes], key: str | None = "k1", **more: str) -> Reply:
    return await place.call("POST", path, headers=headers(key, **more), raw=raw)


def limit(place: House, **limits: int) -> None:
    """The door with these limits instead of the usual ones."""
    new = Quotas(**limits)
    place.control = msgspec.structs.replace(
        place.control, limits=new, files=WorkspaceFiles(place.control.home.files, new)
    )
    place.door = site_of(place.control)


def on_disk(place: House) -> list[Path]:
    return [path for path in place.control.home.files.rglob("*") if path.is_file()]


@requirement("A-ATT-1")
@pytest.mark.parametrize("name", GOOD)
def test_a_file_is_kept_as_it_came(name: str) -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        made = await send(place, path, [form(GOOD[name], name)])
        assert made.status == 202, made.raw
        assert made.header("x-envai-contract-version") == "3"
        value = made.data
        assert (value["original_name"], value["byte_size"], value["lifecycle"]) == (name, len(GOOD[name]), "ready")
        assert value["conversion"]["status"] == "not_required" and value["derived"] is None
        one = f"{path}/{value['attachment_id']}"
        assert (await place.call("GET", one, headers=THREE)).data == value
        assert (await place.call("GET", path, headers=THREE)).data == {"attachments": [value]}
        read = await place.ask("GET", f"{one}/download?kind=original", headers=THREE)
        assert (read.status, read.raw, read.header("x-envai-contract-version")) == (200, GOOD[name], "3")
        assert read.header("content-disposition") == f'attachment; filename="{name}"'
        for refused in (
            await place.call("GET", f"{one}/download?kind=derived", headers=THREE),
            await place.call("POST", f"{one}/retry", headers=THREE | {"idempotency-key": "r"}),
        ):
            assert refused.status == 409
        assert refused.json["error"]["code"] == "attachment_retry_not_permitted"
        gone = await place.call("DELETE", one, headers=THREE)
        assert (gone.status, gone.data["lifecycle"], gone.data["revision"]) == (202, "deleted", 2)
        assert (await place.call("DELETE", one, headers=THREE)).data == gone.data
        assert (await place.call("GET", f"{one}/download?kind=original", headers=THREE)).status == 409
        assert (await place.call("GET", path, headers=THREE)).data == {"attachments": []}
        assert on_disk(place) == []

    live(work)


@requirement("A-ATT-2")
def test_a_key_makes_one_attachment() -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        first = await send(place, path, [form(b"one")])
        again = await asyncio.gather(
            *(place.ask("POST", path, headers=headers(), raw=[form(b"one")]) for _ in range(4))
        )
        assert [reply.data for reply in again] == [first.data] * 4
        other = await send(place, path, [form(b"two")])
        assert (other.status, other.json["error"]["code"]) == (409, "idempotency_conflict")
        renamed = await send(place, path, [form(b"one", "b.txt")])
        assert renamed.status == 409
        assert (await send(place, path, [form(b"one")], "k2")).data["attachment_id"] != first.data["attachment_id"]
        assert len(on_disk(place)) == 2

    live(work)


@requirement("A-ATT-3")
def test_what_is_no_such_file_or_form_is_refused_and_leaves_nothing() -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        whole = form(b"x" * 100)
        for name, content in BAD.items():
            assert (await send(place, path, [form(content, name)])).status == 422, name
        for wrong in ("", "a\x01.txt", "..", "   ", "x" * 252 + ".txt", "/"):
            assert (await send(place, path, [form(b"x", wrong)])).status == 422, wrong
        for raw in (
            [],
            [b""],
            [b"no form at all"],
            [whole[:-3]],
            [whole[:60]],
            [form(b"x", end="")],
            [form(b"x", field="other")],
            [form(b"x", end="") + form(b"y")],
            [form(b"x").replace(b"\r\n", b"\n")],
            [f"--{BOUNDARY}--\r\n".encode()],
            [b"--" + BOUNDARY.encode() + b"\r\n" + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n"],
            [b"--" + BOUNDARY.encode() + b"\r\n" + b"X-A: b\r\n" * 10_000 + b"\r\n"],
        ):
            assert (await send(place, path, raw)).status == 422, raw[:1]
        for kind in ("text/plain", "multipart/form-data", f"multipart/form-data; boundary={'b' * 71}", ""):
            assert (await send(place, path, [whole], **{"content-type": kind})).status == 422, kind
        for key in (None, "", "a b", "é", "x" * 256):
            assert (await send(place, path, [whole], key)).status == 422, key
        assert on_disk(place) == []

    live(work)


@requirement("A-ATT-3")
def test_what_is_too_large_is_413_however_it_comes() -> None:
    async def work(place: House) -> None:
        limit(place, attachment_bytes=200_000)
        path = await chat(place)
        assert (await send(place, path, [form(b"x" * 200_000)])).status == 202
        large = form(b"x" * 200_001)
        pieces = [large[at : at + 10_000] for at in range(0, len(large), 10_000)]
        assert (await send(place, path, [large], "k2")).status == 413
        assert (await send(place, path, pieces, "k2", **{"content-length": "10"})).status == 413
        endless = [form(b"", end="")] + [b"x" * 60_000] * 100
        assert (await send(place, path, endless, "k2")).status in (413, 422)
        assert len(on_disk(place)) == 1

    live(work)


@requirement("A-ATT-3")
def test_a_chat_and_a_user_have_room_for_so_much_and_not_for_a_byte_more() -> None:
    async def work(place: House) -> None:
        limit(place, chat_attachments=2, user_attachment_bytes=11)
        path, other = await chat(place), await chat(place)
        first = (await send(place, path, [form(b"12345")])).data["attachment_id"]
        assert (await send(place, path, [form(b"1")], "k2")).status == 202
        full = await send(place, path, [form(b"1")], "k3")
        assert (full.status, set(full.details), "2" in full.details["file"][0]) == (422, {"file"}, True)
        over = await send(place, other, [form(b"123456")])
        assert (over.status, set(over.details), "11 bytes" in over.details["file"][0]) == (422, {"file"}, True)
        assert (await send(place, other, [form(b"12345")])).status == 202
        assert len(on_disk(place)) == 3
        assert (await place.call("DELETE", f"{path}/{first}", headers=THREE)).status == 202
        assert (await send(place, path, [form(b"1")], "k3")).status == 202

    live(work)


@requirement("A-FILE-2")
def test_a_workspace_has_room_for_so_much_and_not_for_a_byte_more() -> None:
    async def work(place: House) -> None:
        limit(place, workspace_entries=3, workspace_bytes=10)
        files = f"/workspaces/{place.made.workspace_id}/files"

        async def put(method: str, path: str, content: str) -> Reply:
            return await place.call(method, files, {"path": path, "content": content})

        assert (await put("POST", "/a/b.md", "12345")).status == 201
        over = await put("POST", "/c.md", "123456")
        assert (over.status, set(over.details), "10 bytes" in over.details["content"][0]) == (422, {"content"}, True)
        assert (await put("POST", "/c.md", "12345")).status == 201
        full = await put("POST", "/d.md", "1")
        assert (full.status, set(full.details), "3 files" in full.details["path"][0]) == (422, {"path"}, True)
        assert (await put("PUT", "/c.md", "123456")).status == 422
        assert (await put("PUT", "/c.md", "1")).status == 200
        assert (await put("PUT", "/c.md", "12345")).status == 200
        assert (await place.call("DELETE", f"{files}?path=/a&recursive=true")).status == 204
        assert (await put("POST", "/d.md", "12345")).status == 201

    live(work)


@requirement("A-ATT-3")
def test_a_caller_who_leaves_midway_leaves_nothing() -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        gone: list[Any] = [
            {"type": "http.request", "body": form(b"x" * 5_000_000)[:4_000_000], "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return gone.pop(0)

        async def note(message: Any) -> None:
            sent.append(message)

        lines = headers() | {"authorization": f"Bearer {place.ada.key}"}
        scope = {"type": "http", "method": "POST", "path": f"/api/v1{path}", "query_string": b""}
        scope["headers"] = [(name.encode(), value.encode()) for name, value in lines.items()]
        await place.door(scope, receive, note)
        assert (sent, on_disk(place)) == ([], [])

    live(work)


@requirement("A-ATT-1")
def test_what_nobody_sends_is_gone_after_a_day() -> None:
    async def work(place: House) -> None:
        path = await chat(place)
        made = (await send(place, path, [form(b"x")])).data
        kept = (await send(place, path, [form(b"y")], "k2")).data
        chat_id = made["chat_id"]
        await chat_attachments.attach(place.control, chat_id, [kept["attachment_id"]])
        tomorrow = place.control.clock() + 86_401
        place.control = msgspec.structs.replace(place.control, clock=lambda: tomorrow)
        place.door = site_of(place.control)
        assert (await place.call("GET", f"{path}/{made['attachment_id']}", headers=THREE)).status == 404
        await chat_attachments.drop_expired(place.control)
        (left,) = on_disk(place)
        assert left.name == kept["attachment_id"]
        found = await chat_attachments.read(place.control, place.ada.id, kept["attachment_id"])
        assert found is not None and found[1] == b"y"

    live(work)
