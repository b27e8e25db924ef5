"""Reasoning leaves only for whoever asked, sealed, and comes back checked: forged or edited it never goes on."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

from crocevia.runtime.sealing import Sealer
from crocevia.storage.home import Home
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import house
from tests.fakes.provider import Provider, answer

from .upstream import calls, spoken, upstream, whole

INCLUDE = ["reasoning.encrypted_content"]
THINKING = '{"type":"thinking","thinking":"hm","signature":"c2ln"}'
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "hi"}


def claude(*blocks: str, stop: str = "tool_use") -> bytes:
    head = '{"type":"message","role":"assistant","content":[' + ",".join(blocks)
    return (head + '],"stop_reason":"' + stop + '","usage":{"input_tokens":1,"output_tokens":1}}').encode()


def use(number: int) -> str:
    return f'{{"type":"tool_use","id":"toolu_{number}","name":"look","input":{{"q":  {number}}}}}'


def result(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"toolu_{number}", "output": "x"}


ENGINE: dict[str, Any] = {"model": {"upstream": "claude-opus-5-5", "reasoning": "on"}}


def kinds(resource: dict[str, Any]) -> list[str]:
    return [item["type"] for item in resource["output"]]


@requirement("R-ITEM-8")
def test_reasoning_leaves_only_when_it_is_asked_for_and_a_stored_conversation_has_it_anyway(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Provider(answer(200, claude(THINKING, use(1)))) as provider:
            engine = {"kind": "anthropic", "base_url": provider.url}
            async with house(tmp_path, engine=engine, **ENGINE) as home:
                first = await home.respond("hi", tools=[TOOL], model="Pepper mini")
                read = (await home.get(f"/v1/responses/{first['id']}")).json()
                assert "encrypted_content" not in json.dumps([first, read])
                assert set(read) == set(first)
                go_on = {"tools": [TOOL], "model": "Pepper mini", "previous_response_id": first["id"]}
                await home.respond([result(1)], **go_on)
                assert THINKING.encode() in provider.requests[-1].body
                references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
                alone = {"tools": [TOOL], "model": "Pepper mini", "store": False}
                await home.respond([USER, *references, result(1)], **alone)
                assert THINKING.encode() in provider.requests[-1].body
                asked = await home.respond("hi", tools=[TOOL], model="Pepper mini", include=INCLUDE)
                assert kinds(asked)[-1] == "reasoning" and "c2ln" not in json.dumps(asked)
        keys = list((tmp_path / "home/keys").glob("seal_*.key"))
        assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600]

    run(scene(), timeout=40)


@requirement("R-RES-3")
def test_the_last_item_of_an_answer_that_was_cut_is_the_incomplete_one_whatever_it_is(tmp_path: Path) -> None:
    said = '{"type":"text","text":"once"}'

    async def scene() -> None:
        plays = (
            answer(200, claude(THINKING, said, stop="max_tokens")),
            answer(200, claude(THINKING, stop="max_tokens")),
        )
        async with Provider(*plays) as provider:
            engine = {"kind": "anthropic", "base_url": provider.url}
            async with house(tmp_path, engine=engine, **ENGINE) as home:
                how = {"model": "Pepper mini", "include": INCLUDE, "reasoning": {"summary": "auto"}}
                for expected in (["reasoning", "message"], ["reasoning"]):
                    cut = await home.respond("hi", **how)
                    assert (cut["status"], kinds(cut)) == ("incomplete", expected)
                    states = [item["status"] for item in cut["output"]]
                    assert states == [*["completed"] * (len(states) - 1), "incomplete"]

    run(scene(), timeout=40)


@requirement("R-ITEM-8")
def test_what_was_edited_trimmed_forged_or_is_another_s_is_told_without_its_pieces(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Provider(answer(200, claude(THINKING, use(1), use(2)))) as provider:
            engine = {"kind": "anthropic", "base_url": provider.url}
            async with house(tmp_path, engine=engine, **ENGINE) as home:
                how = {"tools": [TOOL], "store": False, "include": INCLUDE, "model": "Pepper mini"}
                first = await home.respond("hi", **how)
                *said, sealed = first["output"]
                await home.respond([USER, *said, sealed, result(1), result(2)], **how)
                assert THINKING.encode() in provider.requests[-1].body
                forged = base64.urlsafe_b64encode(
                    json.dumps({"dialect": "anthropic", "blocks": [json.loads(THINKING)]}).encode()
                ).decode()
                text = sealed["encrypted_content"]
                edited = [{**one, "arguments": '{"q": 9}'} for one in said if one["type"] == "function_call"]
                foreign = Sealer(Home(tmp_path / "home")).seal(b"{}", "somebody else")
                one_call = [one for one in said if one.get("call_id") != "toolu_2"]
                for items in (
                    [*edited, sealed, result(1), result(2)],
                    [*one_call, sealed, result(1)],
                    *(
                        [*said, {**sealed, "encrypted_content": odd}, result(1), result(2)]
                        for odd in (forged, foreign, text[:-2] + "AA", text[:40], "?", ".", text.upper())
                    ),
                ):
                    answered = await home.ask("/v1/responses", {"input": [USER, *items], **how})
                    assert answered.status in (200, 400), answered.body
                    sent = provider.requests[-1].json()
                    assert "c2ln" not in json.dumps(sent) or answered.status == 400
                    used = [b["id"] for m in sent["messages"] for b in m["content"] if b_type(b) == "tool_use"]
                    told = [
                        b["tool_use_id"] for m in sent["messages"] for b in m["content"] if b_type(b) == "tool_result"
                    ]
                    assert used == told

    run(scene(), timeout=60)


def b_type(block: Any) -> str:
    return block["type"] if isinstance(block, dict) else ""


@requirement("R-ITEM-8")
def test_a_new_key_seals_and_the_old_one_still_opens(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sealer = Sealer(home)
    old = sealer.seal(b"old", "ann")
    (home.keys / "seal_zzzzzzzzzzzzzzzzzzzzzzzzzz.key").write_bytes(bytes(32))
    new = sealer.seal(b"new", "ann")
    assert new.startswith("seal_zzz")
    for reader in (sealer, Sealer(home)):
        assert [reader.open(text, "ann") for text in (old, new)] == [b"old", b"new"]
        assert [reader.open(text, "bob") for text in (old, new)] == [None, None]
    (home.keys / f"{old.partition('.')[0]}.key").unlink()
    assert sealer.open(old, "ann") is None
    assert sealer.open("../../etc/passwd.AAAA", "ann") is None


@requirement("R-CHOICE-3")
def test_a_choice_that_was_not_met_is_told_in_the_stream_and_a_made_up_name_is_no_choice(tmp_path: Path) -> None:
    async def scene() -> None:
        odd = whole("", tool_calls=calls(("c1", "invented", "{}")))
        async with upstream(tmp_path, spoken(""), whole(), odd) as (home, _):
            body = {"model": "Pepper mini", "input": "hi", "tools": [TOOL], "tool_choice": "required"}
            told = await home.ask("/v1/responses", {**body, "stream": True})
            assert told.status == 200
            last = told.events()[-1]
            assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "tool_choice_unmet")
            plain = await home.ask("/v1/responses", body)
            assert (plain.status, plain.error["code"]) == (502, "tool_choice_unmet")
            made_up = await home.ask("/v1/responses", {**body, "tool_choice": "auto"})
            assert (made_up.status, made_up.error["code"]) == (502, "upstream_failed")
        chat = {
            "model": "Pepper mini",
            "messages": [USER],
            "tools": [{"type": "function", "function": {"name": "look"}}],
        }
        (tmp_path / "chat").mkdir()
        async with upstream(tmp_path / "chat", spoken("hm"), whole(), odd) as (home, _):
            told = await home.ask("/v1/chat/completions", {**chat, "tool_choice": "required", "stream": True})
            assert told.status == 200 and told.body.endswith(b"data: [DONE]\n\n")
            plain = await home.ask("/v1/chat/completions", {**chat, "tool_choice": "required"})
            assert (plain.status, plain.error["code"]) == (502, "tool_choice_unmet")
            made_up = await home.ask("/v1/chat/completions", chat)
            assert (made_up.status, made_up.error["code"]) == (502, "upstream_failed")

    run(scene(), timeout=40)
