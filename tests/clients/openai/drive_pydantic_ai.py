"""pydantic-ai over both of its OpenAI models."""

import asyncio
import base64
import json
import os
import sys
from urllib.request import urlopen

from openai import APIError
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url=os.environ["BASE"], api_key=os.environ["OPENAI_API_KEY"])


class City(BaseModel):
    city: str
    degrees: int


def upstream_left():
    """Whether the provider sees its caller leave while this program is still there."""
    with urlopen(os.environ["ENDLESS"], timeout=20) as said:
        return said.read() == b"closed"


def agent(chat=False, model="openclaw", **more):
    kind = OpenAIChatModel if chat else OpenAIResponsesModel
    return Agent(kind(model, provider=provider), instructions="be brief", **more)


def with_tool(chat=False):
    made = agent(chat)

    @made.tool_plain
    def get_weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    return made


async def streamed(who, said):
    async with who.run_stream(said) as run:
        pieces = [piece async for piece in run.stream_text(delta=True)]
    return "".join(pieces)


async def failed():
    """Before the first word and after it: an error, never an answer."""
    for work in (agent().run("busy"), streamed(agent(), "break"), streamed(agent(chat=True), "break")):
        try:
            await work
        except (ModelAPIError, APIError):
            continue
        return False
    return True


async def faults():
    odd, known = [], json.loads(os.environ["FAULTS"])
    tries = [(word, agent().run(word)) for word in known["early"]]
    tries += [(word, streamed(agent(), word)) for word in known["early"] + known["late"]]
    for word, work in tries:
        try:
            async with asyncio.timeout(25):
                odd.append([word, str(await work)])
        except (ModelAPIError, APIError):
            continue
    return odd


async def cancelled():
    for chat in (False, True):
        async with agent(chat, "openclaw/endless").run_stream("wait") as run:
            async for _ in run.stream_text(delta=True, debounce_by=None):
                await run.cancel()
                break
        if not await asyncio.to_thread(upstream_left):
            return False
    return True


async def main():
    data = base64.b64decode(os.environ["PICTURE"].partition(",")[2])
    text = BinaryContent(base64.b64decode(os.environ["FILE"].partition(",")[2]), media_type="text/plain")
    picture = BinaryContent(data, media_type="image/png")
    first = await agent().run("hi")
    return {
        "text": first.output,
        "stream": await streamed(agent(), "hi"),
        "tools": (await with_tool().run("weather?")).output,
        "structured": (await agent(output_type=NativeOutput(City)).run("city as json")).output.model_dump(),
        "image": (await agent().run(["look", picture])).output,
        "file": (await agent().run(["read", text])).output[: len("You said: read")],
        "cancelled": await cancelled(),
        "chained": (await agent().run("and?", message_history=first.all_messages())).output,
        "failed": await failed(),
        "faults": await faults(),
        "drip": await streamed(agent(), "drip"),
        "chat": (await agent(chat=True).run("hi")).output,
        "chat_stream": await streamed(agent(chat=True), "hi"),
        "chat_tools": (await with_tool(chat=True).run("weather?")).output,
        "chat_structured": (await agent(chat=True, output_type=City).run("final")).output.model_dump(),
    }


json.dump(asyncio.run(main()), sys.stdout)
