"""Completions: rows that turns leave, filtered, paged, and shown in both versions of the contract."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from crocevia.core.costs import UsageCost, usage_cost
from crocevia.core.ids import new_id
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.snapshot import Snapshot
from crocevia.storage import chats, completions
from crocevia.storage.completions import Completion
from tests.contract.requirements import requirement
from tests.doors.atp.house import THREE, House, live

T0 = 1_790_000_000.0
KNOWN = usage_cost({"USD": Decimal("0.42")}, invocations=2, pending=0, closed=True, basis="reported", as_of=T0 + 9)
PENDING = usage_cost({"USD": Decimal("0.4")}, invocations=2, pending=1, closed=True, basis="mixed", as_of=T0 + 9)


async def a_turn(
    place: House,
    chat_id: str,
    *,
    at: float = T0,
    status: str = "succeeded",
    model: str = "Pepper mini",
    cost: float | None = 0.42,
    usage: UsageCost | None = KNOWN,
) -> str:
    """A row as a turn leaves it; its id."""
    turn = new_id("cmpl")

    def work(tx: Any) -> None:
        chat = chats.find(tx, place.ada.id, chat_id)
        assert chat is not None
        completions.add(
            tx,
            Completion(
                id=turn,
                workspace_id=chat.workspace_id,
                chat_id=chat.id,
                team_id=chat.team_id,
                user_id=chat.user_id,
                model_orchestrator=model,
                started_at=at,
                created_at=at,
                updated_at=at,
            ),
        )
        if status != "running":
            completions.close(tx, terminal(turn, at, status, cost), usage_cost=usage, models_subagents=("m2",))

    await place.control.database.write(work)
    return turn


def terminal(turn: str, at: float, status: str, cost: float | None) -> Snapshot:
    why: dict[str, dict[str, str]] = {
        "succeeded": {"event_type": "turn.completed", "finish_reason": "stop"},
        "failed": {"event_type": "turn.failed", "code": "round_limit", "message": "50 rounds"},
        "canceled": {"event_type": "turn.cancelled", "reason": "user"},
    }
    totals = Totals(input_tokens=12, output_tokens=3, cost_usd=cost, duration_ms=1500, tool_calls=1)
    return Snapshot(
        event_id=new_id("evt"),
        occurred_at=int(at * 1000) + 1500,
        turn_id=turn,
        usage=totals,
        chat_usage=totals,
        wire=3,
        status=status,  # type: ignore[arg-type]  # one of the three
        **why[status],
    )


async def a_chat(place: House) -> tuple[str, str]:
    """Its id, and the address of its completions."""
    path = f"/workspaces/{place.made.workspace_id}/chats"
    chat = (await place.call("POST", path, {"team_id": place.made.team_id})).data["id"]
    return chat, f"{path}/{chat}/completions"


@requirement("A-CMP-1")
def test_pages_cover_everything_once_newest_first() -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        made = [await a_turn(place, chat, at=T0 + index // 2) for index in range(7)]
        seen: list[str] = []
        for number in (1, 2, 3, 4):
            page = await place.call("GET", f"{path}?per_page=3&page={number}", headers=THREE)
            seen += [item["id"] for item in page.data]
            count = (3, 3, 1, 0)[number - 1]
            assert page.json["meta"] == {
                "current_page": number,
                "from": 3 * number - 2 if count else None,
                "last_page": 3,
                "per_page": 3,
                "to": 3 * number - 3 + count if count else None,
                "total": 7,
            }
            links = page.json["links"]
            assert (links["prev"] is None, links["next"] is None) == (number == 1, number >= 3)
            assert links["first"] == f"/api/v1{path}?per_page=3&page=1"
            assert links["last"] == f"/api/v1{path}?per_page=3&page=3"
        assert (sorted(seen), seen) == (sorted(made), sorted(made, reverse=True))
        assert (await place.call("GET", path, headers=THREE)).json["meta"]["per_page"] == 15

    live(work)


@requirement("A-CMP-1")
def test_filters_are_inclusive_and_meet() -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        first = await a_turn(place, chat, at=T0 + 0.1234567)
        second = await a_turn(place, chat, at=T0 + 60, status="failed", model="other")
        third = await a_turn(place, chat, at=T0 + 120, status="running")

        async def ids(query: str) -> list[str]:
            return [item["id"] for item in (await place.call("GET", f"{path}?{query}", headers=THREE)).data]

        shown = (await place.call("GET", f"{path}/{first}", headers=THREE)).data["started_at"]
        assert await ids("status=failed") == [second]
        assert await ids("status=running&model_orchestrator=other") == []
        assert await ids("model_orchestrator=Pepper%20mini") == [third, first]
        assert await ids(f"started_at[to]={shown}") == [first]
        assert await ids(f"started_at%5Bfrom%5D={shown}") == [third, second, first]
        assert await ids("started_at[from]=2999-01-01T00:00:00Z") == []
        assert await ids("unknown=1&status=canceled") == []

    live(work)


@requirement("A-CMP-1")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("per_page=0", "per_page"),
        ("per_page=101", "per_page"),
        ("per_page=x", "per_page"),
        ("page=0", "page"),
        ("page=1000001", "page"),
        ("page=99999999999999999999999", "page"),
        ("status=done", "status"),
        ("status=failed&status=running", "status"),
        ("started_at[from]=yesterday", "started_at[from]"),
        ("model_orchestrator=" + "x" * 256, "model_orchestrator"),
    ],
)
def test_a_question_that_is_wrong_names_its_field(query: str, field: str) -> None:
    async def work(place: House) -> None:
        _, path = await a_chat(place)
        reply = await place.call("GET", f"{path}?{query}", headers=THREE)
        assert (reply.status, set(reply.details)) == (422, {field})

    live(work)


@requirement("A-CMP-2")
@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled"])
def test_contract_3_shows_how_a_turn_ended_and_what_is_known_of_its_cost(status: str) -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        turn = await a_turn(place, chat, status=status, cost=None, usage=PENDING)
        shown = (await place.call("GET", f"{path}/{turn}", headers=THREE)).data
        assert (shown["status"], shown["cost_usd"], shown["billing"]) == (status, None, {"status": "inactive"})
        assert (shown["duration_ms"], shown["models_subagents"]) == (1500, ["m2"])
        assert (shown["usage_cost"]["status"], shown["usage_cost"]["totals"]) == ("pending", None)
        assert shown["usage_cost"]["priced_subtotals"] == [{"currency": "USD", "amount": "0.4"}]
        snapshot = shown["terminal_snapshot"]
        assert (snapshot["data"]["turn_id"], snapshot["data"]["cost"], snapshot["v"]) == (turn, None, 3)
        assert (
            snapshot["event_type"]
            == {
                "succeeded": "turn.completed",
                "failed": "turn.failed",
                "canceled": "turn.cancelled",
            }[status]
        )

    live(work)


@requirement("A-CMP-2", "A-CMP-3")
@pytest.mark.parametrize("headers", [{}, {"x-envai-contract-version": "2"}])
def test_version_2_shows_numbers_and_nothing_that_it_does_not_know(headers: dict[str, str]) -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        turn = await a_turn(place, chat)
        running = await a_turn(place, chat, status="running", at=T0 + 5)
        reply = await place.call("GET", path, headers=headers)
        assert reply.header("x-envai-contract-version") == "2"
        assert [(item["id"], item["cost_usd"]) for item in reply.data] == [(running, 0.0), (turn, 0.42)]
        assert not {"billing", "usage_cost", "terminal_snapshot"} & set(reply.data[1])

    live(work)


@requirement("A-CMP-3")
def test_one_unknown_cost_makes_the_whole_page_one_for_contract_3() -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        await a_turn(place, chat)
        unknown = await a_turn(place, chat, cost=None, usage=PENDING, at=T0 + 60)
        for address in (path, f"{path}/{unknown}"):
            reply = await place.call("GET", address)
            assert (reply.status, reply.json["error"]["code"]) == (426, "contract_upgrade_required")
            assert reply.header("x-envai-required-contract-version") == "3"
        assert (await place.call("GET", f"{path}?per_page=1&page=2")).status == 200
        assert (await place.call("GET", path, headers=THREE)).status == 200

    live(work)


@requirement("A-CMP-4")
def test_a_turn_ends_once() -> None:
    async def work(place: House) -> None:
        chat, path = await a_chat(place)
        turn = await a_turn(place, chat, cost=None, usage=PENDING)
        before = (await place.call("GET", f"{path}/{turn}", headers=THREE)).data
        write = place.control.database.write
        assert not await write(
            lambda tx: completions.close(tx, terminal(turn, T0 + 50, "failed", 1.0), usage_cost=KNOWN)
        )
        assert (await place.call("GET", f"{path}/{turn}", headers=THREE)).data == before
        assert before["status"] == "succeeded"

    live(work)
