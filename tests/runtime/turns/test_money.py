"""The money of one turn: it ends at its limit, and calls at the same time do not overrun it together."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from sqlalchemy import select

from crocevia.config import Settings, TurnsSettings
from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.core.turn import entries as e
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.storage import declared, meta
from crocevia.storage.database import immediate
from crocevia.storage.records import call_records

from .theatre import Event, Theatre, change_agent, play, tool

PRICES = Prices(input=1.0, output=10.0)
CALL = {"usage": {"input_tokens": 0, "output_tokens": 1000}}  # 0.01 USD; held for it: 4096 tokens, 0.041 USD
CHILDREN = 8


def cost(end: Event) -> float:
    return float(end["data"]["cost"])


def test_a_turn_ends_at_its_limit_and_says_which() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("again")
        end = watcher.events[-1]
        assert (end["type"], end["data"]["code"]) == ("turn.failed", "limit_cost")
        assert "0.025 USD" in end["data"]["message"]
        assert cost(end) == end["data"]["usage"]["cost_usd"] == pytest.approx(0.03)
        assert place.service.gateway.active == 0

    script = {"main": [{"say": [CALL, {"tool": "list", "arguments": {}}]}]}
    options: dict[str, Any] = {"agents": {"main": {"tools_enabled": tool("list")}}, "prices": PRICES, "timeout": 50}
    play(script, work, settings=Settings(turns=TurnsSettings(cost_usd=0.025)), **options)


DELEGATE: dict[str, Any] = {
    "tool": "delegate_task",
    "arguments": {"agent": "writer", "task": "go", "mode": "background"},
}
CROWD: dict[str, Any] = {
    "main": [
        {"when": {"contains": "begin"}, "say": [{"text": "Off."}, *[DELEGATE] * CHILDREN, CALL]},
        {"when": {"after_tool": True}, "say": [{"text": "They work."}]},
        {"say": [{"text": "Good."}]},
    ],
    "writer": [{"say": [{"delay_ms": 100}, {"text": "Done."}, CALL]}],
}


@pytest.mark.parametrize(("limit", "ending"), [(0.05, "turn.failed"), (5.0, "turn.completed")])
def test_members_at_the_same_time_do_not_spend_the_same_money(limit: float, ending: str) -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("begin", timeout=50)
        end = watcher.events[-1]
        assert end["type"] == ending
        if ending == "turn.failed":
            assert end["data"]["code"] == "limit_cost" and limit <= cost(end) <= limit + 0.011
        else:
            assert cost(end) >= 0.01 * (CHILDREN + 1)

    play(CROWD, work, settings=Settings(turns=TurnsSettings(cost_usd=limit)), prices=PRICES, timeout=55)


TOGETHER: dict[str, Any] = {  # the lead waits for them; half a second is long enough for all to have asked
    "main": [
        {
            "when": {"nth": 1},
            "say": [*[DELEGATE | {"arguments": DELEGATE["arguments"] | {"mode": "foreground"}}] * CHILDREN, CALL],
        },
        {"say": [{"text": "They have worked."}, CALL]},
    ],
    "writer": [{"say": [{"delay_ms": 500}, {"text": "Done."}, CALL]}],
}


def test_a_team_spends_no_more_than_its_owner_has_and_says_so() -> None:
    async def work(place: Theatre) -> None:
        apply(place.home, parse(b'[[users]]\nname = "operator"\ndaily_budget_usd = 0.05\n'))
        await place.reopen()
        watcher = await place.play("begin", timeout=50)
        end = watcher.events[-1]
        assert end["type"] == "turn.completed"
        assert watcher.text("main") == "They have worked."
        refused = [event["data"]["code"] for event in watcher.all("agent.failed")]
        worked = CHILDREN - len(refused)
        assert set(refused) == {"budget_exhausted"} and worked
        assert cost(end) == pytest.approx(0.01 * (2 + worked))  # the lead, twice, and they
        assert watcher.all("chat.title.updated")  # from the message: a title never takes what an answer needs
        assert place.service.gateway.spend.ledger.reserved() == 0

    play(TOGETHER, work, prices=PRICES, timeout=55)


SLOWLY: dict[str, Any] = {"main": [{"say": [{"text": "It takes its time.", "every_ms": 20}, CALL]}]}
ESTIMATE = 0.04  # USD: 4096 tokens of an answer, and the prompt


@pytest.mark.parametrize("on_restart", ["resume", "fail"])
def test_a_call_lost_to_a_crash_costs_what_its_record_says(on_restart: Literal["resume", "fail"]) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "go")
        for _ in range(2 if on_restart == "resume" else 1):
            seen = len(watcher.events)
            await watcher.until(lambda event, seen=seen: event["type"] == "agent.text.delta" and event["seq"] > seen)
            await place.reopen_after_kill()
            watcher = await place.watch(chat)
            await watcher.until("agent.text.reset" if on_restart == "resume" else "turn.failed")
        end = await watcher.end(turn)
        rows = await place.service.turns._control.database.read(lambda tx: tx.all(select(call_records)))
        lost = [row.cost_usd for row in rows if (row.encode, row.outcome) == ("turn", "interrupted")]
        assert len(lost) == (2 if on_restart == "resume" else 1)
        assert all(ESTIMATE < each < 2 * ESTIMATE for each in lost)
        assert end["type"] == ("turn.completed" if on_restart == "resume" else "turn.failed")
        entries = await place.service.turns._log.replay(chat)
        answered = [entry.cost_usd for entry in entries if isinstance(entry, e.ModelAnswered | e.TitleAnswered)]
        assert cost(end) == pytest.approx(sum(lost) + sum(answered))
        where = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/completions"
        shown = await place.call("GET", where, headers={"X-Envai-Contract-Version": "2"})
        assert (shown.status, len(shown.data)) == (200, 1)

    play(SLOWLY, work, prices=PRICES, settings=Settings(turns=TurnsSettings(on_restart=on_restart)), timeout=50)


def test_under_a_limit_no_model_is_called_whose_price_nobody_knows() -> None:
    async def work(place: Theatre) -> None:
        with immediate(place.home.database) as tx:
            declared.save(tx, EngineSpec(name="far", kind="openai-chat", base_url="http://127.0.0.1:9/v1"), 0.0)
            declared.save(tx, ModelSpec(name="unheard-of", engine="far"), 0.0)
            change_agent(tx, place.made.user_id, "main", {"model": "unheard-of"})
            meta.bump_revision(tx)
        await place.reopen()
        watcher = await place.play("hello")
        end = watcher.events[-1]
        assert (end["type"], end["data"]["code"], cost(end)) == ("turn.failed", "model_unpriced", 0)

    play({"main": [{"say": [{"text": "x"}]}]}, work, settings=Settings(turns=TurnsSettings(cost_usd=1.0)))
