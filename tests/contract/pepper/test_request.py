"""What may be asked, and how it arrives at the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crocevia.core.messages import AssistantMessage, ToolMessage, UserMessage
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import Exchange, ask
from tests.doors.pepper.house import ALL_ALLOWED, HELLO, House, house

CALL = {"id": "c1", "name": "get_home_status", "arguments": {}}
OPEN_ROUND = [{"role": "user", "content": "stato?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]


def tool_result(call_id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def answered(body: dict[str, Any], at: House | None = None, **how: Any) -> tuple[Exchange, House]:
    """The exchange; the house is checked to be empty afterwards."""
    place = at or house()

    async def work() -> Exchange:
        return await ask(place.agent, body, **how)

    exchange = run(work())
    place.nothing_left()
    return exchange, place


def refused(body: dict[str, Any], **project: Any) -> str:
    """The sentence of a 400; the engine must not have been called."""
    exchange, place = answered(body, house(**project))
    assert exchange.error() == (400, "richiesta_non_valida")
    assert place.engine.requests == []
    return str(exchange.json()["error"]["message"])


@requirement("P-END-2")
def test_the_body_names_the_project_when_no_header_does() -> None:
    assert answered(HELLO | {"project": "casa"}, project=None)[0].status == 200


@requirement("P-END-2")
def test_the_header_beats_the_body() -> None:
    assert answered(HELLO | {"project": "vecchia"}, project="casa")[0].status == 200
    assert answered(HELLO | {"project": "casa"}, project="vecchia")[0].error() == (401, "non_autorizzato")


@requirement("P-REQ-1")
def test_messages_are_required_and_not_empty() -> None:
    for body in ({}, {"messages": []}, {"messages": None}, {"messages": {}}):
        assert "messages" in refused(body)


@requirement("P-REQ-3")
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, 4096),
        (0, 256),
        (-5, 256),
        (255, 256),
        (256, 256),
        (1024, 1024),
        (32000, 32000),
        (10**30, 32000),
        (100.0, 256),
        (1e30, 32000),
    ],
)
def test_max_tokens_has_a_default_and_is_clamped(asked: float | None, given: int) -> None:
    _, place = answered(HELLO | {"max_tokens": asked})
    assert place.engine.requests[0].options.max_tokens == given


@requirement("P-RSN-1")
@pytest.mark.parametrize(("reasoning", "given"), [("off", 1024), ("on", 16000), ("always", 16000)])
def test_a_model_that_reasons_gets_room(reasoning: str, given: int) -> None:
    _, place = answered(HELLO | {"max_tokens": 1024}, house(model={"reasoning": reasoning}))
    assert place.engine.requests[0].options.max_tokens == given


@requirement("P-REQ-3")
@pytest.mark.parametrize("asked", [100.5, 0.1, -1e-9, "100", True, []])
def test_max_tokens_is_a_whole_number_however_it_is_spelled(asked: Any) -> None:
    assert "'max_tokens' deve essere un numero" in refused(HELLO | {"max_tokens": asked})


NAMES = {
    "blank": "accendi luce",
    "accent": "città",
    "long": "a" * 65,
    "dot": "casa.luce",
    "emoji": "luce💡",
    "line": "a\n",
}


@requirement("P-TOOL-4")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_tool_may_have_any_name_of_up_to_256_characters(name: str) -> None:
    called = {"role": "assistant", "tool_calls": [CALL | {"name": name}]}
    history = [{"role": "user", "content": "x"}, called, tool_result()]
    assert answered({"messages": history, "tools": [{"name": "ok"}, {"name": name}]})[0].status == 200
    long = "n" * 257
    assert refused(HELLO | {"tools": [{"name": "ok"}, {"name": long}]}).startswith("tools[1].name: ")
    history[1] = {"role": "assistant", "tool_calls": [CALL | {"name": long}]}
    assert refused({"messages": history}).startswith("messages[1].tool_calls[0].name: ")


@requirement("P-TOOL-4")
@pytest.mark.parametrize("name", ["a", "A-b_9", "a" * 64])
def test_a_tool_whose_name_every_provider_takes_reaches_the_model(name: str) -> None:
    _, place = answered(HELLO | {"tools": [{"name": name}]})
    assert [tool.name for tool in place.engine.requests[0].tools] == [name]


@requirement("P-REQ-4")
def test_the_session_goes_to_the_record() -> None:
    _, place = answered(HELLO | {"session_id": "andrea-dashboard-8f3a"})
    assert place.records.opened[0].session_id == "andrea-dashboard-8f3a"


@requirement("P-REQ-5", "P-REQ-6")
@pytest.mark.parametrize(
    ("voice", "own", "system", "effective"),
    [
        (False, "Sei Pepper.", None, "Sei Pepper."),
        (False, "Sei Pepper.", "Regole.", "Regole."),
        (True, "Sei Pepper.", None, "Sei Pepper."),
        (True, "Sei Pepper.", "Regole.", "Sei Pepper.\n\nRegole."),
        (True, None, "Regole.", "Regole."),
        (False, None, None, None),
        (False, "Sei Pepper.", "", "Sei Pepper."),
    ],
)
def test_system_replaces_or_follows_the_instructions(
    voice: bool, own: str | None, system: str | None, effective: str | None
) -> None:
    _, place = answered(HELLO | {"system": system}, house(model={"instructions": own, "voice_in_apps": voice}))
    assert place.engine.requests[0].system == effective


@requirement("P-MSG-1", "P-MSG-5")
def test_a_conversation_arrives_in_order_and_unchanged() -> None:
    arguments = {"z": 1.50, "a": {}, "perché": "🙂"}
    history = [
        {"role": "user", "content": "uno"},
        {"role": "assistant", "content": "controllo", "tool_calls": [CALL | {"arguments": arguments}], "blocchi": [{}]},
        tool_result(content='{"x":1}'),
        {"role": "assistant", "content": "fatto", "tool_calls": None, "blocchi": None},
        {"role": "user", "content": " due "},
    ]
    _, place = answered({"messages": history})
    first, second, third, fourth, fifth = place.engine.requests[0].messages
    assert isinstance(first, UserMessage) and first.text == "uno"
    assert isinstance(second, AssistantMessage) and second.text == "controllo"
    assert second.tool_calls[0].name == "get_home_status"
    assert bytes(second.tool_calls[0].arguments) == b'{"z": 1.5, "a": {}, "perch\\u00e9": "\\ud83d\\ude42"}'
    assert third == ToolMessage(call_id="c1", content='{"x":1}')
    assert fourth == AssistantMessage(text="fatto")
    assert isinstance(fifth, UserMessage) and fifth.text == " due "


@requirement("P-MSG-1")
def test_an_assistant_that_said_nothing_is_left_out() -> None:
    for silent in ({"role": "assistant"}, {"role": "assistant", "content": ""}):
        _, place = answered({"messages": [*HELLO["messages"], silent, {"role": "user", "content": "allora?"}]})
        assert len(place.engine.requests[0].messages) == 2


@requirement("P-MSG-1")
@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": "x"},
        {"role": "", "content": "x"},
        {"role": None, "content": "x"},
        {"content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": ""},
        {"role": "user", "content": " \n"},
        {"role": "user", "content": []},
        {"role": "user", "content": 5},
        {"role": "user", "content": [{"tipo": "suono"}]},
        {"role": "user", "content": [{"tipo": "testo"}]},
        {"role": "assistant", "content": 5},
        {"role": "assistant", "content": "x", "blocchi": {}},
        {"role": "assistant", "content": "x", "tool_calls": {}},
        "testo",
        [],
    ],
)
def test_messages_of_another_shape_are_refused_with_their_place(message: Any) -> None:
    assert "messages[1]" in refused({"messages": [*HELLO["messages"], message]})


@requirement("P-MSG-2")
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {"arguments": '{"a":'}),
        ([], {"arguments": "[]"}),
        (None, {}),
        (5, {"arguments": "5"}),
        (True, {"arguments": "true"}),
    ],
)
def test_arguments_of_an_old_call_that_are_no_object_are_made_one_and_noted(arguments: Any, sent: Any) -> None:
    asked = {"role": "assistant", "tool_calls": [CALL | {"arguments": arguments}]}
    exchange, place = answered({"messages": [*HELLO["messages"], asked, tool_result()]})
    assert exchange.status == 200
    (call,) = place.engine.requests[0].messages[1].tool_calls
    assert json.loads(bytes(call.arguments)) == sent
    (record,) = place.records.settled
    assert record.notes == {"repaired": ["messages[1].tool_calls[0].arguments"]}


@requirement("P-MSG-3")
@pytest.mark.parametrize("content", [{}, [], None, 5])
def test_the_content_of_a_result_must_be_a_string(content: Any) -> None:
    assert "messages[2].content" in refused({"messages": [*OPEN_ROUND, tool_result(content=content)]})


TWO_CALLS = {"role": "assistant", "content": "", "tool_calls": [CALL, CALL | {"id": "c2"}]}
USER = {"role": "user", "content": "allora?"}


@requirement("P-MSG-4")
@pytest.mark.parametrize(
    ("rest", "index", "ids"),
    [
        ([TWO_CALLS], 1, "c1, c2"),
        ([TWO_CALLS, tool_result("c1")], 1, "c2"),
        ([TWO_CALLS, tool_result("c1"), USER], 1, "c2"),
        ([TWO_CALLS, USER, tool_result("c1"), tool_result("c2")], 1, "c1, c2"),
        ([TWO_CALLS, tool_result("c1"), {"role": "assistant", "content": "x"}], 1, "c2"),
        ([TWO_CALLS, tool_result("c1"), tool_result("c1"), tool_result("c2")], 3, "c1"),
        ([TWO_CALLS, tool_result("c1"), tool_result("c2"), tool_result("c2")], 4, "c2"),
        ([TWO_CALLS, tool_result("c3")], 2, "c3"),
        ([tool_result("c1")], 1, "c1"),
        ([{"role": "assistant", "content": "x"}, tool_result("c1")], 2, "c1"),
        ([TWO_CALLS, tool_result("c2"), tool_result("c1"), USER, tool_result("c1")], 5, "c1"),
        ([{"role": "assistant", "tool_calls": [CALL, CALL]}, tool_result("c1")], 1, "c1"),
        ([{"role": "assistant", "tool_calls": [CALL | {"id": ""}]}, tool_result("")], 1, "id"),
    ],
)
def test_a_call_without_exactly_one_result_is_refused_by_name(rest: list[Any], index: int, ids: str) -> None:
    said = refused({"messages": [*HELLO["messages"], *rest]})
    assert f"messages[{index}]" in said
    assert ids in said


@requirement("P-MSG-4")
def test_results_may_come_in_any_order_and_ids_may_return_in_a_later_round() -> None:
    round_ = [TWO_CALLS, tool_result("c2"), tool_result("c1")]
    assert answered({"messages": [*HELLO["messages"], *round_, USER, *round_]})[0].status == 200


@requirement("P-MSG-6")
def test_text_blocks_are_joined_and_attachments_need_their_permission() -> None:
    text = {"tipo": "testo", "testo": "Chi c'era?"}
    photo = {"tipo": "documento", "nome": "foto.jpg", "tipo_file": "image/jpeg", "dati": "aa"}
    document = {"tipo": "documento", "nome": "verbale.pdf", "dati": "aa"}
    exchange, place = answered({"messages": [{"role": "user", "content": [text, text]}]})
    assert exchange.status == 200
    assert place.engine.requests[0].messages[0].text == "Chi c'era?Chi c'era?"
    for block, word in ((photo, "immagini_non_abilitate"), (document, "documenti_non_abilitati")):
        asked, _ = answered({"messages": [{"role": "user", "content": [block, text]}]})
        assert asked.error() == (403, word)
    allowed, _ = answered({"messages": [{"role": "user", "content": [text, document]}]}, house(permissions=ALL_ALLOWED))
    assert allowed.error() == (400, "richiesta_non_valida")  # permitted, and no file


@requirement("P-TOOL-1")
@pytest.mark.parametrize(
    ("parameters", "arrives"),
    [
        (b'{"type": "object", "properties": {}, "x": 1.0}', b'{"type": "object", "properties": {}, "x": 1.0}'),
        (b'{ "type":"object" }', b'{ "type":"object" }'),
        (b"{}", b'{"type":"object"}'),
        (b'{"type":["object","null"]}', b'{"type":"object"}'),
        (b'{"properties":{}}', b'{"properties":{},"type":"object"}'),
        (b'{"type":"object","properties":[]}', b'{"type":"object","properties":{}}'),
        (None, b'{"type":"object","properties":{}}'),
    ],
)
def test_an_object_schema_arrives_as_it_was_spelled(parameters: bytes | None, arrives: bytes) -> None:
    place = house()
    given = b"" if parameters is None else b',"parameters":' + parameters
    raw = b'{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t"' + given + b"}]}"
    exchange, _ = answered({}, place, raw=raw)
    assert exchange.status == 200
    assert bytes(place.engine.requests[0].tools[0].parameters) == arrives


@requirement("P-TOOL-1")
@pytest.mark.parametrize(
    "parameters",
    [[], None, "object", 5, {"type": "string"}, {"type": ["string", "null"]}, {"properties": [1]}, {"properties": "x"}],
)
def test_parameters_that_are_no_object_schema_are_refused(parameters: Any) -> None:
    tools = [{"name": "a", "parameters": {}}, {"name": "b", "parameters": parameters}]
    assert "tools[1].parameters" in refused(HELLO | {"tools": tools})


@requirement("P-TOOL-2")
def test_a_tool_named_twice_is_refused() -> None:
    tools = [{"name": "a", "parameters": {}}, {"name": "a", "parameters": {}}]
    assert "tools[1]" in refused(HELLO | {"tools": tools})
    assert "tools[0]" in refused(HELLO | {"tools": [{"name": ""}]})


@requirement("P-TOOL-3")
@pytest.mark.parametrize("choice", ["any", "none", {"type": "tool", "name": "a"}, 5])
def test_tool_choice_and_other_unknown_fields_are_ignored(choice: Any) -> None:
    assert answered(HELLO | {"tool_choice": choice, "temperature": "hot"})[0].status == 200
