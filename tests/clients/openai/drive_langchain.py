"""langchain-openai over both APIs."""

import json
import os
import sys
import time
from urllib.request import urlopen

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import APIError
from pydantic import BaseModel


class City(BaseModel):
    city: str
    degrees: int


def upstream_left():
    """Whether the provider sees its caller leave while this program is still there."""
    with urlopen(os.environ["ENDLESS"], timeout=20) as said:
        return said.read() == b"closed"


@tool
def get_weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


def model(responses=True, name="openclaw", **more):
    return ChatOpenAI(model=name, use_responses_api=responses, max_retries=0, **more)


def loop(who):
    bound = who.bind_tools([get_weather])
    history = [HumanMessage("weather?")]
    history.append(bound.invoke(history))
    calls = history[-1].tool_calls
    history += [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in calls]
    return bound.invoke(history).text


def streamed(who):
    return "".join(chunk.text for chunk in who.stream("hi"))


def failed():
    """Before the first word and after it: the client's own error, never an answer."""
    for work in (
        lambda: model().invoke("busy"),
        lambda: list(model().stream("break")),
        lambda: list(model(False).stream("break")),
    ):
        try:
            work()
        except APIError:
            continue
        return False
    return True


def faults():
    odd, known = [], json.loads(os.environ["FAULTS"])
    tries = [(word, lambda word=word: model().invoke(word)) for word in known["early"]]
    tries += [(word, lambda word=word: list(model().stream(word))) for word in known["early"] + known["late"]]
    for word, work in tries:
        began = time.monotonic()
        try:
            odd.append([word, str(work())])
        except APIError:
            if time.monotonic() - began > 15:
                odd.append([word, "late"])
    return odd


def cancelled():
    for responses in (True, False):
        chunks = model(responses, "openclaw/endless").stream("wait")
        for chunk in chunks:
            if chunk.text:
                chunks.close()
                break
        if not upstream_left():
            return False
    return True


def structured(who):
    return who.with_structured_output(City, method="json_schema").invoke("city as json").model_dump()


def shown(part):
    return [HumanMessage([{"type": "text", "text": part[0]}, part[1]])]


picture = ("look", {"type": "image_url", "image_url": {"url": os.environ["PICTURE"]}})
encoded = os.environ["FILE"].partition(",")[2]
file = ("read", {"type": "file", "base64": encoded, "mime_type": "text/plain", "filename": "a.txt"})
first = model(output_version="responses/v1").invoke("hi")
chained = model(output_version="responses/v1").invoke(
    [HumanMessage("and?")], previous_response_id=first.response_metadata["id"]
)
results = {
    "text": model().invoke("hi").text,
    "stream": streamed(model()),
    "tools": loop(model()),
    "structured": structured(model()),
    "image": model().invoke(shown(picture)).text,
    "file": model().invoke(shown(file)).text,
    "cancelled": cancelled(),
    "chained": chained.text,
    "failed": failed(),
    "faults": faults(),
    "drip": "".join(chunk.text for chunk in model().stream("drip")),
    "chat": model(False).invoke("hi").text,
    "chat_stream": streamed(model(False)),
    "chat_tools": loop(model(False)),
    "chat_structured": structured(model(False)),
}
json.dump(results, sys.stdout)
