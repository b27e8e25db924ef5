"""Everything that the official Python client can ask of the door; prints what came of it."""

import json
import os
import sys
import time
from urllib.request import urlopen

from openai import APIError, BadRequestError, InternalServerError, OpenAI
from pydantic import BaseModel

client = OpenAI(max_retries=0, timeout=30)
M = "openclaw"
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CHAT_TOOL = {"type": "function", "function": {key: value for key, value in TOOL.items() if key != "type"}}


class City(BaseModel):
    city: str
    degrees: int


def weather(arguments):
    return f"sunny in {json.loads(arguments)['city']}"


def outputs(response):
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": weather(item.arguments)}
        for item in response.output
        if item.type == "function_call"
    ]


def upstream_left():
    """Whether the provider sees its caller leave while this program is still there."""
    with urlopen(os.environ["ENDLESS"], timeout=20) as said:
        return said.read() == b"closed"


def text():
    return client.responses.create(model=M, input="hi").output_text


def stream():
    with client.responses.stream(model=M, input="hi") as events:
        deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert events.get_final_response().output_text == deltas
        return deltas


def tools():
    first = client.responses.create(model=M, input="weather?", tools=[TOOL])
    return client.responses.create(
        model=M, input=outputs(first), previous_response_id=first.id, tools=[TOOL]
    ).output_text


def stream_tools():
    history = [{"role": "user", "content": "weather?"}]
    with client.responses.stream(model=M, input=history, tools=[TOOL], store=False) as events:
        for _ in events:
            pass
        first = events.get_final_response()
    history += [item.model_dump(exclude_none=True) for item in first.output] + outputs(first)
    with client.responses.stream(model=M, input=history, tools=[TOOL], store=False) as events:
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def structured():
    return client.responses.parse(model=M, input="city as json", text_format=City).output_parsed.model_dump()


def image():
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": os.environ["PICTURE"]}]
    return client.responses.create(model=M, input=[{"role": "user", "content": parts}]).output_text


def file():
    one = {"type": "input_file", "filename": "a.txt", "file_data": os.environ["FILE"]}
    parts = [{"type": "input_text", "text": "read"}, one]
    return client.responses.create(model=M, input=[{"role": "user", "content": parts}]).output_text


def chained():
    first = client.responses.create(model=M, input="hi")
    return client.responses.create(model=M, input="and?", previous_response_id=first.id).output_text


def cancelled():
    events = client.responses.create(model="openclaw/endless", input="wait", stream=True)
    for event in events:
        if event.type == "response.output_text.delta":
            events.close()
            break
    if not upstream_left():
        return False
    chunks = client.chat.completions.create(
        model="openclaw/endless", messages=[{"role": "user", "content": "wait"}], stream=True
    )
    for chunk in chunks:
        if chunk.choices[0].delta.content:
            chunks.close()
            break
    if not upstream_left():
        return False
    job = client.responses.create(model=M, input="slowly", background=True)
    ended = client.responses.cancel(job.id)
    return ended.status == "cancelled" and client.responses.retrieve(job.id).status == "cancelled"


def failed():
    try:
        client.responses.create(model=M, input="busy")
    except InternalServerError as error:
        status = error.status_code
    try:
        for _ in client.responses.create(model=M, input="break", stream=True):
            pass
    except APIError:
        return status == 502
    return False


def faults():
    odd = []
    known = json.loads(os.environ["FAULTS"])
    tries = [(word, stream) for word in known["early"] for stream in (False, True)]
    for word, stream in tries + [(word, True) for word in known["late"]]:
        began = time.monotonic()
        try:
            made = client.responses.create(model=M, input=word, stream=stream)
            ended = [event.type for event in made][-1] if stream else made.status
        except APIError:
            ended = "error"
        if ended != "error" or time.monotonic() - began > 15:
            odd.append([word, stream, ended])
    return odd


def drip():
    made = client.responses.create(model=M, input="drip", stream=True)
    return "".join(event.delta for event in made if event.type == "response.output_text.delta")


def refused():
    try:
        client.responses.create(model=M, input="hi", previous_response_id="resp_none")
    except BadRequestError as error:
        return error.code == "previous_response_not_found" and error.param == "previous_response_id"
    return False


def chat():
    made = client.chat.completions.create(model="Pepper mini", messages=[{"role": "user", "content": "hi"}])
    return made.choices[0].message.content


def chat_stream():
    options = {"include_usage": True}
    messages = [{"role": "user", "content": "hi"}]
    chunks = list(client.chat.completions.create(model=M, messages=messages, stream=True, stream_options=options))
    assert chunks[-1].usage.total_tokens == 15
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def chat_tools():
    messages = [{"role": "user", "content": "weather?"}]
    with client.chat.completions.stream(model=M, messages=messages, tools=[CHAT_TOOL]) as events:
        for _ in events:
            pass
        said = events.get_final_completion().choices[0].message
    messages.append(
        {"role": "assistant", "content": said.content, "tool_calls": [c.model_dump() for c in said.tool_calls]}
    )
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)}
        for call in said.tool_calls
    ]
    return client.chat.completions.create(model=M, messages=messages, tools=[CHAT_TOOL]).choices[0].message.content


def chat_structured():
    messages = [{"role": "user", "content": "city as json"}]
    made = client.chat.completions.parse(model=M, messages=messages, response_format=City)
    return made.choices[0].message.parsed.model_dump()


def models():
    names = [model.id for model in client.models.list()]
    return "openclaw/main" in names and client.models.retrieve("openclaw/main").id == "openclaw/main"


TRIES = (text, stream, tools, stream_tools, structured, image, file, chained, cancelled, failed, refused, faults, drip)
CHATS = (chat, chat_stream, chat_tools, chat_structured, models)
json.dump({one.__name__: one() for one in (*TRIES, *CHATS)}, sys.stdout)
