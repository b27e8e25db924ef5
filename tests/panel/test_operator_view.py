"""Chats, the waiting room, files and webhooks: what is seen, what can be done about it, and what comes too late."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec
import pytest

from crocevia.core.turn import entries as e
from crocevia.runtime.control import operator_view
from crocevia.storage import images
from crocevia.storage.database import Transaction
from crocevia.storage.operator_view import alert_page
from crocevia.storage.spending import add_alert
from tests.aio import run

from .site import HOSTILE, Place, site


async def _asked(place: Place, message: str) -> tuple[str, dict[str, str]]:
    """A chat that waits, and its request as the twin of the waiting room has it."""
    chat_id = await place.chat(message)
    (row,) = (await place.get("/panel/waiting.json")).json()["rows"]
    assert row["chat_id"] == chat_id
    return chat_id, row


def _address(what: str, row: Mapping[str, str]) -> str:
    return f"/panel/waiting/{what}?chat={row['chat_id']}&id={row['id']}"


@pytest.mark.parametrize(("verdict", "action"), [("approve", "approved"), ("deny", "denied")])
def test_an_approval_is_answered_once_and_written_down(verdict: str, action: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            chat_id, row = await _asked(place, "call write")
            assert (row["kind"], row["tool"], row["agent"]) == ("approval", "write", "guard")
            home = await place.get("/panel", **{"accept-language": "en"})
            assert '<span class="count">1</span>' in home.text
            answer = await place.post(_address("decide", row), {"verdict": verdict, "reason": "so"})
            assert answer.headers["location"] == f"/panel/waiting?done={action}"
            twin = await place.until(chat_id, "succeeded")
            (response,) = [step for step in twin["steps"] if step["type"] == "approval.response"]
            assert response["text"] == "so"
            (result,) = [step for step in twin["steps"] if step["type"] == "agent.tool.complete"]
            assert (result["name"], "approval_denied" in result["text"]) == ("write", verdict == "deny")
            late = await place.post(_address("decide", row), {"verdict": "approve"})
            assert late.status_code in (404, 409) and 'role="alert"' in late.text
            assert (action, "chats", chat_id) in await place.audited()

    run(work(), 40)


def test_a_client_tool_is_answered_for_the_app() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            chat_id, row = await _asked(place, "call camera")
            assert row["kind"] == "tool"
            answer = await place.post(_address("answer", row), {"output": "a red door"})
            assert answer.headers["location"] == "/panel/waiting?done=answered"
            twin = await place.until(chat_id, "succeeded")
            assert any("a red door" in step["text"] for step in twin["steps"] if step["type"] == "agent.text")
            again = await place.post(_address("answer", row), {"output": "other"})
            assert again.status_code in (404, 409)

    run(work(), 40)


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("decide", {}),
        ("decide", {"verdict": "maybe"}),
        ("answer", {"output": "x" * ((1 << 20) + 1)}),
    ],
)
def test_what_is_no_answer_changes_nothing(what: str, form: dict[str, str]) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            _, row = await _asked(place, "call write" if what == "decide" else "call camera")
            answer = await place.post(_address(what, row), form)
            assert answer.status_code == 422 and 'role="alert"' in answer.text
            assert (await place.get("/panel/waiting.json")).json()["rows"] == [row]

    run(work(), 40)


def test_a_request_cannot_be_answered_through_another_chat() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            _, row = await _asked(place, "call write")
            for chat in ("nothing", await place.chat("ciao")):
                answer = await place.post(f"/panel/waiting/decide?chat={chat}&id={row['id']}", {"verdict": "approve"})
                assert answer.status_code == 404
            assert (await place.get("/panel/waiting.json")).json()["rows"] == [row]

    run(work(), 40)


def test_a_turn_is_steered_and_then_cancelled() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            chat_id, _ = await _asked(place, "call write")
            for text, status in (("", 409), ("x" * 10_001, 409), (f"be quick {HOSTILE}", 303)):
                answer = await place.post(f"/panel/chats/steer?id={chat_id}", {"text": text})
                assert answer.status_code == status
            twin = await place.until(chat_id, "waiting")
            assert [step["type"] for step in twin["steps"]].count("turn.steered") == 1
            assert (await place.post(f"/panel/chats/cancel?id={chat_id}")).status_code == 303
            twin = await place.until(chat_id, "canceled")
            assert twin["steps"][-1]["type"] == "turn.cancelled"
            assert (await place.get("/panel/waiting.json")).json()["rows"] == []
            for what in ("steer", "cancel"):
                late = await place.post(f"/panel/chats/{what}?id={chat_id}", {"text": "hello?"})
                assert late.status_code == 409 and 'role="alert"' in late.text
                assert (await place.post(f"/panel/chats/{what}?id=nothing", {"text": "x"})).status_code == 404
            assert {("steered", "chats", chat_id), ("cancelled", "chats", chat_id)} <= set(await place.audited())

    run(work(), 40)


def test_the_timeline_joins_deltas_and_can_stop_at_any_step() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            chat_id = await place.chat("ciao a tutti")
            twin = await place.until(chat_id, "succeeded")
            types = [step["type"] for step in twin["steps"]]
            assert types[0] == "turn.started" and types[-1].startswith(("turn.completed", "chat.title"))
            (said,) = [step for step in twin["steps"] if step["type"] == "agent.text"]
            assert said["text"] == "You said: ciao a tutti" and said["depth"] == 1
            assert [step["seq"] for step in twin["steps"]] == sorted({step["seq"] for step in twin["steps"]})
            for step, shown in (("2", 2), ("0", 1), ("999999", len(types)), ("x", len(types)), ("²", len(types))):
                page = await place.get(f"/panel/chats/one?id={chat_id}&step={step}")
                assert page.text.count('<li class="depth-') == len(types)
                assert len(re.findall(r'<li class="depth-\d"\s*>', page.text)) == shown

    run(work(), 40)


def test_every_kind_of_event_has_its_words_in_both_languages() -> None:
    from crocevia.panel.i18n import messages

    known = {operator_view._JOINED.get(kind, e.type_of(kind)) for kind in e.PUBLIC - {e.ToolDelta}}  # type: ignore[attr-defined]
    for kind in known:
        for language in ("it", "en"):
            assert f"step.{kind.replace('.', '_')}" in messages(language), kind


def test_files_are_shown_saved_and_removed_but_never_opened_by_the_browser() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            workspace = place.initialised.workspace_id
            folder = place.service.home.files / workspace / "notes"
            folder.mkdir(parents=True)
            (folder / "page.html").write_text(HOSTILE)
            (folder / "raw.bin").write_bytes(b"\xff\x00\xfe")
            (place.service.home.files / workspace / "link").symlink_to("/etc")
            twin = (await place.get(f"/panel/files.json?workspace={workspace}")).json()
            assert "link" not in [entry["name"] for entry in twin["entries"]]
            shown = await place.get(f"/panel/files?workspace={workspace}&path=/notes/page.html")
            assert "<script>alert" not in shown.text and "&lt;script&gt;" in shown.text
            raw = await place.get(f"/panel/files?workspace={workspace}&path=/notes/raw.bin")
            assert raw.status_code == 200 and "/panel/files/download" in raw.text
            saved = await place.get(f"/panel/files/download?workspace={workspace}&path=/notes/raw.bin")
            assert saved.content == b"\xff\x00\xfe"
            assert saved.headers["content-type"] == "application/octet-stream"
            assert saved.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in saved.headers["content-security-policy"]
            gone = await place.post(f"/panel/files/remove?workspace={workspace}&path=/notes/raw.bin")
            assert gone.status_code == 303 and not (folder / "raw.bin").exists()
            assert ("removed", "files", "default/notes/raw.bin") in await place.audited()
            for path in ("/../x", "/link/passwd", "/notes"):
                bad = await place.get(f"/panel/files/download?workspace={workspace}&path={path}")
                assert bad.status_code in (404, 409, 422)

    run(work(), 40)


def test_attachments_are_listed_saved_and_removed() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            await place.chat("ciao", attached='no "te"\u202e.txt')
            (row,) = (await place.get("/panel/files.json")).json()["attachments"]
            bytes_of = place.service.home.files / "attachments"
            bytes_of.mkdir(parents=True, exist_ok=True)
            (bytes_of / row["id"]).write_bytes(b"hello")
            saved = await place.get(f"/panel/files/attachment?id={row['id']}")
            assert saved.content == b"hello" and saved.headers["content-disposition"].isascii()
            assert (await place.post(f"/panel/files/attachment/remove?id={row['id']}")).status_code == 303
            assert (await place.get("/panel/files.json")).json()["attachments"] == []
            assert (await place.get(f"/panel/files/attachment?id={row['id']}")).status_code == 404

    run(work(), 40)


def test_a_webhook_that_was_given_up_is_sent_again() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            database = place.service.database
            event = {"project": "casa", "day": "2026-03-01", "event": "evt_1", "body": json.dumps({"id": "evt_1"})}
            await database.write(lambda tx: add_alert(tx, **event, now=1.0))
            await place.post("/panel/webhooks/redeliver?id=evt_1")

            async def until(attempts: int) -> dict[str, object]:
                while True:
                    (row,) = (await place.get("/panel/webhooks.json")).json()["rows"]
                    if row["attempts"] >= attempts:
                        return dict(row)

            # The project has no address: every attempt gives the webhook up at once.
            first = await until(1)
            assert (first["state"], first["status"], first["url"]) == ("given_up", None, None)
            again = await place.post("/panel/webhooks/redeliver?id=evt_1")
            assert again.headers["location"] == "/panel/webhooks?done=redelivered"
            await until(2)
            assert (await place.post("/panel/webhooks/redeliver?id=nothing")).status_code == 404
            (row,) = await database.read(lambda tx: alert_page(tx, 10))
            assert row.body == json.dumps({"id": "evt_1"})
            assert ("redelivered", "webhooks", "evt_1") in await place.audited()

    run(work(), 40)


def test_webhooks_of_pictures_are_there_too_and_are_sent_again() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            made = images.Generation(
                id="gen_1", user_id=place.initialised.user_id, model="Brush", provider="fal", status="accepted",
                request={}, origin="http://panel.test", created_at=1.0, expires_at=9e9,
                webhook_url="https://example.invalid/done",
            )  # fmt: skip
            error = {"code": "server_error", "message": "No.", "meta": {}}
            done = msgspec.structs.replace(made, status="failed", completed_at=2.0, error=error)

            def end(tx: Transaction) -> None:
                images.add(tx, made)
                assert images.ended(tx, msgspec.structs.replace(done, webhook_event="evt_9"))
                images.attempted(tx, "evt_9", 500, None, None)

            await place.service.database.write(end)
            (row,) = (await place.get("/panel/webhooks.json")).json()["rows"]
            assert (row["kind"], row["about"], row["detail"]) == ("picture", "Brush", "gen_1")
            assert (row["state"], row["status"], row["attempts"]) == ("given_up", 500, 1)
            assert json.loads(row["body"])["type"] == "image.generation.failed"
            again = await place.post("/panel/webhooks/redeliver?id=evt_9")
            assert again.headers["location"] == "/panel/webhooks?done=redelivered"
            while row["attempts"] < 2:  # it is tried at once: nobody is there
                (row,) = (await place.get("/panel/webhooks.json")).json()["rows"]
            assert (row["state"], row["status"]) == ("due", None)
            for which in ("", "evt_1"):
                assert (await place.post(f"/panel/webhooks/redeliver?id={which}")).status_code == 404

    run(work(), 40)


def test_the_page_of_webhooks_says_whose_can_be_verified() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            (place.service.home.keys / "webhooks.json").write_text('{"fal": {"keys": []}}')
            senders = (await place.get("/panel/webhooks.json")).json()["senders"]
            assert {sender["name"] for sender in senders if sender["known"]} == {"fal"}
            assert "http://panel.test/api/v1/webhooks/providers/fal" in {sender["address"] for sender in senders}

    run(work(), 40)


def test_what_two_agents_say_at_the_same_time_is_one_step_each() -> None:
    def agent(name: str, parent: str | None = None) -> e.Speaker:
        return e.Speaker(name, name, "member" if parent else "orchestrator", parent, "m")

    lead, one, two = agent("lead"), agent("one", "lead"), agent("two", "lead")

    def said(who: e.Speaker, delta: str) -> e.Entry:
        return e.AgentTextDelta(turn="t", at=0, agent=who, delta=delta)

    entries: list[e.Entry] = [
        e.TurnStarted(turn="t", at=0, input="go"),
        *(e.AgentStarted(turn="t", at=0, agent=who) for who in (lead, one, two)),
        *(said(who, f"{word} ") for word in ("a", "b", "c") for who in (one, two)),
        e.TextDone(turn="t", at=0, agent=one, text="a b c"),
        e.TextDone(turn="t", at=0, agent=lead, text="never in pieces"),
        said(two, "d"),
    ]
    steps = operator_view._steps(iter(enumerate(entries, 1)))  # type: ignore[attr-defined]
    texts = [(step.agent, step.depth, step.text) for step in steps if step.type == "agent.text"]
    assert texts == [("one", 2, "a b c"), ("two", 2, "a b c d"), ("lead", 1, "never in pieces")]
