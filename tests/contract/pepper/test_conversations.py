"""Whole conversations: the tool loop, the cache and its figures, every engine alike, what Pepper never does."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crocevia.core.catalogue import Permissions
from crocevia.core.declared import Refused
from crocevia.core.messages import AssistantMessage, ToolMessage, UserMessage
from crocevia.runtime.catalogue import load
from crocevia.runtime.control import apply as control
from crocevia.runtime.control.declarations import parse
from crocevia.runtime.control.init import init
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home
from tests.aio import run
from tests.contract.pepper.claude import TOOLS, App, asks, message, says, streamed, talking, thought, whole
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import ask
from tests.doors.pepper.house import HELLO, house, site_of
from tests.engines.dialects import transcript
from tests.fakes.provider import answer, play


def without_marks(value: Any) -> Any:
    """A provider's request without the marks that tell where its cache should end."""
    if isinstance(value, dict):
        return {name: without_marks(inner) for name, inner in value.items() if name != "cache_control"}
    return [without_marks(inner) for inner in value] if isinstance(value, list) else value


def marked(request: Any) -> list[str]:
    """Where a request carries cache marks: a path each."""

    def walk(value: Any, path: str) -> list[str]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        found = [path] if isinstance(value, dict) and "cache_control" in value else []
        return found + [each for name, one in inner for each in walk(one, f"{path}/{name}")]

    return walk(request, "")


async def five_rounds(app: App) -> list[dict[str, Any]]:
    """A question that takes five calls of the model; their answers."""
    app.user("prepara casa per stanotte")
    replies = [await app.call()]
    for _ in range(4):
        app.results()
        replies.append(await app.call())
    return replies


def rounds() -> list[tuple[dict[str, Any], ...]]:
    asking = [(thought("", f"sig{n}"), says(f"giro {n} "), asks(f"toolu_{n}", n=n, a={})) for n in range(4)]
    return [*asking, (thought("", "sig4"), says("Fatto."))]


@requirement("P-USE-3", "P-USE-4", "P-LOOP-1")
@pytest.mark.parametrize("stream", [True, False])
def test_each_request_of_a_loop_begins_with_the_one_before_byte_for_byte(stream: bool) -> None:
    async def work() -> None:
        plays = [(streamed if stream else whole)(*blocks) for blocks in rounds()]
        async with talking(*plays, stream=stream) as app:
            await five_rounds(app)
            assert len(app.provider.requests) == 5
            bodies = [json.dumps(without_marks(received.json())).encode() for received in app.provider.requests]
            for before, after in pairwise(bodies):
                assert after.startswith(before.removesuffix(b"]}"))
            for index, received in enumerate(app.provider.requests):
                places = marked(received.json())
                assert {"/tools/0", "/system/0"} <= set(places)
                messages = received.json()["messages"]
                last = f"/messages/{len(messages) - 1}/content/{len(messages[-1]['content']) - 1}"
                assert last in places
                assert len(places) <= 4  # as many as the provider takes
                assert not [p for p in places if p.startswith("/messages") and int(p.split("/")[2]) % 2], index

    run(work())


@requirement("P-USE-1", "P-USE-2", "P-USE-6")
def test_usage_is_the_same_streamed_or_not_and_never_counted_twice() -> None:
    expected = {
        "input_tokens": 3 + 12304,
        "output_tokens": 550,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 12304,
    }

    async def work() -> None:
        plays = (
            play(transcript("anthropic", "cached_usage")),
            answer(200, transcript("anthropic", "cached_usage", "json")),
        )
        async with talking(*plays) as app:
            for stream in (True, False):
                app.stream, app.messages = stream, []
                app.user("ok?")
                assert (await app.call())["usage"] == expected
            first, second = app.place.records.settled
            assert first.usage == second.usage

    run(work())


