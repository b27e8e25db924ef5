"""The driver of the embedded model against a child without a model: real processes, real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from crocevia.core.answers import Answer, fold
from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, StopReason, ToolCallDone, ToolCallStarted
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolCall, ToolMessage, user
from crocevia.core.texts import render
from crocevia.core.usage import Usage
from crocevia.engines import registry
from crocevia.engines.context import EngineContext
from crocevia.engines.llama.engine import LlamaEngine
from crocevia.engines.llama.worker import LlamaSettings
from crocevia.engines.upstream.http import HttpClient
from tests.aio import run
from tests.fakes.requests import model_request

FAKE = Path(__file__).with_name("fake_child.py")
TOOL = Tool(name="look", description="Look.", parameters=Raw(b'{"type":"object","properties":{}}'))


class Bench:
    """An engine over the fake child, and what the child noted."""

    def __init__(self, engine: LlamaEngine, weights: Path, log: Path) -> None:
        self.engine = engine
        self.model = str(weights)
        self._log = log

    def notes(self, key: str) -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [note for note in map(json.loads, lines) if key in note]

    def call(self, *messages: Message, within: float = 8, **rest: Any) -> Any:
        request = model_request(model=self.model, messages=messages, **rest)
        return self.engine.call(request, deadline=asyncio.get_running_loop().time() + within)

    async def ask(self, *messages: Message, **rest: Any) -> Answer:
        events: list[ModelEvent] = []
        async with aclosing(self.call(*messages, **rest)) as batches:
            async for batch in batches:
                events += batch
        return fold(events)

    async def until(self, key: str, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(8):
            while len(found := self.notes(key)) < count:
                await asyncio.sleep(0.01)
        return found


@asynccontextmanager
async def bench(folder: Path, mode: str = "", **settings: Any) -> AsyncIterator[Bench]:
    weights, log = folder / "any.gguf", folder / "log"
    weights.write_bytes(b"")
    http = HttpClient()
    command = (sys.executable, str(FAKE), str(log), mode)
    engine = LlamaEngine("local", folder, http, LlamaSettings(**settings), command)
    try:
        yield Bench(engine, weights, log)
    finally:
        await engine.close()
        await http.close()
    for note in Bench(engine, weights, log).notes("started"):
        assert not alive(note["pid"])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_text_streams_and_the_child_starts_with_the_first_call(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            assert it.notes("started") == []
            answer = await it.ask(user("SAY good morning"))
            assert answer.text == "good morning"
            assert answer.stop is StopReason.END
            assert answer.usage == Usage(input_tokens=11, output_tokens=7, cache_read_tokens=3)
            await it.ask(user("SAY again"))
            assert len(it.notes("started")) == 1

    run(work())


def test_the_answer_comes_in_pieces_with_the_tokens_known_so_far(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            seen: list[ModelEvent] = []
            async with aclosing(it.call(user("ENDLESS one two"))) as batches:
                async for batch in batches:
                    seen += batch
                    if fold(seen).text.startswith("one two"):
                        break
            so_far = fold(seen)
            assert so_far.stop is None
            assert so_far.usage.estimated
            assert so_far.usage.input_tokens == 3
            assert so_far.usage.output_tokens is not None
            assert so_far.usage.output_tokens >= 3

    run(work())


def test_a_call_is_one_complete_event_with_an_id_of_ours(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            events: list[ModelEvent] = []
            async for batch in it.call(user('CALL {"name": "look", "arguments": {"a": "è"}}'), tools=(TOOL,)):
                events += batch
            answer = fold(events)
            assert answer.text == ""
            assert answer.stop is StopReason.TOOL_USE
            [call] = answer.tool_calls
            assert call.name == "look"
            assert call.id.startswith("call_")
            assert json.loads(bytes(call.arguments)) == {"a": "è"}
            assert [type(event) for event in events if isinstance(event, ToolCallStarted | ToolCallDone)] == [
                ToolCallStarted,
                ToolCallDone,
            ]

    run(work())


def test_a_call_cut_by_max_tokens_is_no_call(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            messages = (user("LONG story"),)
            answer = await it.ask(*messages, max_tokens=5)
            assert answer.stop is StopReason.MAX_TOKENS
            half = await it.ask(user('CALL {"name": "look", "argum'), tools=(TOOL,))
            assert half.tool_calls == ()
            assert it.notes("body")[0]["body"]["max_tokens"] == 5

    run(work())


def test_a_call_that_was_already_answered_becomes_a_reply(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            first = ToolCall(id="c1", name="look", arguments=Raw(b'{"b": 2, "a": 1}'))
            history = (
                user('CALL {"name": "look", "arguments": {"a":1,"b":2}}'),
                AssistantMessage(tool_calls=(first,)),
                ToolMessage(call_id="c1", content="seen"),
            )
            answer = await it.ask(*history, tools=(TOOL,))
            assert answer.tool_calls == ()
            assert answer.text == "fine then"
            assert answer.stop is StopReason.END
            assert answer.usage.output_tokens == 14  # both tries are paid
            other = (*history[:2], ToolMessage(call_id="c1", content="seen"), user(history[0].text))
            assert (await it.ask(*other, tools=(TOOL,))).tool_calls

    run(work())


def test_a_schema_that_the_grammar_refuses_is_loosened_for_that_tool_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            odd = Raw(b'{"type":"object","properties":{"unspeakable":{"type":"null"}}}')
            tools = (Tool(name="odd", description="Odd.", parameters=odd), TOOL)
            answer = await it.ask(user('CALL {"name": "odd", "arguments": {}}'), tools=tools)
            assert [call.name for call in answer.tool_calls] == ["odd"]
            sent = it.notes("body")[-1]["body"]["response_format"]["json_schema"]["schema"]["anyOf"]
            loose, exact, reply = (choice["properties"] for choice in sent)
            assert loose["arguments"] == {"type": "object"}
            assert exact["arguments"]["additionalProperties"] is False
            assert set(reply) == {"reply"}
            before = len(it.notes("body"))
            await it.ask(user('CALL {"name": "odd", "arguments": {}}'), tools=tools)
            assert len(it.notes("body")) == before + 1  # remembered

    run(work())


@pytest.mark.parametrize("words", [200, 100_000])
def test_a_prompt_that_is_too_long_is_refused_with_both_counts(tmp_path: Path, words: int) -> None:
    async def work() -> None:
        async with bench(tmp_path, max_prompt=150) as it:
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("word " * words))
            assert caught.value.code is Code.INVALID_REQUEST
            assert caught.value.message.details["limit"] == 150
            assert int(caught.value.message.details["count"]) > 150
            assert it.notes("body") == []
            assert (await it.ask(user("SAY ok"))).text == "ok"

    run(work())


def test_a_crash_fails_the_call_in_flight_and_the_next_one_gets_a_new_child(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("CRASH half an answer"))
            assert caught.value.code is Code.UPSTREAM_FAILED
            assert caught.value.message.reason == "embedded_crashed"
            assert (await it.ask(user("SAY back"))).text == "back"
            assert len(it.notes("started")) == 2

    run(work())


def test_a_child_killed_while_idle_is_replaced_without_anyone_noticing(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            await it.ask(user("SAY hello"))
            pid = it.notes("started")[0]["pid"]
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(5):
                while alive(pid):
                    await asyncio.sleep(0.01)
            assert (await it.ask(user("SAY back"))).text == "back"

    run(work())


def test_crashes_in_a_row_are_followed_by_growing_pauses(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            took = []
            for _ in range(3):
                began = time.monotonic()
                with pytest.raises(GatewayError):
                    await it.ask(user("CRASH now"))
                took.append(time.monotonic() - began)
            assert took[2] >= 0.5
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("SAY soon"), within=0.3)
            assert caught.value.code is Code.UPSTREAM_TIMEOUT

    run(work(), timeout=30)


@pytest.mark.parametrize(("mode", "key"), [("mute", "embedded_load_failed"), ("refuse", "embedded_load_failed")])
def test_a_child_that_does_not_load_is_unavailable(tmp_path: Path, mode: str, key: str) -> None:
    async def work() -> None:
        async with bench(tmp_path, mode) as it:
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("SAY hello"))
            assert (caught.value.code, caught.value.message.reason) == (Code.UNAVAILABLE, key)

    run(work())


def test_hanging_up_while_tokens_flow_frees_the_model_and_keeps_the_child(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            async with aclosing(it.call(user("ENDLESS a"))) as batches:
                await anext(batches)
            await it.until("hung_up")
            assert (await it.ask(user("SAY next"))).text == "next"
            assert len(it.notes("started")) == 1

    run(work())


@pytest.mark.parametrize("command", ["PREFILL x", "STUCK x"])
def test_hanging_up_on_a_model_that_does_not_stop_ends_its_child_and_the_next_call_is_served(
    tmp_path: Path, command: str
) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            task = asyncio.create_task(it.ask(user(command)))
            await it.until("body")
            queued = asyncio.create_task(it.ask(user("SAY served")))
            task.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 0.5
            assert (await queued).text == "served"
            assert len(it.notes("started")) == 2

    run(work())


def test_a_call_past_its_deadline_times_out_and_frees_the_model(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            await it.ask(user("SAY warm"))
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("PREFILL x"), within=0.3)
            assert caught.value.code is Code.UPSTREAM_TIMEOUT
            assert (await it.ask(user("SAY next"))).text == "next"

    run(work())


def test_calls_take_turns_and_one_that_waits_too_long_times_out(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            long = it.call(user("ENDLESS a"))
            await anext(long)
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("SAY b"), within=0.2)
            assert caught.value.code is Code.UPSTREAM_TIMEOUT
            waiting = [asyncio.create_task(it.ask(user(f"SAY {number}"))) for number in range(5)]
            await long.aclose()
            assert [(await task).text for task in waiting] == ["0", "1", "2", "3", "4"]

    run(work())


def test_a_flood_is_turned_away_with_a_time_to_come_back(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path, max_waiting=2) as it:
            long = it.call(user("ENDLESS a"))
            await anext(long)
            flood = [asyncio.create_task(it.ask(user(f"SAY {number}"))) for number in range(50)]
            await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
            await long.aclose()
            outcomes = await asyncio.gather(*flood, return_exceptions=True)
            refused = [error for error in outcomes if isinstance(error, GatewayError)]
            assert len(refused) == 48
            assert {error.code for error in refused} == {Code.UPSTREAM_OVERLOADED}
            assert all(error.retry_after for error in refused)

    run(work())


def test_missing_weights_are_said_at_the_call_and_not_before(tmp_path: Path) -> None:
    async def work() -> None:
        http = HttpClient()
        context = EngineContext(http=http, models_dir=tmp_path)
        engine = registry.build(EngineSpec(name="local", kind="llama"), context)
        request = ModelRequest(model="", messages=(user("hello"),))
        for attempt in (
            engine.call(request, deadline=asyncio.get_running_loop().time() + 5).__anext__(),
            engine.probe(),
        ):
            with pytest.raises(GatewayError) as caught:
                await attempt
            assert caught.value.code is Code.UNAVAILABLE
            assert "crocevia model pull" in render(caught.value.message, "it")
        await engine.close()
        await http.close()

    run(work())


def test_probe_and_start_load_the_model_and_close_ends_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path) as it:
            await it.engine.start(it.model)
            assert len(it.notes("started")) == 1
            await it.engine.close()
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("SAY x"))
            assert caught.value.code is Code.UNAVAILABLE

    run(work())


def test_the_child_gets_no_secret_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENCLAW_GATEWAY_TOKEN", "db_password", "HARMLESS"):
        monkeypatch.setenv(name, "x")

    async def work() -> None:
        async with bench(tmp_path) as it:
            await it.ask(user("SAY x"))
            given = set(it.notes("started")[0]["environment"])
            assert "HARMLESS" in given
            assert not given & {"ANTHROPIC_API_KEY", "OPENCLAW_GATEWAY_TOKEN", "db_password"}

    run(work())


PARENT = """
import asyncio, sys
from pathlib import Path
from crocevia.core.calls import ModelRequest
from crocevia.core.messages import user
from crocevia.engines.upstream.http import HttpClient
from crocevia.engines.llama.engine import LlamaEngine

