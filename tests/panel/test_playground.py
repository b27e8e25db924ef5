"""The playground: the agent call as a project, its history, and the tool that waits for a yes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.aio import run

from .site import OURS, site


def test_the_playground_speaks_as_the_project_without_its_key_and_remembers_the_chat() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            ours = {"sec-fetch-site": "same-origin"}
            said = {"versione": 1, "tipo": "messaggio", "conversazione": "c1", "progetto": "casa", "testo": "ciao"}
            sizes = []
            for _ in range(2):
                answer = await place.client.post("/panel/playground/chat", json=said, headers=ours)
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert "event: done" in answer.text
                sizes.append(len(answer.text))
            rows = []
            while len(rows) < 2:
                twin = await place.get("/panel/calls.json?session=playground&outcome=ok")
                rows = twin.json()["calls"]["rows"]
            assert rows[0]["bytes_in"] > rows[1]["bytes_in"]
            assert {row["project"] for row in rows} == {"casa"}
            fresh = await place.client.post("/panel/playground/chat", json=said | {"tipo": "nuova"}, headers=ours)
            assert fresh.status_code == 204
            unknown = await place.client.post("/panel/playground/chat", json=said | {"progetto": "x"}, headers=ours)
            assert unknown.status_code == 404
            foreign = await place.client.post("/panel/playground/chat", json=said)
            assert foreign.status_code == 403
            malformed = await place.client.post("/panel/playground/chat", content=b"{", headers=ours)
            assert malformed.status_code == 422
            place.client.cookies.clear()
            outside = await place.client.post("/panel/playground/chat", json=said, headers=ours)
            assert outside.status_code == 401

    run(work(), 40)


def _heard(text: str, name: str) -> list[Any]:
    events = [event.partition("\ndata: ") for event in text.split("\n\n")]
    return [json.loads(data) for heard, _, data in events if heard == f"event: {name}"]


@pytest.mark.parametrize("verdict", ["approvata", "negata"])
def test_the_playground_runs_its_tool_only_after_a_yes(verdict: str) -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            address = "/panel/playground/chat?tool=on"
            base = {"versione": 1, "conversazione": "c1", "progetto": "casa", "lingua": "en"}

            async def say(tipo: str, **more: Any) -> httpx.Response:
                return await place.client.post(address, json=base | {"tipo": tipo, **more}, headers=OURS)

            asked = await say("messaggio", turno="t1", testo="call set_light", allegati=[])
            (call,) = _heard(asked.text, "tool_call")
            (pending,) = _heard(asked.text, "pending")
            assert [action["id"] for action in pending["actions"]] == [call["id"]] and pending["actions"][0]["text"]
            assert (await say("conferma", turno="t2", azione="other", esito="approvata")).status_code == 404
            decided = await say("conferma", turno="t3", azione=call["id"], esito=verdict)
            text = "".join(delta["text"] for delta in _heard(decided.text, "delta"))
            assert _heard(decided.text, "done")[-1]["stop_reason"] == "end_turn"
            if verdict == "approvata":
                assert _heard(decided.text, "tool_done") == [{"id": call["id"], "ok": True}]
                assert '"light":' in text
            else:
                assert _heard(decided.text, "tool_done") == [] and "said no" in text
            assert (await say("conferma", turno="t4", azione=call["id"], esito="approvata")).status_code == 404

    run(work(), 40)


def test_a_talk_that_goes_on_without_a_decision_leaves_no_tool_call_open() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            base = {"versione": 1, "conversazione": "c1", "progetto": "casa", "lingua": "en", "allegati": []}
            first = base | {"tipo": "messaggio", "turno": "t1", "testo": "call set_light"}
            await place.client.post("/panel/playground/chat?tool=on", json=first, headers=OURS)
            # Even if the tool is offered no more, the history that has it is sent whole.
            then = base | {"tipo": "messaggio", "turno": "t2", "testo": "never mind"}
            answer = await place.client.post("/panel/playground/chat", json=then, headers=OURS)
            assert _heard(answer.text, "done")[-1]["stop_reason"] == "end_turn"

    run(work(), 40)