@requirement("P-USE-5")
def test_rounds_add_up_as_the_specification_says() -> None:
    """The input of the last round holds the earlier ones; what the cache gave is a part of it."""

    async def work() -> None:
        plays = []
        for at, blocks in enumerate(rounds()):
            known = 1000 + 300 * at
            usage = {"input_tokens": 300, "cache_read_input_tokens": known, "output_tokens": 7 + at}
            plays.append(answer(200, message(*blocks, usage=usage)))
        async with talking(*plays) as app:
            usages = [reply["usage"] for reply in await five_rounds(app)]
            inputs = [usage["input_tokens"] for usage in usages]
            assert inputs == sorted(inputs) and inputs[-1] == 1300 + 300 * 4
            assert all(usage["cache_read_input_tokens"] < usage["input_tokens"] for usage in usages)
            assert sum(usage["output_tokens"] for usage in usages) == 7 + 8 + 9 + 10 + 11

    run(work())


@requirement("P-LOOP-2", "P-BRAIN-1")
def test_pepper_runs_no_tool_and_sets_no_limit_to_rounds() -> None:
    async def work() -> None:
        async with talking(*[whole(asks(f"toolu_{n}")) for n in range(20)]) as app:
            app.user("avanti")
            for done in range(1, 21):
                assert (await app.call())["stop_reason"] == "tool_use"
                assert len(app.provider.requests) == done
                app.results()

    run(work())


ONE_ANSWER = {
    "anthropic": message(says("ok "), asks("c1", x={})),
    "openai-chat": json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "content": "ok ",
                        "tool_calls": [{"id": "c1", "function": {"name": "get_home_status", "arguments": '{"x": {}}'}}],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        }
    ).encode(),
    "openai-responses": json.dumps(
        {
            "status": "completed",
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "ok "}]},
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "get_home_status",
                    "arguments": '{"x": {}}',
                    "status": "completed",
                },
            ],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    ).encode(),
}


@requirement("P-MOD-1")
@pytest.mark.parametrize("kind", sorted(ONE_ANSWER))
def test_the_contract_is_the_same_with_every_engine(kind: str) -> None:
    async def work() -> None:
        model = {"reasoning": "off"}
        async with talking(*[answer(200, ONE_ANSWER[kind])] * 2, kind=kind, model=model, upstream="brain") as app:
            app.user("x")
            reply = await app.call()
            assert reply["content"] == "ok "
            assert reply["tool_calls"] == [{"id": "c1", "name": "get_home_status", "arguments": {"x": {}}}]
            assert (reply["stop_reason"], reply["versione"]) == ("tool_use", "Pepper 7")
            assert (reply["usage"]["input_tokens"], reply["usage"]["output_tokens"]) == (10, 5)
            assert reply["blocchi"]
            app.results()
            await app.call()
            assert app.sent()["model"] == "brain"
            assert app.lost() == []

    run(work())


@requirement("P-MOD-2")
def test_the_model_decides_about_reasoning_not_the_app() -> None:
    async def work() -> None:
        for reasoning, thinks in (("off", False), ("on", True)):
            model = {"reasoning": reasoning}
            async with talking(whole(says("ok")), model=model, upstream="claude-opus-4-6") as app:
                body = HELLO | {"reasoning": "on", "thinking": {"type": "enabled"}, "ragionamento": True}
                assert (await ask(app.place.agent, body)).status == 200
                assert ("thinking" in app.sent()) == thinks

    run(work())


DECLARED = """
[[engines]]
name = "fake"
kind = "scripted"
[[models]]
name = "Pepper 7"
engine = "fake"
voice_in_apps = {voice}
[[models]]
name = "Pepper 8"
engine = "fake"
voice_in_apps = {voice}
[[projects]]
name = "casa"
mode = "agent"
model = "Pepper 7"
"""


