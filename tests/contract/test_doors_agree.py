"""The same request through every door: the same request upstream, or the same refusal in the caller's own terms."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from crocevia.core.catalogue import ENGINE_TRAITS
from crocevia.core.needs import Spelling
from tests.aio import run
from tests.contract.atp.forms import form, headers
from tests.contract.responses.test_newer_clients import repaired
from tests.contract.responses.upstream import calls, whole
from tests.documents import zoo
from tests.doors.responses.house import Answer, House, house
from tests.fakes.provider import Play, Provider

SETTINGS = (
    "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.endpoints.chatCompletions]\nenabled = true\n"
)
ALLOWED = """
[[projects]]
name = "default"
model = "Pepper mini"
mode = "agent"
permissions = {images = true, documents = true}
"""
Message = dict[str, Any]


def said(text: str) -> Message:
    return {"role": "user", "text": text}


def answered(text: str = "", *asked: tuple[str, str, str]) -> Message:
    return {"role": "assistant", "text": text, "calls": asked}


def result(call_id: str, text: str) -> Message:
    return {"role": "tool", "id": call_id, "text": text}


class Asked(msgspec.Struct):
    """A request that belongs to no protocol."""

    messages: list[Message] = msgspec.field(default_factory=lambda: [said("hi")])
    tools: list[dict[str, Any]] = []


# Each door's own spelling of it


async def agent(home: House, asked: Asked) -> Answer:
    messages = []
    for one in asked.messages:
        if one["role"] == "tool":
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": one["text"]})
            continue
        spelled: Message = {"role": one["role"], "content": one["text"]}
        if one.get("calls"):
            named = [{"id": i, "name": n, "arguments": _value(a)} for i, n, a in one["calls"]]
            spelled["tool_calls"] = named
        if one.get("image"):
            data = base64.b64encode(one["image"]).decode()
            block = {"tipo": "documento", "tipo_file": "image/jpeg", "dati": data}
            spelled["content"] = [{"tipo": "testo", "testo": one["text"]}, block]
        messages.append(spelled)
    body = {"messages": messages, "tools": asked.tools, "max_tokens": 4096}
    keyed = {"x-pepper-key": home.secrets.project_key, "x-pepper-project": home.secrets.project}
    return await home.ask("/agent", body, token=None, headers=keyed)


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


async def chat(home: House, asked: Asked) -> Answer:
    messages = []
    for one in asked.messages:
        if one["role"] == "tool":
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": one["text"]})
            continue
        spelled: Message = {"role": one["role"], "content": one["text"]}
        if one.get("calls"):
            named = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in one["calls"]]
            spelled["tool_calls"] = named
        if one.get("image"):
            url = "data:image/jpeg;base64," + base64.b64encode(one["image"]).decode()
            picture = {"type": "image_url", "image_url": {"url": url}}
            spelled["content"] = [{"type": "text", "text": one["text"]}, picture]
        messages.append(spelled)
    tools = [{"type": "function", "function": tool} for tool in asked.tools]
    return await home.ask("/v1/chat/completions", {"model": "openclaw", "messages": messages, "tools": tools})


async def responses(home: House, asked: Asked) -> Answer:
    items: list[Message] = []
    for one in asked.messages:
        if one["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": one["id"], "output": one["text"]})
            continue
        if one["text"]:
            content: Any = one["text"]
            if one.get("image"):
                url = "data:image/jpeg;base64," + base64.b64encode(one["image"]).decode()
                content = [{"type": "input_text", "text": one["text"]}, {"type": "input_image", "image_url": url}]
            items.append({"type": "message", "role": one["role"], "content": content})
        for i, n, a in one.get("calls", ()):
            items.append({"type": "function_call", "call_id": i, "name": n, "arguments": a})
    tools = [{"type": "function", **tool} for tool in asked.tools]
    return await home.ask("/v1/responses", {"model": "openclaw", "input": items, "tools": tools})


Door = Callable[[House, Asked], Awaitable[Answer]]
DOORS: dict[str, Door] = {"agent": agent, "chat": chat, "responses": responses}


@asynccontextmanager
async def serving(folder: Path, *plays: Play, **model: Any) -> AsyncIterator[tuple[House, Provider]]:
    async with Provider(*(plays or (whole(),))) as provider:
        engine = {"kind": "openai-chat", "base_url": f"{provider.url}/v1"}
        named = {"upstream": "up-1", **model}
        async with house(folder, settings=SETTINGS, engine=engine, declared=ALLOWED, model=named) as home:
            yield home, provider


def upstream(provider: Provider) -> dict[str, Any]:
    """What the provider was asked last, without instructions."""
    body: dict[str, Any] = provider.requests[-1].json()
    messages = [one for one in body["messages"] if one["role"] != "system"]
    return {"messages": messages, "tools": body.get("tools", [])}


LONG = "a" * 70
WILD = {
    "type": "object",
    "properties": {"hours": {"type": "integer"}, "minutes": {"type": "integer"}},
    "anyOf": [{"required": ["hours"]}, {"required": ["minutes"]}],
}
OLD = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
}
CALL = ("c1", "look", '{"q": 1}')


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "parameters": parameters or {"type": "object", "properties": {}}}


SAME: dict[str, Asked] = {
    "a plain question": Asked(),
    "names with dots, and names that are too long": Asked(
        tools=[tool("home.turn_on"), tool("home_turn_on"), tool(LONG)]
    ),
    "a schema with anyOf at the root": Asked(tools=[tool("wait", **WILD)]),
    "a schema of draft 4": Asked(tools=[tool("count", **OLD)]),
    "two users in a row": Asked([said("one"), said("two")]),
    "an end with the assistant": Asked([said("one"), answered("two")]),
    "broken arguments": Asked([said("x"), answered("", ("c1", "look", '{"value": ')), result("c1", "r")]),
    "arguments that are no object": Asked([said("x"), answered("", ("c1", "look", "[1]")), result("c1", "r")]),
    "an id in two rounds": Asked(
        [said("x"), answered("", CALL), result("c1", "one"), answered("", CALL), result("c1", "two")]
    ),
    "an id twice in one answer": Asked(
        [said("x"), answered("", CALL, CALL), result("c1", "one"), result("c1", "two"), said("y")]
    ),
    "an old call of a tool with a dot": Asked(
        [said("x"), answered("", ("c1", "home.look", "{}")), result("c1", "r")], [tool("home.look")]
    ),
    "a result that says nothing": Asked([said("x"), answered("", CALL), result("c1", "")]),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_request_is_the_same_upstream_through_every_door(case: str, tmp_path: Path) -> None:
    async def scene() -> None:
        sent = {}
        async with serving(tmp_path) as (home, provider):
            for name, door in DOORS.items():
                answer = await door(home, SAME[case])
                assert answer.status == 200, (name, answer.body)
                sent[name] = upstream(provider)
        assert sent["agent"] == sent["chat"] == sent["responses"]
        EXPECTED.get(case, lambda body: None)(sent["agent"])
        noted = [line for line in repaired(tmp_path) if line.endswith("arguments")]
        assert len(noted) == (len(DOORS) if "arguments" in case else 0)

    run(scene())


def _named(body: dict[str, Any]) -> None:
    names = [one["function"]["name"] for one in body["tools"]]
    assert len(set(names)) == 3 and names[1] == "home_turn_on"
    assert all(len(name) <= 64 and name.replace("_", "a").isalnum() for name in names)


def _flat(body: dict[str, Any]) -> None:
    schema = body["tools"][0]["function"]["parameters"]
    assert schema == {"type": "object", "properties": WILD["properties"]}


def _modern(body: dict[str, Any]) -> None:
    number = body["tools"][0]["function"]["parameters"]["properties"]["n"]
    assert number == {"type": "integer", "exclusiveMinimum": 0}


def _joined(body: dict[str, Any]) -> None:
    assert body["messages"] == [{"role": "user", "content": "one\n\ntwo"}]


def _whole(body: dict[str, Any]) -> None:
    assert json.loads(body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"arguments": '{"value":'}


def _unique(body: dict[str, Any]) -> None:
    asked = [call["id"] for one in body["messages"] for call in one.get("tool_calls", ())]
    results = {one["tool_call_id"]: one["content"] for one in body["messages"] if one["role"] == "tool"}
    assert asked[0] == "c1" and len(set(asked)) == 2
    assert [results[one] for one in asked] == ["one", "two"]


EXPECTED: dict[str, Callable[[dict[str, Any]], None]] = {
    "names with dots, and names that are too long": _named,
    "a schema with anyOf at the root": _flat,
    "a schema of draft 4": _modern,
    "two users in a row": _joined,
    "broken arguments": _whole,
    "an id in two rounds": _unique,
    "an id twice in one answer": _unique,
}

BROKEN = tool("odd", type="object", properties={"n": {"type": "strng"}})


def test_a_broken_schema_is_refused_by_its_path_in_the_caller_s_own_request(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (home, provider):
            asked = Asked(tools=[tool("fine"), BROKEN])
            answers = {name: await door(home, asked) for name, door in DOORS.items()}
            assert {answer.status for answer in answers.values()} == {400} and not provider.requests
            within = ".parameters.properties.n.type"
            assert answers["chat"].error["param"] == f"tools[1].function{within}"
            assert answers["responses"].error["param"] == f"tools[1]{within}"
            spoken = json.dumps(answers["agent"].json())
            assert f"tools[1]{within}" in spoken and "odd" in spoken
            examined = await home.ask(
                "/agent/verifica",
                {"messages": [{"role": "user", "content": "hi"}], "tools": asked.tools},
                token=None,
                headers={"x-pepper-key": home.secrets.project_key, "x-pepper-project": home.secrets.project},
            )
            assert not examined.json()["accettata"]
            assert examined.json()["problemi"][0]["campo"] == f"tools[1]{within}"
            registered = await home.ask("/api/v1/tools", BROKEN, token=home.secrets.api_key)
            assert registered.status == 422 and b"parameters.properties.n.type" in registered.body

    run(scene())


def test_an_answer_calls_tools_by_the_caller_s_names_and_never_by_an_id_that_is_used(tmp_path: Path) -> None:
    history = [said("x"), answered("", ("call_0", "home.look", "{}")), result("call_0", "r")]
    again = whole("", tool_calls=calls(("call_0", "home_look", "{}"), ("call_0", "home_look", "{}")))

    def heard(name: str, answer: Answer) -> list[tuple[str, str]]:
        body = answer.json()
        if name == "agent":
            return [(call["id"], call["name"]) for call in body["tool_calls"]]
        if name == "chat":
            asked = body["choices"][0]["message"]["tool_calls"]
            return [(call["id"], call["function"]["name"]) for call in asked]
        return [(item["call_id"], item["name"]) for item in body["output"] if item["type"] == "function_call"]

    async def scene() -> None:
        async with serving(tmp_path, again) as (home, _):
            for name, door in DOORS.items():
                found = heard(name, await door(home, Asked(history, [tool("home.look")])))
                assert [called for _, called in found] == ["home.look"] * 2, name
                assert len({"call_0", *(call_id for call_id, _ in found)}) == 3, name

    run(scene())


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photo_is_upright_and_bare_through_every_door(kind: str, tmp_path: Path) -> None:
    photo = zoo.photo(kind, (64, 32), orientation=6)

    async def scene() -> None:
        sent = []
        async with serving(tmp_path) as (home, provider):
            for name, door in DOORS.items():
                answer = await door(home, Asked([said("what is it?") | {"image": photo}]))
                assert answer.status == 200, (name, answer.body)
                sent.append(upstream(provider)["messages"])
        assert sent[0] == sent[1] == sent[2]
        (picture,) = (part for part in sent[0][0]["content"] if part["type"] == "image_url")
        data = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
        assert b"secret serial" not in data and Image.open(io.BytesIO(data)).size == (32, 64)

    run(scene())


def test_an_effort_is_the_same_wherever_it_is_said(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, reasoning="on") as (home, provider):
            for effort in ("low", "high", "none"):
                spoken = [{"role": "user", "content": "x"}]
                asked = {"model": "openclaw", "messages": spoken, "reasoning_effort": effort}
                assert (await home.ask("/v1/chat/completions", asked)).status == 200
                named = {"model": "openclaw", "input": "x", "reasoning": {"effort": effort}}
                assert (await home.ask("/v1/responses", named)).status == 200
                first, second = (one.json().get("reasoning_effort") for one in provider.requests[-2:])
                assert first == second == (None if effort == "none" else effort)
            wrong = await home.ask("/v1/chat/completions", asked | {"reasoning_effort": "loud"})
            assert (wrong.status, wrong.error["param"]) == (400, "reasoning_effort")

    run(scene())


async def turn(home: House, provider: Provider, message: Message) -> dict[str, Any]:
    """What a team's turn asks the provider. message: as it is posted, or with a file."""
    key, count = home.secrets.api_key, len(provider.requests)
    where = f"/api/v1/workspaces/{home.secrets.workspace_id}/chats"
    made = await home.ask(where, {"team_id": home.secrets.team_id}, token=key)
    name = made.json()["data"]["id"]
    body: Message = {"message": message["text"]}
    if "file" in message:
        raw = form(message["file"], message["name"])
        uploaded = await home.ask(f"{where}/{name}/attachments", raw=raw, token=key, headers=dict(headers("k")))
        assert uploaded.status == 202, uploaded.body
        body["attachment_ids"] = [uploaded.json()["data"]["attachment_id"]]
    posted = await home.ask(f"/api/v1/chats/{name}/messages", body, token=key, headers={"idempotency-key": "m"})
    assert posted.status == 202, posted.body
    asked: list[dict[str, Any]] = []
    async with asyncio.timeout(20):
        while not asked:
            index = count
            received = (await provider.request(index)).json()
            asked += [received] if received["stream"] else []  # the other one is about a title
            count += 1
    return asked[0]