async def main():
    weights, fake, log = sys.argv[1:]
    engine = LlamaEngine("local", Path(weights).parent, HttpClient(), command=(sys.executable, fake, log))
    deadline = asyncio.get_running_loop().time() + 30
    async for batch in engine.call(ModelRequest(model=weights, messages=(user("ENDLESS a"),)), deadline=deadline):
        pass

asyncio.run(main())
"""


def test_the_child_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    weights, log = tmp_path / "any.gguf", tmp_path / "log"
    weights.write_bytes(b"")

    async def work() -> None:
        parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, str(weights), str(FAKE), str(log))
        try:
            async with asyncio.timeout(10):
                while not (log.exists() and '"body"' in log.read_text()):
                    await asyncio.sleep(0.02)
        finally:
            parent.kill()
            await parent.wait()
        child = json.loads(log.read_text().splitlines()[0])["pid"]
        async with asyncio.timeout(3):
            while alive(child):
                await asyncio.sleep(0.01)

    run(work(), timeout=20)


def test_closing_while_the_child_starts_leaves_no_child(tmp_path: Path) -> None:
    async def work() -> None:
        async with bench(tmp_path, "loading") as it:
            starting = asyncio.create_task(it.engine.start(it.model))
            await it.until("started")
            await it.engine.close()
            with pytest.raises(GatewayError) as caught:
                await starting
            assert caught.value.code in (Code.UNAVAILABLE, Code.UPSTREAM_FAILED)
        assert len(it.notes("started")) == 1

    run(work())