@requirement("P-MOD-3")
def test_a_voice_is_fixed_while_a_project_uses_the_model(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    init(home, "http://127.0.0.1:8111")
    control.apply(home, parse(DECLARED.replace("{voice}", "false").encode()))
    with pytest.raises(Refused) as refused:
        control.apply(home, parse(DECLARED.replace("{voice}", "true").encode()))
    assert [problem.place for problem in refused.value.problems] == ['models "Pepper 7".voice_in_apps']
    with snapshot(home.database) as tx:
        models = load(tx, home).models
    assert [models[name].voice_in_apps for name in ("Pepper 7", "Pepper 8")] == [False, False]  # all or nothing


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "buonasera"},
    {"role": "assistant", "content": "Buonasera."},
    *[
        entry
        for n in range(60)
        for entry in (
            {"role": "user", "content": f"accendi {n}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{n}", "name": "luce", "arguments": {}}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "fatto"},
            {"role": "assistant", "content": f"Acceso {n}."},
        )
    ],
    {"role": "user", "content": "grazie"},
]


@requirement("P-CTX-1")
def test_a_long_history_arrives_whole_in_order_and_with_its_roles() -> None:
    place = house()
    run(ask(place.agent, {"messages": HISTORY}))
    kinds = {"user": UserMessage, "assistant": AssistantMessage, "tool": ToolMessage}
    found = place.engine.requests[0].messages
    assert [type(one) for one in found] == [kinds[one["role"]] for one in HISTORY]
    texts = [getattr(one, "content", None) or getattr(one, "text", None) for one in found]
    assert texts == [one["content"] for one in HISTORY]


@requirement("P-SIZE-1")
def test_a_tool_result_has_no_limit_of_its_own() -> None:
    place = house()
    call = {"id": "c1", "name": "log", "arguments": {}}
    large = "riga\n" * 1_000_000
    history = [*HELLO["messages"], {"role": "assistant", "tool_calls": [call]}]
    exchange = run(ask(place.agent, {"messages": [*history, {"role": "tool", "tool_call_id": "c1", "content": large}]}))
    assert exchange.status == 200
    assert place.engine.requests[0].messages[-1].content == large


@requirement("P-REQ-7")
def test_tools_may_differ_from_request_to_request() -> None:
    place = house()
    for names in (["a", "b"], [], ["b", "c"]):
        body = HELLO | {"tools": [{"name": name, "description": "d", "parameters": {}} for name in names]}
        run(ask(place.agent, body))
        assert [tool.name for tool in place.engine.requests[-1].tools] == names


@requirement("P-NOT-1")
def test_nothing_of_one_call_is_known_to_the_next() -> None:
    place = house()
    for text in ("uno", "due"):
        run(ask(place.agent, {"session_id": "s", "messages": [{"role": "user", "content": text}]}))
    assert [one.text for one in place.engine.requests[1].messages] == ["due"]


@requirement("P-NOT-2")
def test_there_is_no_web_search_in_agent_mode_whatever_the_project_may_do() -> None:
    place = house(permissions=Permissions(documents=True, images=True, web_search=True))
    run(ask(place.agent, HELLO | {"tools": TOOLS, "web_search": True}))
    assert [tool.name for tool in place.engine.requests[0].tools] == ["get_home_status"]


@requirement("P-RULE-1", "P-RULE-2")
@pytest.mark.parametrize("split", [True, False])
def test_text_and_calls_go_back_in_one_message_with_the_exact_text(split: bool) -> None:
    async def work() -> None:
        blocks = (says(" sto controllando\n"), says("lo stato… "), asks())
        async with talking(streamed(*blocks), whole(says("ok")), stream=True, model={"reasoning": "off"}) as app:
            app.keeps_blocks = not split
            app.user("stato?")
            reply = await app.call()
            assert reply["content"] == " sto controllando\nlo stato… "
            app.results()
            app.stream = False
            await app.call()
            content = app.sent()["messages"][1]["content"]
            assert content == ([says(reply["content"]), asks()] if split else list(blocks))

    run(work())


@requirement("P-EX-1")
def test_the_example_of_the_specification_works_as_it_stands() -> None:
    body = {
        "stream": True,
        "max_tokens": 1024,
        "system": "Sei Pepper, l assistente di casa. Proponi le azioni, non darle per fatte.",
        "messages": [{"role": "user", "content": "che aria fa in salone?"}],
        "tools": [
            {
                "name": "get_home_status",
                "description": "Stato sintetico di casa.",
                "parameters": {"type": "object", "properties": {}, "required": []},
            }
        ],
    }
    exchange = run(ask(house().agent, body, headers={"accept": "text/event-stream"}))
    assert exchange.status == 200
    assert exchange.events()[-1][0] == "done"