def test_a_team_s_turn_tells_the_same_of_its_tools(tmp_path: Path) -> None:
    case = "a schema with anyOf at the root"

    async def scene() -> None:
        async with serving(tmp_path) as (home, provider):
            await chat(home, SAME[case])
            told = {one["function"]["name"]: one for one in upstream(provider)["tools"]}
            key = home.secrets.api_key
            for one in SAME[case].tools:
                registered = await home.ask("/api/v1/tools", one, token=key)
                assert registered.status == 201, registered.body
            (main,) = (await home.get("/api/v1/agents", token=key)).json()["data"]
            names = [{"name": one["name"]} for one in SAME[case].tools]
            path = f"/api/v1/agents/{main['id']}"
            changed = await home.ask(path, {"external_tools_enabled": names}, token=key, method="PUT")
            assert changed.status == 200, changed.body
            asked = await turn(home, provider, said("what can you do?"))
            mine = {one["function"]["name"]: one for one in asked["tools"] if one["function"]["name"] in told}
            assert mine == told

    run(scene())


TEXTS = {"cp1252": "perché no? più o meno: 5 €".encode("cp1252"), "utf-16": "perché no? più".encode("utf-16")}


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
@pytest.mark.parametrize("encoding", TEXTS)
def test_a_text_file_is_read_in_its_encoding_by_every_door_that_takes_one(
    encoding: str, name: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        data = base64.b64encode(TEXTS[encoding]).decode()
        url = f"data:text/{'csv' if name.endswith('csv') else 'plain'};base64,{data}"
        async with serving(tmp_path) as (home, provider):
            for path, body in (
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": [_file(name, url), WORDS]}]}),
                ("/v1/responses", {"input": [{"role": "user", "content": [_input_file(name, url), INPUT]}]}),
            ):
                answer = await home.ask(path, {"model": "openclaw", **body})
                assert answer.status == 200, answer.body
                assert "perché no? più" in json.dumps(provider.requests[-1].json(), ensure_ascii=False)
            asked = await turn(home, provider, said("what is in it?") | {"file": TEXTS[encoding], "name": name})
            assert "perché no? più" in json.dumps(asked, ensure_ascii=False)

    run(scene())


WORDS = {"type": "text", "text": "what is in it?"}
INPUT = {"type": "input_text", "text": "what is in it?"}


def _file(name: str, url: str) -> Message:
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def _input_file(name: str, url: str) -> Message:
    return {"type": "input_file", "filename": name, "file_data": url}


def test_a_kind_with_needs_of_its_own_is_obeyed_by_every_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = msgspec.structs.replace(
        ENGINE_TRAITS["openai-chat"].needs,
        tool_names=Spelling("a-zA-Z0-9_", 12),
        call_ids=Spelling("a-z0-9_", 64),
        begins_with_user=True,
        ends_with_assistant="never",
    )
    traits = msgspec.structs.replace(ENGINE_TRAITS["openai-chat"], needs=needs)
    monkeypatch.setattr("crocevia.engines.openai.chat.ENGINE_TRAITS", {**ENGINE_TRAITS, "openai-chat": traits})

    async def scene() -> None:
        async with serving(tmp_path) as (home, provider):
            loop = [answered("", ("C-1", "look-at", "{}")), result("C-1", "r"), said("so?")]
            sent = []
            for door in DOORS.values():
                assert (await door(home, Asked(loop, [tool("look-at")]))).status == 200
                sent.append(upstream(provider))
            assert sent[0] == sent[1] == sent[2]
            first, asked = sent[0]["messages"][:2]
            assert first["role"] == "user"
            (call,) = asked["tool_calls"]
            assert call["id"].islower() and call["function"]["name"] == "look_at"
            refused = {name: await door(home, Asked([said("x"), answered("y")])) for name, door in DOORS.items()}
            assert {answer.status for answer in refused.values()} == {400}
            assert refused["chat"].error["param"] == "messages[1]"
            assert refused["responses"].error["param"] == "input[1]"
            assert "messages[1]" in refused["agent"].body.decode()
            body = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}
            keyed = {"x-pepper-key": home.secrets.project_key, "x-pepper-project": home.secrets.project}
            examined = (await home.ask("/agent/verifica", body, token=None, headers=keyed)).json()
            assert not examined["accettata"] and examined["problemi"][0]["campo"] == "messages[1]"

    run(scene())
