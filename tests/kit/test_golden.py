"""One stream, two folds: what the door makes of an answer is what the kit reads from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crocevia.core.answers import fold
from crocevia.core.catalogue import ModelSpec
from crocevia.doors.pepper import encode
from tests.kit.golden import load, model_events, wire_of
from tests.kit.node import run_js

ANSWERS = load("answers.json")
CHATS = load("chats.json")

# Every stream is read whole and in pieces of 1 to 7 bytes, through the decoder that the kit uses.
READ = """
function freeze(value) {
  if (value && typeof value === "object") Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}
function fold(row, size) {
  let chat = kit.emptyChat();
  if (row.known) chat = kit.reduce(chat, {type: "model", name: row.known});
  chat = freeze(kit.reduce(chat, {type: "open", turn: "t"}));
  const feed = kit.eventParser((name, text) => {
    let data = null;
    try { data = JSON.parse(text); } catch {}
    chat = freeze(kit.reduce(chat, {turn: "t", name, data}));
  });
  const bytes = Buffer.from(row.stream, "utf8");
  const decoder = new TextDecoder();
  for (let at = 0; at < bytes.length; at += size) feed(decoder.decode(bytes.subarray(at, at + size), {stream: true}));
  return chat.messages[0];
}
const sizes = [1e9, 1, 2, 3, 4, 5, 6, 7];
return given.map((row) => sizes.map((size) => show(fold(row, size))));
"""
AS_REPLY = """
function show(answer) {
  const tools = answer.parts.filter((part) => part.kind === "tool");
  const reply = {
    stop_reason: answer.stopReason, content: kit.answerText(answer) || null,
    usage: answer.usage, versione: answer.version,
    tool_calls: tools.map((tool) => ({id: tool.id, name: tool.name, arguments: tool.arguments})),
    blocchi: answer.blocks,
  };
  return answer.truncated ? Object.assign(reply, {troncato: true}) : reply;
}
"""
AS_CHAT = """
function show(answer) {
  return shown(kit.publicState(answer), kit.isComplete(answer));
}
function shown(answer, complete) {
  return {
    parts: answer.parti.map((part) => part.tipo === "testo" ? part.testo : [part.nome, part.stato]),
    actions: answer.azioni.map((action) => [action.id, action.testo, action.esito]),
    stop: answer.fine, complete,
    usage: answer.usage && {input_tokens: answer.usage.input_tokens, output_tokens: answer.usage.output_tokens},
    error: answer.errore && [answer.errore.codice, answer.errore.messaggio, answer.errore.attesa],
    novelty: answer.novita && [answer.novita.modello, answer.novita.riga],
  };
}
"""


@pytest.fixture(scope="module")
def read_answers() -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = run_js(AS_REPLY + READ, ANSWERS)
    return rows


@pytest.fixture(scope="module")
def read_chats() -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = run_js(AS_CHAT + READ, CHATS)
    return rows


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row["name"])
def test_the_door_writes_the_golden_stream_and_the_golden_answer(row: dict[str, Any]) -> None:
    events = model_events(row["events"])
    model = ModelSpec(name=row["model"]["name"], engine="any", novelty=row["model"]["novelty"])
    assert wire_of(events, model).decode() == row["stream"]
    assert json.loads(encode.whole(fold(events), model)) == row["answer"]


@pytest.mark.parametrize("index", range(len(ANSWERS)), ids=lambda index: ANSWERS[index]["name"])
def test_the_kit_reads_the_golden_answer_from_the_golden_stream(
    index: int, read_answers: list[list[dict[str, Any]]]
) -> None:
    expected = {name: value for name, value in ANSWERS[index]["answer"].items() if name != "novita"}
    for read in read_answers[index]:
        assert read == expected


@pytest.mark.parametrize("index", range(len(CHATS)), ids=lambda index: CHATS[index]["name"])
def test_the_kit_reads_what_the_pages_server_adds(index: int, read_chats: list[list[dict[str, Any]]]) -> None:
    for read in read_chats[index]:
        assert read == CHATS[index]["chat"]