@requirement("P-KIT-1")
def test_the_kit_tells_the_models_name_and_nothing_else_without_a_key() -> None:
    kit = site_of(house().gateway, dossiero="Pepper 7")

    async def get(query: bytes, **headers: str) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await kit(scope | {"query_string": query}, receive, send)

        return await ask(app, path="/kit.php", method="GET", raw=b"", key=None, project=None, headers=headers)

    async def work() -> None:
        assert (await get(b"progetto=dossiero")).json() == {"modello": "Pepper 7"}
        assert list((await get(b"")).json()) == ["versione"]
        file = await get(b"f=js")
        assert file.status == 200 and file.headers["cache-control"] == "public, no-cache"
        again = await get(b"f=js", **{"if-none-match": file.headers["etag"]})
        assert (again.status, again.body) == (304, b"")

    run(work())


# properties

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
numbers = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False, width=32))
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
extra = st.dictionaries(texts.map(lambda name: f"later_{name}"), values, max_size=2)
pieces = st.one_of(
    extra.map(lambda more: {"type": "thinking", "thinking": "", "signature": "s="} | more),
    extra.map(lambda more: {"type": "redacted_thinking", "data": "x"} | more),
    extra.map(lambda more: {"type": "unheard_of"} | more),
    st.builds(lambda text, more: says(text + "x") | more, texts, extra),
    st.builds(
        lambda arguments, more: asks("toolu_1", **{f"a{n}": value for n, value in arguments.items()}) | more,
        st.dictionaries(st.integers(0, 9), values, max_size=3),
        extra,
    ),
)


@requirement("P-BLK-3")
@settings(max_examples=60, deadline=None)
@given(found=st.lists(pieces, min_size=1, max_size=5), indent=st.sampled_from([None, 1]))
def test_whatever_pieces_come_back_go_to_the_provider_unchanged(
    found: list[dict[str, Any]], indent: int | None
) -> None:
    """The app may even leave out `content` and `tool_calls`: the pieces say it all."""
    calls = {n: piece for n, piece in enumerate(found) if piece["type"] == "tool_use"}
    found = [piece | {"id": f"toolu_{n}"} if n in calls else piece for n, piece in enumerate(found)]
    spelled = [json.dumps(piece, ensure_ascii=indent is None, indent=indent).encode() for piece in found]
    raw = (
        b'{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"blocchi":['
        + b",".join(spelled)
        + b"]},"
        + b"".join(b'{"role":"tool","tool_call_id":"toolu_%d","content":"ok"},' % n for n in calls)
        + b'{"role":"user","content":"y"}]}'
    )

    async def work() -> None:
        async with talking(whole(says("ok"))) as app:
            exchange = await ask(app.place.agent, raw=raw)
            assert exchange.status == 200, exchange.body
            assert b'"content":[' + b",".join(spelled) + b"]" in app.provider.requests[0].body
            assert app.lost() == []

    run(work())


@requirement("P-BLK-1")
@settings(max_examples=40, deadline=None)
@given(
    case=st.sampled_from(["parallel_tools", "thinking", "silent_thinking", "citations", "limit_in_tool"]),
    size=st.integers(1, 400),
)
def test_any_split_of_the_providers_bytes_gives_the_same_pieces(case: str, size: int) -> None:
    async def work() -> None:
        once = play(transcript("anthropic", case))
        async with talking(once, once.split(size), stream=True) as app:
            replies = []
            for _ in range(2):
                app.messages = []
                app.user("x")
                replies.append(await app.call())
            assert msgspec.json.encode(replies[0]) == msgspec.json.encode(replies[1])
            assert replies[0]["blocchi"]

    run(work())
