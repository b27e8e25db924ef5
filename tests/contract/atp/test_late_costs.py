"""Costs that became known after the turn: through the API, with the command line beside the server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from click.testing import CliRunner

from crocevia.cli import main
from crocevia.cli.output import told
from crocevia.core.catalogue import EngineSpec, ModelSpec
from crocevia.runtime.control import costs
from crocevia.runtime.control.audit import Actor, entries
from crocevia.storage import declared, meta
from crocevia.storage.database import immediate, snapshot
from crocevia.storage.record_queries import CallFilter, sums
from tests.contract.requirements import requirement
from tests.fakes.provider import Play, Provider, Received, answer
from tests.fakes.provider import play as streamed
from tests.runtime.turns.theatre import THREE, Theatre, change_agent, play

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
ONE = 0.00168  # 600 at 1, 400 at 0.2 and 100 at 10 USD per million
PRICE = """
[[models]]
name = "far"
engine = "far"
upstream = "brain"
prices = {input = %s, output = 10.0, cache_read = 0.2}
"""


class Unlisted(Provider):
    """A provider of a model that nobody's list knows. title_usage: whether it counts the tokens of whole answers."""

    title_usage = True

    def take(self, received: Received) -> Play:
        self.requests.append(received)
        if received.json().get("stream"):
            said = [{"choices": [{"delta": {"content": "Hi."}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
            frames = [*map(json.dumps, [*said, {"choices": [], "usage": USAGE}]), "[DONE]"]
            return streamed("".join(f"data: {frame}\n\n" for frame in frames).encode())
        whole = {"choices": [{"message": {"role": "assistant", "content": "A title"}, "finish_reason": "stop"}]}
        return answer(200, json.dumps(whole | ({"usage": USAGE} if self.title_usage else {})).encode())


class Turn:
    """One turn with the model, ended with unknown costs."""

    def __init__(self, place: Theatre) -> None:
        self.place = place

    async def run(self, url: str) -> None:
        place = self.place
        with immediate(place.home.database) as tx:
            declared.save(tx, EngineSpec(name="far", kind="openai-chat", base_url=f"{url}/v1"), 0.0)
            declared.save(tx, ModelSpec(name="far", engine="far", upstream="brain"), 0.0)
            change_agent(tx, place.made.user_id, "main", {"model": "far"})
            meta.bump_revision(tx)
        await place.reopen()
        chat = await place.chat()
        self.watcher = await place.watch(chat)
        self.id = await place.say(chat, "hello")
        self.path = f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}/completions"
        end = await self.watcher.end()
        assert (end["type"], end["data"]["cost"]) == ("turn.completed", None)

    async def completion(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.place.call("GET", f"{self.path}/{self.id}", headers=THREE)).data
        return found

    def snapshot(self) -> tuple[Any, ...]:
        """The stored bytes that nothing may touch: the turn's snapshot, the journal, what calls cost."""
        with snapshot(self.place.home.database) as tx:
            (kept,) = tx.connection.execute("SELECT terminal_snapshot FROM completions").fetchall()
            journal = tx.connection.execute("SELECT * FROM journal ORDER BY pos").fetchall()
            return kept, journal, sums(tx, CallFilter()).cost_usd

    def crocevia(self, *args: str, given: str | None = None) -> str:
        done = CliRunner().invoke(main, [*args, "--home", str(self.place.home.path)], input=given)
        assert done.exit_code == 0, done.output
        return done.stdout

    def price(self, usd: float = 1.0) -> None:
        self.crocevia("apply", "-", given=PRICE % usd)

    def reconcile(self, *args: str) -> Any:
        return json.loads(self.crocevia("costs", "reconcile", "--json", *args))


def turned(work: Callable[[Turn], Coroutine[Any, Any, None]], *, title_usage: bool = True) -> None:
    async def whole(place: Theatre) -> None:
        async with Unlisted() as provider:
            provider.title_usage = title_usage
            turn = Turn(place)
            await turn.run(provider.url)
            await work(turn)

    play({"main": [{"say": [{"text": "unused"}]}]}, whole)


@requirement("A-CMP-4")
def test_a_later_price_completes_the_completion_and_nothing_else() -> None:
    async def work(turn: Turn) -> None:
        before, stored = await turn.completion(), turn.snapshot()
        cost = before["usage_cost"]
        assert (before["cost_usd"], cost["status"], cost["totals"], cost["revision"]) == (None, "pending", None, 0)
        assert (cost["invocation_count"], cost["pending_invocation_count"]) == (2, 2)
        assert turn.reconcile()["models"] == [{"model": "far", "priced": 0, "cost_usd": 0.0, "unpriced": 2}]
        assert await turn.completion() == before

        turn.price()
        assert await turn.completion() == before  # a price that is declared changes no past by itself
        expected = {"model": "far", "priced": 2, "cost_usd": pytest.approx(2 * ONE), "unpriced": 0}
        assert turn.reconcile("--dry-run") == {"completed": 1, "advanced": 0, "models": [expected]}
        assert await turn.completion() == before
        shown = turn.crocevia("costs", "reconcile")
        assert "far" in shown and f"{2 * ONE:.6f}" in shown and "1" in shown.splitlines()[-1]

        after = await turn.completion()
        cost = after["usage_cost"]
        assert (cost["status"], cost["revision"], cost["basis"]) == ("complete", 1, "calculated")
        assert cost["totals"] == cost["priced_subtotals"] == [{"currency": "USD", "amount": "0.00336"}]
        assert (cost["pending_invocation_count"], after["cost_usd"]) == (0, 0.00336)
        assert after["terminal_snapshot"] == before["terminal_snapshot"]
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"usage_cost", "cost_usd", "updated_at"}
        assert turn.snapshot() == stored
        assert (await turn.place.call("GET", turn.path)).data[0]["cost_usd"] == 0.00336  # version 2 has words for it
        replayed = await turn.place.watch(turn.path.split("/")[-2])
        await replayed.end()
        assert replayed.events == turn.watcher.events

        turn.price(5.0)
        assert turn.reconcile() == {"completed": 0, "advanced": 0, "models": []}
        assert await turn.completion() == after
        with snapshot(turn.place.home.database) as tx:
            lines = [line for line in entries(tx) if line.action == "reconciled"]
        assert [line.changes["cost_usd"][1] for line in lines] == ["0.003360"]

    turned(work)


@requirement("A-CMP-4")
def test_a_call_whose_tokens_nobody_counted_stays_pending_and_the_others_are_priced_once() -> None:
    async def work(turn: Turn) -> None:
        turn.price()
        assert turn.reconcile()["advanced"] == 1
        after = await turn.completion()
        cost = after["usage_cost"]
        assert (cost["status"], cost["totals"], cost["revision"], after["cost_usd"]) == ("pending", None, 1, None)
        assert cost["priced_subtotals"] == [{"currency": "USD", "amount": "0.00168"}]
        turn.price(5.0)
        assert turn.reconcile()["models"] == [{"model": "far", "priced": 0, "cost_usd": 0.0, "unpriced": 1}]
        assert await turn.completion() == after

    turned(work, title_usage=False)


@requirement("A-CMP-4")
def test_who_reconciles_at_the_same_time_writes_once() -> None:
    async def work(turn: Turn) -> None:
        turn.price()
        home, now = turn.place.home.database, time.time()
        with snapshot(home) as tx:
            found = costs.find(tx, now)

        def settle() -> int:
            with immediate(home) as tx:
                return len(costs.settle(tx, Actor("cli", "local"), found.late, now))

        assert sorted(await asyncio.gather(*(asyncio.to_thread(settle) for _ in range(4)))) == [0, 0, 0, 1]
        assert (await turn.completion())["usage_cost"]["revision"] == 1

    turned(work)


@requirement("A-CMP-4")
def test_a_journal_that_cannot_be_read_leaves_its_turn_as_it_was() -> None:
    async def work(turn: Turn) -> None:
        before = await turn.completion()
        turn.price()
        with immediate(turn.place.home.database) as tx:
            tx.connection.execute("UPDATE journal SET body = '{' WHERE pos = (SELECT min(pos) FROM journal)")
        assert turn.reconcile()["models"] == [{"model": "", "priced": 0, "cost_usd": 0.0, "unpriced": 2}]
        assert told("costs_nameless") in turn.crocevia("costs", "reconcile")
        assert await turn.completion() == before

    turned(work)
