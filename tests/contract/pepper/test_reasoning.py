"""Reasoning that travels: pieces out and back, histories that changed, the reserve."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.aio import run
from tests.contract.pepper.claude import REJECTED, App, asks, says, streamed, talking, thought, whole
from tests.contract.requirements import requirement
from tests.documents import zoo
from tests.doors.pepper.house import ALL_ALLOWED

FIRST = (thought("guardo", "sig/1+=="), says("Controllo."), asks("toolu_01", x={}, n=1.5))
SECOND = (thought("", "sig-2"), {"type": "redacted_thinking", "data": "EmwK+/=="}, asks("toolu_02"))
LAST = (thought("ecco", "sig-3"), says("Tutto chiuso."))
UPSTREAM_CUT = "claude-sonnet-5"  # of those that can be told not to think


async def to_the_second_call(app: App) -> None:
    """A question, an answer that asks for a tool, its result."""
    app.user("prepara casa")
    await app.call()
    app.results()


@requirement("P-BLK-1", "P-BLK-2", "P-BLK-3", "P-LOOP-1")
@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_loop_gives_every_piece_back_to_the_provider(stream: bool) -> None:
    async def work() -> None:
        plays = [(streamed if stream else whole)(*blocks) for blocks in (FIRST, SECOND, LAST)]
        async with talking(*plays, stream=stream) as app:
            await to_the_second_call(app)
            assert app.messages[1]["blocchi"] == list(FIRST)
            await app.call()
            assert app.sent(1)["messages"][1] == {"role": "assistant", "content": list(FIRST)}
            app.results()
            reply = await app.call()
            assert reply["blocchi"] == list(LAST)
            found = [m["content"] for m in app.sent(2)["messages"] if m["role"] == "assistant"]
            assert found == [list(FIRST), list(SECOND)]
            assert app.lost() == []
            assert app.place.rounds == [("casa", False), ("casa", False)]

    run(work())


@requirement("P-BLK-3")
def test_pieces_come_back_byte_for_byte() -> None:
    pieces = (
        b'[{"type":"thinking","signature":"=\\/","thinking":"","n":1.0E+2},  {"later":[1,2.50,{}],"type":"unheard_of"}'
        b', {"type":"tool_use","id":"c1","name":"t","input":{ "z":1.50, "a":{} , "e":[] }}]'
    )

    async def work() -> None:
        async with talking(whole(says("ok"))) as app:
            raw = (
                b'{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":'
                b'"c1","name":"t","arguments":{"a":{},"e":[],"z":1.5}}],"blocchi":' + pieces + b"},"
                b'{"role":"tool","tool_call_id":"c1","content":"ok"}]}'
            )
            from tests.doors.pepper.asgi import ask

            assert (await ask(app.place.agent, raw=raw)).status == 200
            blocks = pieces.replace(b",  {", b",{").replace(b', {"type":"tool', b',{"type":"tool')
            assert b'{"role":"assistant","content":' + blocks + b"}" in app.provider.requests[0].body

    run(work())


def shorten(app: App) -> None:
    del app.messages[0]
    app.messages.insert(0, {"role": "user", "content": "in breve"})


def rewrite(app: App) -> None:
    app.messages[0]["content"] += "!"


def change_system(app: App) -> None:
    app.system = "Altre regole."


def change_tools(app: App) -> None:
    app.tools.append({"name": "altro", "description": "", "parameters": {"type": "object", "properties": {}}})


CHANGES = [shorten, rewrite, change_system, change_tools]


@requirement("P-BLK-4")
@pytest.mark.parametrize("change", CHANGES)
def test_reasoning_that_no_longer_holds_is_dropped_and_the_record_says_so(change: Any) -> None:
    """In a finished round: the model itself goes on, without the old thoughts."""

    async def work() -> None:
        async with talking(whole(*FIRST), whole(*LAST), whole(says("ok"))) as app:
            await to_the_second_call(app)
            await app.call()
            app.user("e adesso?")
            change(app)
            reply = await app.call()
            assert reply["versione"] == "Pepper 7"
            contents = [m["content"] for m in app.sent()["messages"] if m["role"] == "assistant"]
            assert contents == [list(FIRST[1:]), list(LAST[1:])]
            assert app.lost() == [(1, "history_changed"), (3, "history_changed")]

    run(work())


@requirement("P-BLK-4")
def test_an_unchanged_history_loses_nothing_however_it_is_spelled() -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), whole(*LAST), whole(says("ok"))) as app:
            await to_the_second_call(app)
            await app.call()
            app.user("e adesso?")
            spelled = json.loads(json.dumps(app.messages, sort_keys=True))  # as a program that sorts members would
            spelled[3]["content"] = f" {spelled[3]['content']}\n"
            app.messages = spelled
            await app.call()
            assert app.lost() == []

    run(work())


@requirement("P-BLK-4")
@pytest.mark.parametrize("change", CHANGES)
def test_in_an_open_round_changed_history_is_answered_by_the_reserve(change: Any) -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), spare=whole(says("ok"))) as app:
            await to_the_second_call(app)
            change(app)
            assert (await app.call())["versione"] == "Pepper 6"
            assert app.lost() == [(1, "history_changed")]

    run(work())


def edit_call(message: dict[str, Any]) -> None:
    message["tool_calls"][0]["arguments"] = {"x": {}, "n": 2}


def php(message: dict[str, Any]) -> None:
    message["blocchi"][2]["input"]["x"] = []


def reorder(message: dict[str, Any]) -> None:
    message["blocchi"][2]["id"] = "toolu_99"


EDITS = [edit_call, php, reorder]


@requirement("P-BLK-3")
@pytest.mark.parametrize("content", ["Altro.", "", None])
def test_a_content_that_says_something_else_changes_nothing_while_the_pieces_are_there(content: str | None) -> None:
    """Also for the reasoning that came after it."""

    async def work() -> None:
        async with talking(whole(*FIRST), whole(*LAST), whole(says("ok"))) as app:
            await to_the_second_call(app)
            app.messages[1]["content"] = content
            assert (await app.call())["versione"] == "Pepper 7"
            app.user("e adesso?")
            app.messages[3]["content"] = content
            await app.call()
            found = [m["content"] for m in app.sent()["messages"] if m["role"] == "assistant"]
            assert found == [list(FIRST), list(LAST)]
            assert app.lost() == []

    run(work())


@requirement("P-BLK-5")
@pytest.mark.parametrize("edit", EDITS)
def test_pieces_that_do_not_say_what_their_message_says_are_rebuilt(edit: Any) -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), spare=whole(says("ok"))) as app:
            await to_the_second_call(app)
            edit(app.messages[1])
            assert (await app.call())["versione"] == "Pepper 6"
            assert app.lost() == [(1, "edited")]
            said = app.messages[1]
            call = said["tool_calls"][0]
            assert app.spare.requests[0].json()["messages"][1]["content"] == [
                says(said["content"]),
                {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]},
            ]

    run(work())


GARBAGE: list[Any] = [[{}], [5], [{"type": 5}], [{"type": "text"}], ["x"], [{"type": "tool_use", "id": "a b"}], [None]]


@requirement("P-BLK-5")
@pytest.mark.parametrize("blocks", GARBAGE)
def test_pieces_that_nobody_knows_are_rebuilt(blocks: Any) -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), spare=whole(says("ok"))) as app:
            await to_the_second_call(app)
            app.messages[1]["blocchi"] = blocks
            assert (await app.call())["versione"] == "Pepper 6"
            assert app.lost()[0][0] == 1

    run(work())


@requirement("P-BLK-5")
@pytest.mark.parametrize("kind", ["openai-chat", "openai-responses"])
def test_pieces_of_another_engine_are_rebuilt_when_the_project_changed_model(kind: str) -> None:
    replies = {
        "openai-chat": {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]},
        "openai-responses": {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}],
        },
    }
    from tests.fakes.provider import answer

    async def work() -> None:
        reply = answer(200, json.dumps(replies[kind]).encode())
        async with talking(reply, kind=kind, model={"reasoning": "off"}) as app:
            app.user("x")
            call = {"id": "toolu_01", "name": "get_home_status", "arguments": {"x": {}, "n": 1.5}}
            said = {"role": "assistant", "content": "Controllo.", "tool_calls": [call], "blocchi": list(FIRST)}
            app.messages += [said, {"role": "tool", "tool_call_id": "toolu_01", "content": "ok"}]
            assert (await app.call())["content"] == "ok"
            assert app.lost() == [(1, "other_engine")]
            assert b"signature" not in app.provider.requests[0].body

    run(work())


@requirement("P-BLK-5")
def test_a_provider_that_rejects_pieces_is_asked_again_without_them() -> None:
    async def work() -> None:
        async with talking(REJECTED, whole(says("ok"))) as app:
            app.user("x")
            app.messages.append({"role": "assistant", "content": "y", "blocchi": [thought("z", "forged"), says("y")]})
            app.user("z")
            assert (await app.call())["versione"] == "Pepper 7"
            assert [m["content"] for m in app.sent()["messages"] if m["role"] == "assistant"] == [[says("y")]]
            assert app.lost() == [(1, "rejected")]

    run(work())


@requirement("P-BLK-5")
def test_pieces_rejected_in_an_open_round_are_answered_by_the_reserve() -> None:
    async def work() -> None:
        async with talking(REJECTED, spare=whole(says("ok"))) as app:
            app.user("x")
            call = {"id": "toolu_01", "name": "get_home_status", "arguments": {"x": {}, "n": 1.5}}
            said = {"role": "assistant", "content": "Controllo.", "tool_calls": [call], "blocchi": list(FIRST)}
            app.messages += [said, {"role": "tool", "tool_call_id": "toolu_01", "content": "ok"}]
            assert (await app.call())["versione"] == "Pepper 6"
            record = app.place.records.settled[-1]
            assert (record.model, record.engine, app.lost()) == ("Pepper 6", "spare", [(1, "rejected")])
            assert len(app.provider.requests) == 1

    run(work())


@requirement("P-RES-1", "P-RES-3")
def test_an_open_round_without_pieces_is_answered_by_the_reserve() -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), whole(*LAST), spare=whole(says("ok"))) as app:
            app.keeps_blocks = False
            await to_the_second_call(app)
            reply = await app.call()
            assert (reply["versione"], reply["content"]) == ("Pepper 6", "ok")
            asked = app.spare.requests[0].json()
            assert asked["model"] == "brain-0"
            assert "thinking" not in asked
            assert asked["max_tokens"] == 4096
            assert asked["system"][0]["text"] == "Regole."
            assert (app.notes()["answered_for"], app.lost()) == ("Pepper 7", [(1, "missing")])
            app.user("grazie")  # the round is over: the model itself answers again
            assert (await app.call())["versione"] == "Pepper 7"
            assert app.place.rounds == [("casa", True)]

    run(work())


@requirement("P-RES-2")
def test_without_a_reserve_the_same_engine_goes_on_without_reasoning() -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), whole(says("ok")), upstream=UPSTREAM_CUT, model={"reasoning": "on"}) as app:
            app.keeps_blocks = False
            await to_the_second_call(app)
            assert (await app.call())["versione"] == "Pepper 7"
            assert app.sent(0)["thinking"] == {"type": "adaptive"}
            assert app.sent(1)["thinking"] == {"type": "disabled"}
            assert app.notes()["quiet"] == "Pepper 7"

    run(work())


@requirement("P-RES-2")
@pytest.mark.parametrize(
    ("upstream", "reasoning"), [("claude-opus-5-5", "on"), ("claude-fable-5-1", "on"), (UPSTREAM_CUT, "always")]
)
def test_without_a_reserve_an_engine_that_cannot_stop_thinking_says_what_to_do(upstream: str, reasoning: str) -> None:
    async def work() -> None:
        async with talking(whole(*FIRST), upstream=upstream, model={"reasoning": reasoning}) as app:
            app.keeps_blocks = False
            await to_the_second_call(app)
            refused = await app.send()
            assert refused.error() == (400, "richiesta_non_valida")
            assert "messages[1]" in refused.json()["error"]["message"]
            assert "blocchi" in refused.json()["error"]["message"]
            assert len(app.provider.requests) == 1

    run(work())


@requirement("P-RES-4")
def test_a_model_that_does_not_reason_needs_no_pieces_and_sends_them_all_the_same() -> None:
    async def work() -> None:
        async with talking(whole(*FIRST[1:]), whole(says("ok")), model={"reasoning": "off"}) as app:
            app.user("x")
            assert (await app.call())["blocchi"] == list(FIRST[1:])
            del app.messages[1]["blocchi"]
            app.results()
            assert (await app.call())["versione"] == "Pepper 7"
            assert app.lost() == []
            assert app.place.rounds == [("casa", False)]

    run(work())


@requirement("P-BLK-3")
def test_an_empty_text_that_the_provider_gave_does_not_go_back_to_it() -> None:
    async def work() -> None:
        async with talking(whole(thought(), says(""), asks()), whole(says("ok"))) as app:
            await to_the_second_call(app)
            assert app.messages[1]["blocchi"] == [thought(), says(""), asks()]
            await app.call()
            assert app.sent()["messages"][1]["content"] == [thought(), asks()]
            assert app.lost() == []

    run(work())


@requirement("P-BLK-5")
def test_a_second_try_carries_the_files_too() -> None:
    pdf = base64.b64encode(zoo.pdf()).decode()

    async def work() -> None:
        async with talking(REJECTED, whole(says("ok")), permissions=ALL_ALLOWED) as app:
            app.user([{"tipo": "documento", "dati": pdf}])
            app.messages.append({"role": "assistant", "content": "y", "blocchi": [thought("z", "forged"), says("y")]})
            app.user("z")
            await app.call()
            first, second = (received.json()["messages"] for received in app.provider.requests)
            assert first[0] == second[0] and first[0]["content"][0]["source"]["data"] == pdf
            assert app.lost() == [(1, "rejected")]

    run(work())


@requirement("P-ERR-502")
def test_a_rejection_that_has_nothing_to_do_with_pieces_stays_one() -> None:
    async def work() -> None:
        async with talking(REJECTED) as app:
            app.user("x")
            assert (await app.send()).error() == (502, "errore_ai")
            assert len(app.provider.requests) == 1
        async with talking(REJECTED) as app:
            app.user("x")
            app.messages.append({"role": "assistant", "content": "y", "blocchi": [thought("z", "forged"), says("y")]})
            app.user("z")
            assert (await app.send()).error() == (502, "errore_ai")
            assert len(app.provider.requests) == 2
            app.place.nothing_left()

    run(work())
