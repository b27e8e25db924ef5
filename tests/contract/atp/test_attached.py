"""Messages that carry files: the model reads them, events name them, and what it cannot read is refused beforehand."""

from __future__ import annotations

import io
from typing import Any

import pypdfium2
import pytest

from tests.contract.atp.forms import form, headers
from tests.contract.requirements import requirement
from tests.doors.atp.house import Reply, exchange
from tests.runtime.turns.theatre import THREE, Theatre, play

READS: dict[str, Any] = {
    "main": [
        {"when": {"contains": "the word is seven"}, "say": [{"text": "I read seven."}]},
        {"when": {"contains": "was deleted"}, "say": [{"text": "It is gone."}]},
        {"say": [{"text": "I read nothing."}]},
    ]
}
SEVEN = "the word is seven"


async def attach(place: Theatre, chat: str, data: bytes, name: str, key: str = "k") -> str:
    path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/attachments"
    scope, _ = place._scope("POST", path, None, headers(key), None)
    raw = form(data, name)
    reply: Reply = await exchange(place.door, scope, [raw])
    assert reply.status == 202, reply.raw
    found: str = reply.data["attachment_id"]
    return found


def pdf_of(text: str) -> bytes:
    import typst

    made: bytes = typst.compile(text.encode(), format="pdf")  # pages that another program made
    with pypdfium2.PdfDocument(io.BytesIO(made)) as document:
        assert len(document) == 1
    return made


@requirement("A-ATT-4")
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.pdf"])
def test_the_model_reads_what_a_message_carries_also_in_later_turns(name: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        data = pdf_of(f"#set page(width: 20cm, height: 10cm)\n{SEVEN}") if name == "a.pdf" else SEVEN.encode()
        which = await attach(place, chat, data, name)
        watcher = await place.watch(chat)
        sent = {"message": "what does it say?", "attachment_ids": [which]}
        reply = await place.post(chat, "messages", sent, idempotency_key="m1")
        assert (reply.status, reply.json["attachment_ids"]) == (202, [which])
        await watcher.end(reply.json["turn_id"])
        assert watcher.text("main") == "I read seven."
        (manifest,) = watcher.all("turn.started")[0]["data"]["attachments"]
        assert (manifest["attachment_id"], manifest["original_name"], manifest["bytes"]) == (which, name, len(data))
        again = await place.post(chat, "messages", sent, idempotency_key="m1")
        assert again.json == reply.json
        path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/attachments/{which}"
        kept = (await place.call("GET", path, None, THREE)).data
        assert kept["attached_at"] is not None and kept["expires_at"].startswith("9999")

    play(READS, work)


@requirement("A-ATT-4", "T-MSG-3")
def test_a_deleted_file_is_told_of_and_stops_nothing() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        which = await attach(place, chat, b"nothing to see", "a.txt")
        watcher = await place.watch(chat)
        sent = {"message": "hm", "attachment_ids": [which]}
        first = await place.post(chat, "messages", sent, idempotency_key="m1")
        await watcher.end(first.json["turn_id"])
        path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/attachments/{which}"
        assert (await place.call("DELETE", path, None, THREE)).status == 202
        gone = await place.post(chat, "messages", sent, idempotency_key="m2")
        assert gone.status == 422 and list(gone.details) == ["attachment_ids.0"]
        again = await place.post(chat, "messages", sent, idempotency_key="m1")
        assert (again.status, again.json) == (202, first.json)  # the key was used: what became of the file is no matter
        for other in ({"message": "hm"}, {"message": "oh", "attachment_ids": [which]}):
            assert (await place.post(chat, "messages", other, idempotency_key="m1")).status == 409
        turn = await place.say(chat, "and now?")
        await watcher.end(turn)
        assert watcher.all("turn.completed")[-1]["turn_id"] == turn

    play(READS, work)


@requirement("A-ATT-4")
def test_what_no_model_can_read_is_refused_before_a_turn_opens() -> None:
    async def work(place: Theatre) -> None:
        chat, other = await place.chat(), await place.chat()
        song = await attach(place, chat, b"ID3\x04\0\0", "a.mp3", "k1")
        broken = await attach(place, chat, b"%PDF-1.7\nnot really", "a.pdf", "k2")
        elsewhere = await attach(place, other, b"x", "a.txt", "k3")
        for which in (song, broken, elsewhere, "att_01j5abcdefghjkmnpqrstvwxyz", "x"):
            sent = {"message": "hm", "attachment_ids": [which]}
            reply = await place.post(chat, "messages", sent, idempotency_key=f"m-{which}")
            assert (reply.status, list(reply.details)) == (422, ["attachment_ids.0"]), which
        unkeyed = await place.post(chat, "messages", {"message": "hm", "attachment_ids": [elsewhere]})
        assert unkeyed.status == 422
        turns = await place.call(
            "GET", f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/completions", None, THREE
        )
        assert turns.json["meta"]["total"] == 0

    play(READS, work)
