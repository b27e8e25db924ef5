"""pydantic-ai over both of its OpenAI models."""

import asyncio
import base64
import json
import os
import sys

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


def agent(chat=False, **more):
    kind = OpenAIChatModel if chat else OpenAIResponsesModel
    return Agent(kind("openclaw", provider=provider), instructions="be brief", **more)


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
