"""Every field that a client can know is mapped, refused by name or told to be ignored: none is dropped in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import ResponseIncludable
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from crocevia.doors.responses import fields, wire
from crocevia.doors.responses.chat import wire as chat_wire
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import House

from .schema import contract
from .upstream import sent, upstream

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
RELEASE = frozenset(contract()["components"]["schemas"]["CreateResponseBody"]["properties"])
OWN = {
    RESPONSES: RELEASE | frozenset(ResponseCreateParamsBase.__annotations__) | {"stream"},
    CHAT: frozenset(CompletionCreateParamsBase.__annotations__) | {"stream"},
}
TABLES = {
    RESPONSES: (wire.Request, fields.RESPONSES, fields.IGNORED_RESPONSES),
    CHAT: (chat_wire.Request, fields.CHAT, fields.IGNORED_CHAT),
}
GUIDE = (Path(__file__).parents[3] / "docs/responses.md").read_text(encoding="utf-8")
# What a refused field may hold that is certainly wanted; else a text.
WANTED: dict[str, Any] = {
    "top_logprobs": 3,
    "logprobs": True,
    "n": 2,
    "background": True,
    "functions": [{"name": "f"}],
    "modalities": ["text", "audio"],
    "logit_bias": {"5": 1},
    "include": ["x"],
    "text": {"format": {"type": "json_object"}},
}


@requirement("R-REQ-16")
@pytest.mark.parametrize("path", TABLES)
def test_every_field_of_the_release_and_of_the_clients_types_has_one_fate(path: str) -> None:
    struct, refused, ignored = TABLES[path]
    taken = set(struct.__struct_fields__) - set(refused)
    assert OWN[path] - taken - set(refused) - ignored == set()
    assert taken & ignored == set() and set(refused) & ignored == set()
    assert set(refused) <= set(struct.__struct_fields__)  # else it would not even be seen
    # What the other surface calls its own is not dropped here either.
    other = OWN[CHAT if path == RESPONSES else RESPONSES]
    assert other - taken - set(refused) - ignored - fields.IGNORED_CHAT == set()


@requirement("R-REQ-16")
def test_the_guide_tells_what_is_ignored() -> None:
    assert [name for name in fields.IGNORED_CHAT if f"`{name}`" not in GUIDE] == []


async def asked(home: House, path: str, **given: Any) -> Any:
    said: dict[str, Any] = {"input": "hi"} if path == RESPONSES else {"messages": [{"role": "user", "content": "hi"}]}
    return await home.ask(path, {"model": "openclaw", **said, **given})


@requirement("R-REQ-16")
@pytest.mark.parametrize("path", TABLES)
def test_a_field_that_cannot_be_kept_to_is_refused_by_its_name_and_nothing_for_it_is_nothing(
    path: str, tmp_path: Path
) -> None:
    _, refused, ignored = TABLES[path]

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for name, how in refused.items():
                answer = await asked(home, path, **{name: WANTED.get(name, "x")})
                assert (answer.status, answer.error["param"]) == (400, name), (name, answer.body)
                assert answer.error["code"] == "unsupported_parameter", name
                assert not how.instead or how.instead in answer.error["message"]
            assert provider.requests == []
            nothing = {name: how.nothing[0] for name, how in refused.items() if how.nothing}
            for given in (nothing, dict.fromkeys(refused), {key: {} for key in ignored}):
                assert (await asked(home, path, **given)).status == 200, given

    run(scene())


WRONG: list[tuple[str, dict[str, Any], str]] = [
    *((path, {name: "x" * 65}, name) for path in TABLES for name in ("safety_identifier", "prompt_cache_key")),
    *((path, {"service_tier": "express"}, "service_tier") for path in TABLES),
    (RESPONSES, {"text": {"verbosity": "loud"}}, "text.verbosity"),
    (CHAT, {"verbosity": "loud"}, "verbosity"),
    (RESPONSES, {"include": ["reasoning.encrypted_content", "foo"]}, "include[1]"),
    (RESPONSES, {"include": ["message.output_text.logprobs"]}, "include[0]"),
]


@requirement("R-REQ-16")
def test_hints_and_words_must_be_what_they_claim_to_be(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for path, given, param in WRONG:
                answer = await asked(home, path, **given)
                assert (answer.status, answer.error["param"]) == (400, param), (given, answer.body)
            assert provider.requests == []
            known = [name for name in get_args(ResponseIncludable) if not name.endswith("logprobs")]
            assert (await asked(home, RESPONSES, include=known)).status == 200
            for path in TABLES:
                for tier in fields.TIERS:
                    assert (await asked(home, path, service_tier=tier, safety_identifier="x" * 64)).status == 200

    run(scene())


@requirement("R-REQ-17")
@pytest.mark.parametrize("path", TABLES)
def test_verbosity_and_the_channel_of_a_message_are_told_to_the_model(path: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for word, told in fields.VERBOSITIES.items():
                given = {"text": {"verbosity": word}} if path == RESPONSES else {"verbosity": word}
                assert (await asked(home, path, **given)).status == 200
                assert (told or "hi") in str(sent(provider)["messages"])
            body = {"model": "openclaw", "input": "hi", "messages": [{"role": "user", "content": "hi"}]}
            body.pop("messages" if path == RESPONSES else "input")
            await home.ask(path, body, headers={"x-openclaw-message-channel": "telegram"})
            assert "Channel: telegram" in sent(provider)["messages"][0]["content"]

    run(scene())
