"""The embedded model itself, with real weights: `make test-model`.

Weights are looked for in $CROCEVIA_TEST_MODELS, then in the default home; without them every test skips, aloud.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from msgspec import Raw

from crocevia.core.answers import Answer, fold
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, StopReason, TextDelta
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolExample, ToolMessage, user
from crocevia.engines.llama.engine import LlamaEngine
from crocevia.engines.llama.weights import CATALOGUE, DEFAULT, path_of
from crocevia.engines.upstream.http import HttpClient
from tests.aio import run
from tests.fakes.requests import model_request


def find_models() -> Path | None:
    home = os.environ.get("CROCEVIA_HOME") or platformdirs.user_data_dir("crocevia")
    for folder in (os.environ.get("CROCEVIA_TEST_MODELS"), Path(home) / "models"):
        if folder and path_of(CATALOGUE[DEFAULT], Path(folder)).is_file():
            return Path(folder)
    return None


MODELS = find_models()
pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(MODELS is None, reason="NO WEIGHTS: run 'crocevia model pull' or set CROCEVIA_TEST_MODELS"),
]

SYSTEM = "Sei Pepper, l'assistente di casa. Rispondi in modo breve."
STATUS = '{"temperature_c": 19.5, "front_door": "closed", "air_conditioning": "off"}'
CLIMATE = {
    "type": "object",
    "properties": {"target": {"enum": ["living_room", "bedroom"]}, "action": {"enum": ["on", "off"]}},
    "required": ["target", "action"],
}
TOOLS = (
    Tool(
        name="get_home_status",
        description="Read the state of the house: temperature, doors, lights, air conditioning.",
        parameters=Raw(b'{"type": "object", "properties": {}}'),
    ),
    Tool(
        name="set_climate",
        description="Turn the air conditioning of a room on or off.",
        parameters=Raw(json.dumps(CLIMATE).encode()),
        examples=(
            ToolExample(
                utterance="spegni l'aria condizionata in camera",
                arguments=Raw(b'{"target": "bedroom", "action": "off"}'),
            ),
        ),
    ),
)


class Model:
    def __init__(self, engine: LlamaEngine) -> None:
        self.engine = engine

    def call(self, *messages: Message, **rest: Any) -> Any:
        request = model_request(model="", messages=messages, **{"max_tokens": 120, **rest})
        return self.engine.call(request, deadline=asyncio.get_running_loop().time() + 240)

    async def ask(self, *messages: Message, **rest: Any) -> Answer:
        events: list[ModelEvent] = []
        async with aclosing(self.call(*messages, **rest)) as batches:
            async for batch in batches:
                events += batch
        return fold(events)

    def pid(self) -> int:
        [worker] = self.engine._workers.values()
        assert worker._child is not None
        return worker._child.process.pid


@asynccontextmanager
async def model() -> AsyncIterator[Model]:
    assert MODELS is not None
    http = HttpClient()
    engine = LlamaEngine("local", MODELS, http)
    try:
        await engine.start()
        yield Model(engine)
    finally:
        await engine.close()
        await http.close()


def test_it_answers_in_text_that_streams() -> None:
    async def work() -> None:
        async with model() as it:
            pieces: list[str] = []
            async for batch in it.call(user("What is the capital of Japan?")):
                pieces += [event.text for event in batch if isinstance(event, TextDelta)]
            assert "Tokyo" in "".join(pieces)
            assert len(pieces) > 2
            again = await it.ask(user("What is the capital of Japan?"))
            assert again.stop is StopReason.END
            assert again.usage.input_tokens
            assert again.usage.cache_read_tokens
            assert not again.usage.estimated

    run(work(), timeout=500)


@pytest.mark.parametrize(
    "question", ["What is the temperature at home?", "che aria fa in salone?", "Is the front door closed?"]
)
def test_a_tool_loop_reads_the_house_and_then_answers_in_words(question: str) -> None:
    async def work() -> None:
        async with model() as it:
            asked = await it.ask(user(question), system=SYSTEM, tools=TOOLS)
            [call] = asked.tool_calls
            assert (call.name, bytes(call.arguments)) == ("get_home_status", b"{}")
            assert asked.stop is StopReason.TOOL_USE
            told = (
                user(question),
                AssistantMessage(tool_calls=(call,)),
                ToolMessage(call_id=call.id, content=STATUS),
            )
            answer = await it.ask(*told, system=SYSTEM, tools=TOOLS)
            assert answer.tool_calls == ()
            assert answer.text

    run(work(), timeout=500)


@pytest.mark.parametrize(
    ("wish", "target", "action"),
    [
        ("turn on the air conditioning in the living room", "living_room", "on"),
        ("accendi il condizionatore in salone", "living_room", "on"),
        ("Turn off the AC in the bedroom, please", "bedroom", "off"),
    ],
)
def test_a_wish_becomes_a_call_with_its_arguments(wish: str, target: str, action: str) -> None:
    async def work() -> None:
        async with model() as it:
            [call] = (await it.ask(user(wish), system=SYSTEM, tools=TOOLS)).tool_calls
            assert call.name == "set_climate"
            assert json.loads(bytes(call.arguments)) == {"target": target, "action": action}

    run(work(), timeout=500)


@pytest.mark.parametrize("said", ["Hello!", "Grazie mille!", "Who painted the Mona Lisa?"])
def test_small_talk_is_answered_without_a_call(said: str) -> None:
    async def work() -> None:
        async with model() as it:
            answer = await it.ask(user(said), system=SYSTEM, tools=TOOLS)
            assert answer.tool_calls == ()
            assert answer.text

    run(work(), timeout=500)


def test_odd_schemas_neither_fail_nor_end_the_child() -> None:
    schemas = [
        b'{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":1},"b":{"enum":[]}}}',
        b'{"type":"object","properties":{"a":{"const":{"x":[null]}},"b":{"type":"array","minItems":100000}}}',
        b'{"properties":{"a":{"$ref":"#/nowhere"},"":{"type":["string","null"],"pattern":"(a+)+$"}},"required":[""]}',
        b'{"type":"wat","oneOf":[{"type":"object"},5]}',
    ]

    async def work() -> None:
        async with model() as it:
            child = it.pid()
            tools = tuple(
                Tool(name=f"odd_{number}", description="Do odd things.", parameters=Raw(schema))
                for number, schema in enumerate(schemas)
            )
            answer = await it.ask(user("Do odd things number 1."), tools=tools, max_tokens=60)
            assert answer.stop is not None
            assert it.pid() == child

    run(work(), timeout=500)


def test_hanging_up_while_it_speaks_or_reads_frees_it() -> None:
    async def work() -> None:
        async with model() as it:
            async with aclosing(it.call(user("Count from one to five hundred."), max_tokens=2000)) as batches:
                await anext(batches)
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2):
                    await it.ask(user("word " * 5000))
            assert time.monotonic() - began < 3
            assert "Paris" in (await it.ask(user("What is the capital of France?"))).text

    run(work(), timeout=500)


def test_killing_the_child_fails_the_call_in_flight_and_the_next_one_is_served() -> None:
    async def work() -> None:
        async with model() as it:
            batches = it.call(user("Count from one to five hundred."), max_tokens=2000)
            await anext(batches)
            os.kill(it.pid(), signal.SIGKILL)
            with pytest.raises(GatewayError) as caught:
                async for _ in batches:
                    pass
            assert (caught.value.code, caught.value.message.reason) == (Code.UPSTREAM_FAILED, "embedded_crashed")
            assert "Paris" in (await it.ask(user("What is the capital of France?"))).text

    run(work(), timeout=500)


def test_a_prompt_over_the_limit_is_refused_with_its_tokens() -> None:
    async def work() -> None:
        async with model() as it:
            with pytest.raises(GatewayError) as caught:
                await it.ask(user("ciao " * 7000))
            assert caught.value.code is Code.INVALID_REQUEST
            assert int(caught.value.message.details["count"]) > 7000

    run(work(), timeout=500)
