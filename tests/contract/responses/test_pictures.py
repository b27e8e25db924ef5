"""Pictures of a conversation, and streams that are told again."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crocevia.storage import responses as rows
from tests.aio import run
from tests.contract.requirements import requirement
from tests.documents import zoo
from tests.fakes.provider import play

from .upstream import chunk, sent, spoken, upstream

PIXEL = f"data:image/png;base64,{base64.b64encode(zoo.photo('PNG', (8, 8))).decode()}"


def message(text: str, picture: str) -> list[dict[str, Any]]:
    content = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": picture}]
    return [{"role": "user", "content": content}]


def pictures(body: dict[str, Any]) -> int:
    return json.dumps(body["messages"]).count("data:image/png")


@requirement("R-SESS-8")
@pytest.mark.parametrize("user", ["ann", None])
def test_a_conversation_may_hold_more_pictures_than_one_request(user: str | None, tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            more: dict[str, Any] = {"user": user} if user else {"model": "Pepper mini"}
            for turn in range(34):
                made = await home.respond(message(f"t{turn}", PIXEL), **more)
                if not user:
                    more["previous_response_id"] = made["id"]
                assert pictures(sent(provider)) == min(turn + 1, 34 if user else 33)
            assert ("not shown here" in json.dumps(sent(provider))) == (user is None)

    run(scene(), timeout=90)


@requirement("R-SESS-8")
def test_a_picture_that_is_only_an_address_in_an_earlier_turn_becomes_a_note(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            made = await home.respond("a", model="Pepper mini")
            old = json.dumps(message("look", "https://gone.invalid/x.png"))
            call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"x', "status": "incomplete"}
            strange = {"type": "from_the_future", "id": "x"}

            def change(tx: Any) -> None:
                stored = rows.find(tx, made["id"])
                assert stored is not None
                resource = json.loads(stored.resource)
                resource["output"] += [call, strange]
                changed = {"input": old.encode(), "resource": json.dumps(resource).encode()}
                rows.put_all(tx, [msgspec.structs.replace(stored, **changed)])

            await home.service.turns._control.database.write(change)
            await home.respond("b", model="Pepper mini", previous_response_id=made["id"])
            assert "not shown here" in json.dumps(sent(provider)) and "gone.invalid" not in json.dumps(sent(provider))

    run(scene(), timeout=40)


@requirement("R-STORE-6")
@pytest.mark.parametrize("ends", ["whole", "broken"])
def test_a_stream_is_told_again_in_the_numbers_that_were_heard(ends: str, tmp_path: Path) -> None:
    async def scene() -> None:
        script = spoken("a", "b", "c") if ends == "whole" else play(*(chunk({"content": t}) for t in "abc"), "cut")
        async with upstream(tmp_path, script) as (home, _):
            body = {"model": "openclaw", "input": "hi", "stream": True}
            heard = (await home.ask("/v1/responses", body)).events()
            name = heard[0]["response"]["id"]
            for start in range(-1, len(heard) - 1):
                path = f"/v1/responses/{name}?stream=true&starting_after={start}"
                assert (await home.get(path)).events() == heard[start + 1 :], start
            kinds = [event["type"] for event in heard]
            assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 1
            assert heard[-1]["response"]["output"]

    run(scene(), timeout=40)
