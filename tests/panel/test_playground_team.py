"""The playground on a team: a real chat, its turn as the kit's events, its approvals answered from the page."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.aio import run

from .site import OURS, Place, site

ADDRESS = "/panel/playground/team?team=guarded"


def _body(tipo: str, **more: Any) -> dict[str, Any]:
    return {"versione": 1, "tipo": tipo, "conversazione": "c1", "turno": "t1", "progetto": None, "lingua": "en"} | more


def _events(text: str) -> list[tuple[str, Any]]:
    parts = [event.partition("\ndata: ") for event in text.split("\n\n") if event.startswith("event: ")]
    return [(name.removeprefix("event: "), json.loads(data)) for name, _, data in parts]


async def _post(place: Place, body: dict[str, Any], address: str = ADDRESS) -> httpx.Response:
    return await place.client.post(address, json=body, headers=OURS)


def _names(text: str) -> list[str]:
    found = [name for name, _ in _events(text)]
    return [name for place, name in enumerate(found) if found[place - 1 : place] != ["delta"] or name != "delta"]


async def _asked(place: Place) -> dict[str, Any]:
    """The request that waits, as soon as there is one."""
    while True:
        rows: list[dict[str, Any]] = (await place.get("/panel/waiting.json")).json()["rows"]
        if rows:
            return rows[0]


def test_a_team_answers_in_a_chat_that_stays() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            first = await _post(place, _body("messaggio", testo="ciao"))
            assert first.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert _names(first.text) == ["delta", "done"]
            assert _events(first.text)[-1][1]["versione"] == "guarded"
            again = await _post(place, _body("messaggio", testo="ciao"))  # the same message, sent again
            assert _events(again.text) == _events(first.text)
            second = await _post(place, _body("messaggio", testo="and now?", turno="t2"))
            assert _names(second.text) == ["delta", "done"]
            chats = (await place.get("/panel/chats.json")).json()["rows"]
            assert [chat["team"] for chat in chats] == ["guarded"]
            twin = (await place.get(f"/panel/chats/one.json?id={chats[0]['id']}")).json()
            assert len(twin["turns"]) == 2
            assert (await _post(place, _body("nuova"))).status_code == 204
            await _post(place, _body("messaggio", testo="ciao", turno="t3"))
            assert len((await place.get("/panel/chats.json")).json()["rows"]) == 2

    run(work(), 40)


@pytest.mark.parametrize("esito", ["approvata", "negata"])
def test_an_approval_is_answered_where_it_is_asked(esito: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = asyncio.create_task(_post(place, _body("messaggio", testo="call write")))
            await _asked(place)
            said = _body("conferma", turno="t2", azione="nothing", esito=esito)
            assert (await _post(place, said)).status_code == 404
            twin = (await place.get("/panel/waiting.json")).json()["rows"][0]
            calls = await _calls(place, twin["chat_id"])
            verdict = await _post(place, said | {"azione": calls[0]})
            assert verdict.status_code == 204
            events = _events((await answer).text)
            (pending,) = [data for name, data in events if name == "pending"]
            assert [action["name"] for action in pending["actions"]] == ["write"]
            done = [data for name, data in events if name == "tool_done"]
            assert [item["id"] for item in done] == (calls if esito == "approvata" else [])
            assert [name for name, _ in events].count("tool_call") == 1
            assert events[-1][0] == "done"

    run(work(), 40)


async def _calls(place: Place, chat_id: str) -> list[str]:
    """The calls that the page was told of; taken from the stream that a page would read anew."""
    async with asyncio.timeout(10):
        while True:
            steps = (await place.get(f"/panel/chats/one.json?id={chat_id}")).json()["steps"]
            if any(step["type"] == "approval.request" for step in steps):
                break
    service = place.service
    bounds = (await service.turns.events(place.initialised.user_id, chat_id, 0)).bounds
    feed = await service.turns.events(place.initialised.user_id, chat_id, 0)
    rows = [json.loads(row.body) for row in await feed.rest()]
    assert bounds.head >= len(rows) > 0
    return [row["call_id"] for row in rows if row["type"] == "approval.request"]


def test_a_lost_line_is_taken_up_where_it_broke() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            whole = _events((await _post(place, _body("messaggio", testo="ciao"))).text)
            for seen in (0, 1, len(whole)):
                rest = await _post(place, _body("riprendi", dopo=seen))
                assert _events(rest.text) == whole[seen:]
            assert (await _post(place, _body("riprendi", turno="other"))).status_code == 404
            assert (await _post(place, _body("riprendi", conversazione="c9"))).status_code == 404

    run(work(), 40)


def test_a_turn_is_stopped_and_a_second_message_waits_its_turn() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = asyncio.create_task(_post(place, _body("messaggio", testo="call write")))
            await _asked(place)
            busy = await _post(place, _body("messaggio", testo="now", turno="t2"))
            assert busy.status_code == 409 and busy.json()["error"]["message"]
            assert (await _post(place, _body("ferma"))).status_code == 204
            assert _events((await answer).text)[-1][0] == "done"

    run(work(), 40)


@pytest.mark.parametrize(
    ("body", "address", "status"),
    [
        (_body("messaggio", testo="x"), "/panel/playground/team?team=nobody", 404),
        (_body("conferma", azione="a"), ADDRESS, 404),
        (_body("ferma"), ADDRESS, 404),
        ({"tipo": "altro"}, ADDRESS, 400),
        ([], ADDRESS, 400),
    ],
)
def test_what_cannot_be_done_is_said_as_the_kit_reads_it(body: Any, address: str, status: int) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            answer = await _post(place, body, address)
            assert answer.status_code == status and set(answer.json()["error"]) == {"code", "message"}

    run(work(), 40)


def test_the_page_offers_projects_and_teams() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            page = (await place.get("/panel/playground?to=team/guarded")).text
            assert 'data-address="/panel/playground/team?team=guarded"' in page and 'data-project=""' in page
            assert "allegati" not in page.partition("data-switches")[2][:60]
            twin = (await place.get("/panel/playground.json?to=project/casa")).json()
            assert (twin["project"], twin["team"]) == ("casa", None)
            assert (await place.get("/panel/playground.json?team=nobody")).json()["team"] is None

    run(work(), 40)
