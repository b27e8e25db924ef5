"""OpenAI's agent framework: tool loops, streams, structured output, sessions by previous answer."""

import asyncio
import json
import os
import sys
from urllib.request import urlopen

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import APIError, AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
client = AsyncOpenAI(max_retries=0)


class City(BaseModel):
    city: str
    degrees: int


def upstream_left():
    """Whether the provider sees its caller leave while this program is still there."""
    with urlopen(os.environ["ENDLESS"], timeout=20) as said:
        return said.read() == b"closed"


@function_tool
def get_weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


def agent(chat=False, model="openclaw", **more):
    kind = OpenAIChatCompletionsModel if chat else OpenAIResponsesModel
    return Agent(name="a", instructions="be brief", model=kind(model=model, openai_client=client), **more)


async def streamed(who, said):
    run = Runner.run_streamed(who, said)
    deltas = [
        event.data.delta
        async for event in run.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == run.final_output
    return run.final_output


async def failed():
    """Before the first word and after it: the client's own error, never an answer."""
    for work in (Runner.run(agent(), "busy"), streamed(agent(), "break"), streamed(agent(chat=True), "break")):
        try:
            await work
        except APIError:
            continue
        return False
    return True


async def faults():
    odd, known = [], json.loads(os.environ["FAULTS"])
    tries = [(word, Runner.run(agent(), word)) for word in known["early"]]
    tries += [(word, streamed(agent(), word)) for word in known["early"] + known["late"]]
    for word, work in tries:
        try:
            async with asyncio.timeout(25):
                odd.append([word, await work])
        except APIError:
            continue
    return odd


async def cancelled():
    for chat in (False, True):
        run = Runner.run_streamed(agent(chat, "openclaw/endless"), "wait")
        async for event in run.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                run.cancel()
        if not await asyncio.to_thread(upstream_left):
            return False
    return True


async def main():
    with_tools = agent(tools=[get_weather])
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": os.environ["PICTURE"]}]
    file = {"type": "input_file", "filename": "a.txt", "file_data": os.environ["FILE"]}
    reading = [{"role": "user", "content": [{"type": "input_text", "text": "read"}, file]}]
    first = await Runner.run(agent(), "hi")
    return {
        "text": first.final_output,
        "stream": await streamed(agent(), "hi"),
        "tools": (await Runner.run(with_tools, "weather?")).final_output,
        "stream_tools": await streamed(with_tools, "weather?"),
        "structured": (await Runner.run(agent(output_type=City), "city as json")).final_output.model_dump(),
        "image": (await Runner.run(agent(), [{"role": "user", "content": parts}])).final_output,
        "file": (await Runner.run(agent(), reading)).final_output,
        "cancelled": await cancelled(),
        "chained": (await Runner.run(agent(), "and?", previous_response_id=first.last_response_id)).final_output,
        "failed": await failed(),
        "faults": await faults(),
        "drip": await streamed(agent(), "drip"),
        "chat": (await Runner.run(agent(chat=True), "hi")).final_output,
        "chat_stream": await streamed(agent(chat=True), "hi"),
        "chat_tools": (await Runner.run(agent(chat=True, tools=[get_weather]), "weather?")).final_output,
    }


json.dump(asyncio.run(main()), sys.stdout)
