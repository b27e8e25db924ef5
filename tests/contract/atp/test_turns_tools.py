"""Client tools: who may use them, how they are asked for, what counts as their answer."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.storage import chats, declared, meta
from crocevia.storage.database import immediate
from tests.contract.requirements import requirement
from tests.fakes.provider import Play, Provider
from tests.fakes.provider import play as streamed
from tests.runtime.turns.theatre import Theatre, Watcher, change_agent, play, tool

ARGS = {"to": "ü@example.com", "n": 9007199254740993, "f": 1.0, "nested": {"b": [1, None], "a": "\u20ac\n"}}
MAIL: dict[str, Any] = {
    "main": [
        {"when": {"after_tool": True}, "say": [{"text": "It said: {tool_result}"}]},
        {"when": {"contains": "two"}, "say": [{"tool": "send_email"}, {"tool": "send_email"}]},
        {"when": {"tool_offered": "send_email"}, "say": [{"tool": "send_email", "arguments": ARGS}]},
        {"say": [{"tool": "send_email"}]},
    ]
}
NAMED = {"main": {"external_tools_enabled": tool("send_email")}}


async def register(place: Theatre, timeout: int = 120, name: str = "send_email") -> None:
    body = {"name": name, "parameters": {"type": "object"}, "timeout_seconds": timeout}
    assert (await place.call("POST", "/api/v1/tools", body)).status == 201


async def asked(place: Theatre, message: str = "mail") -> tuple[str, Watcher, dict[str, Any]]:
    chat = await place.chat()
    watcher = await place.watch(chat)
    await place.say(chat, message)
    return chat, watcher, await watcher.until("agent.tool.request")


@requirement("T-CLI-2", "T-CLI-3")
def test_a_request_is_signed_and_its_output_goes_to_the_model() -> None:
    async def work(place: Theatre) -> None:
        await register(place)
        chat, watcher, event = await asked(place)
        data = event["data"]
        assert (data["tool_name"], data["kind"], data["args"]) == ("send_email", "client", ARGS)
        keys = (await place.call("GET", "/.well-known/jwks.json")).json["keys"]
        verify(keys, data)
        for changed in ({"call_id": data["call_id"][:-1] + "0"}, {"tool_name": "other"}, {"args": ARGS | {"f": 2}}):
            with pytest.raises(InvalidSignature):
                verify(keys, data | changed)
        answer = {"call_id": data["call_id"], "output": '{"sent":true}'}
        assert (await place.post(chat, "tool-output", answer)).status == 204
        again = await place.post(chat, "tool-output", answer)
        assert (again.status, again.json["error"]["code"]) in ((409, "tool_already_resolved"), (404, None))
        await watcher.end()
        result = watcher.all("agent.tool.result")[0]["data"]
        assert result == {"call_id": data["call_id"], "output": '{"sent":true}', "is_error": False}
        assert watcher.text("main") == 'It said: {"sent":true}'
        assert watcher.all("agent.done")[0]["data"]["usage"]["tool_calls"] == 1
        late = await place.post(chat, "tool-output", answer)
        assert (late.status, late.json["error"]["type"]) == (404, "not_found")

    play(MAIL, work, agents=NAMED)


def verify(keys: list[dict[str, Any]], data: dict[str, Any]) -> None:
    (key,) = [key for key in keys if key["kid"] == data["signature"]["kid"]]
    args = json.loads(json.dumps(data["args"]), parse_int=lambda n: int(n) if abs(int(n)) < 2**53 else float(n))
    signed = f"{data['call_id']}\n{data['tool_name']}\n".encode() + rfc8785.dumps(args)
    assert data["signature"]["alg"] == "EdDSA" and "=" not in data["signature"]["sig"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    public.verify(base64.urlsafe_b64decode(data["signature"]["sig"] + "=="), signed)


@requirement("T-CLI-1")
@pytest.mark.parametrize(("registered", "named"), [(False, True), (True, False), (False, False)])
def test_a_tool_that_is_not_both_registered_and_named_is_not_there(registered: bool, named: bool) -> None:
    async def work(place: Theatre) -> None:
        if registered:
            await register(place)
        watcher = await place.play("mail")
        assert "agent.tool.request" not in watcher.types
        complete = watcher.all("agent.tool.complete")[0]["data"]
        assert complete["is_error"] and complete["result"]["code"] == "unknown_tool"
        assert watcher.types[-1] == "turn.completed"  # the model is told, and goes on

    play(MAIL, work, agents=NAMED if named else {})


@requirement("T-CLI-3")
def test_an_open_call_has_one_output_and_strangers_none() -> None:
    async def work(place: Theatre) -> None:
        await register(place)
        chat, watcher, event = await asked(place, "two")
        second = (await watcher.until(lambda e: e["type"] == "agent.tool.request" and e != event))["data"]["call_id"]
        call = event["data"]["call_id"]
        replies = await asyncio.gather(
            *(place.post(chat, "tool-output", {"call_id": call, "output": str(n)}) for n in range(8))
        )
        assert sorted(reply.status for reply in replies) == [204] + [409] * 7
        assert {r.json["error"]["code"] for r in replies if r.status == 409} == {"tool_already_resolved"}
        for unknown in ("tc_01j5abcdefghjkmnpqrstvwxyz", "x"):
            assert (await place.post(chat, "tool-output", {"call_id": unknown, "output": "x"})).status == 404
        other = await place.chat()
        assert (await place.post(other, "tool-output", {"call_id": second, "output": "x"})).status == 404
        limit = 131_072
        for output in ("", "x" * (limit + 1), "é" * (limit // 2 + 1)):
            assert (await place.post(chat, "tool-output", {"call_id": second, "output": output})).status == 422
        assert (await place.post(chat, "tool-output", {"call_id": "c" * 65, "output": "x"})).status == 422
        whole = {"call_id": second, "output": "é" * (limit // 2), "is_error": True}
        assert (await place.post(chat, "tool-output", whole, version=2)).status == 204
        await watcher.end()
        assert len(watcher.all("agent.tool.result")) == 2
        assert watcher.all("agent.tool.result")[1]["data"]["is_error"]

    play(MAIL, work, agents=NAMED)


@requirement("T-CLI-3")
def test_a_client_that_never_answers_costs_the_turn_its_timeout_only() -> None:
    async def work(place: Theatre) -> None:
        await register(place, timeout=1)
        chat, watcher, event = await asked(place)
        refused = await place.post(chat, "messages", {"message": "hello?"})
        assert refused.json["error"]["details"]["waiting_for"] == "client_tool"
        result = (await watcher.until("agent.tool.result"))["data"]
        assert result["is_error"] and json.loads(result["output"])["code"] == "tool_timeout"
        late = await place.post(chat, "tool-output", {"call_id": event["data"]["call_id"], "output": "x"})
        assert (late.status, late.json["error"].get("code")) in ((409, "tool_timed_out"), (404, None))
        await watcher.end()
        assert (await place.post(chat, "messages", {"message": "hello?"})).status == 202

    play(MAIL, work, agents=NAMED)


@requirement("T-CLI-3")
def test_a_late_output_of_a_turn_that_goes_on_has_timed_out() -> None:
    scripts = {
        "main": [{"when": {"nth": 1}, "say": [{"tool": "send_email"}, {"tool": "wait"}]}, {"say": [{"text": "ok"}]}]
    }

    async def work(place: Theatre) -> None:
        await register(place, timeout=1)
        await register(place, timeout=60, name="wait")
        chat, watcher, _ = await asked(place)
        result = (await watcher.until("agent.tool.result"))["data"]
        late = await place.post(chat, "tool-output", {"call_id": result["call_id"], "output": "x"})
        assert (late.status, late.json["error"]["code"]) == (409, "tool_timed_out")

    play(scripts, work, agents={"main": {"external_tools_enabled": tool("send_email", "wait")}})


@requirement("T-CLI-4")
def test_two_runners_claim_and_one_gets_the_call() -> None:
    async def work(place: Theatre) -> None:
        await register(place)
        chat, watcher, event = await asked(place)
        call = event["data"]["call_id"]
        replies = await asyncio.gather(
            *(place.post(chat, "tool-claim", {"call_id": call, "holder": f"r{n}"}) for n in range(6))
        )
        assert sorted(reply.status for reply in replies) == [204] + [409] * 5
        assert {r.json["error"]["code"] for r in replies if r.status == 409} == {"tool_claimed"}
        (holder,) = [n for n, reply in enumerate(replies) if reply.status == 204]
        await place.reopen()
        again = await place.post(chat, "tool-claim", {"call_id": call, "holder": f"r{holder}"})
        rival = await place.post(chat, "tool-claim", {"call_id": call, "holder": "rival"})
        assert (again.status, rival.status) == (204, 409)
        assert (await place.post(chat, "tool-claim", {"call_id": "tc_none", "holder": "r"})).status == 404
        assert (await place.post(chat, "tool-output", {"call_id": call, "output": "done"})).status == 204
        watcher = await place.watch(chat)
        await watcher.end()

    play(MAIL, work, agents=NAMED)


@requirement("T-CLI-2")
def test_a_name_of_the_platform_is_never_sent_to_a_client() -> None:
    scripts = {
        "main": [
            {"when": {"after_tool": True}, "say": [{"text": "ok"}]},
            {"say": [{"tool": "wiki_search", "arguments": {"words": "x"}}]},
        ]
    }

    async def work(place: Theatre) -> None:
        await register(place, name="wiki_search")
        watcher = await place.play()
        assert "agent.tool.request" not in watcher.types
        assert watcher.all("agent.tool.start")[0]["data"]["kind"] == "knowledge"

    both = {"tools_enabled": tool("wiki_search"), "external_tools_enabled": tool("wiki_search")}
    play(scripts, work, agents={"main": both})


BROKEN = ('{"to": ', '{"to": "x"', "[1]", '"x"', "7", "to=x", '{"to": NaN}', '{"to": 1e999}', '{"a":' * 5000)


def says(*deltas: dict[str, Any], why: str) -> Play:
    """A streamed answer."""
    parts = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": why}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
    frames = [*map(json.dumps, [*parts, end, usage]), "[DONE]"]
    return streamed("".join(f"data: {frame}\n\n" for frame in frames).encode())


def calling(name: str, arguments: str) -> Play:
    function = {"name": name, "arguments": arguments}
    return says({"tool_calls": [{"index": 0, "id": "call_0", "function": function}]}, why="tool_calls")


@requirement("T-CLI-5")
@pytest.mark.parametrize("name", ["send_email", "write", "nobody"])
def test_a_model_whose_arguments_are_no_json_object_is_told_so(name: str) -> None:
    async def work(place: Theatre) -> None:
        await register(place)
        sorry = says({"content": "Sorry."}, why="stop")
        plays = [play_ for arguments in BROKEN for play_ in (calling(name, arguments), sorry)]
        async with Provider(*plays) as provider:
            with immediate(place.home.database) as tx:
                far = EngineSpec(name="far", kind="openai-chat", base_url=f"{provider.url}/v1")
                declared.save(tx, far, 0.0)
                price = Prices(input=1.0, output=1.0)
                declared.save(tx, ModelSpec(name="far", engine="far", upstream="x", prices=price), 0.0)
                change_agent(tx, place.made.user_id, "main", {"model": "far"})
                meta.bump_revision(tx)
            await place.reopen()
            chat = await place.chat()
            await place.service.database.write(lambda tx: chats.set_title(tx, chat, "named", 0.0))
            watcher = await place.watch(chat)
            for index, arguments in enumerate(BROKEN):
                end = await watcher.end(await place.say(chat, "go"))
                assert (end["type"], end["data"]["cost"] is None) == ("turn.completed", False), arguments
                heard = provider.requests[2 * index + 1].json()["messages"][-1]
                assert heard["role"] == "tool" and '"invalid_arguments"' in heard["content"], arguments
        told = watcher.all("agent.tool.complete")
        assert [event["data"]["result"]["code"] for event in told] == ["invalid_arguments"] * len(BROKEN)
        assert not {"agent.tool.request", "agent.text.reset", "agent.artifact"} & set(watcher.types)

    play(MAIL, work, agents={"main": {"external_tools_enabled": tool("send_email"), "tools_enabled": tool("write")}})
