"""Sessions that an earlier version broke go on (tests/fixtures/sessions/make.py)."""

from __future__ import annotations

import json
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import structlog

from crocevia.app.service import open_service
from crocevia.config import load
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.storage.home import Home
from crocevia.storage.migrate import ensure
from tests.aio import run
from tests.contract.requirements import requirement
from tests.contract.responses.upstream import whole
from tests.doors.responses.house import Answer, House
from tests.fakes.provider import Provider

KEPT = Path(__file__).parents[2] / "fixtures" / "sessions" / "0095.tar.gz"


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[tuple[House, Provider]]:
    """The home, brought to today's schema, before a provider of today."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    home = Home(folder)
    ensure(home.database)
    token = json.loads((folder / "kept.json").read_bytes())["operator_token"]
    async with Provider(whole("so it is")) as provider:
        apply(home, parse(f'[[engines]]\nname = "real"\nbase_url = "{provider.url}/v1"\n'.encode()))
        async with open_service(load(folder, environment={}), home, structlog.get_logger()) as service:
            yield House(service, cast("Any", SimpleNamespace(operator_token=token))), provider


async def say(home: House, session: str, text: Any, **more: Any) -> Answer:
    named, headers = ({"user": session}, {}) if ":" not in session else ({}, {"x-openclaw-session-key": session[1:]})
    body = {"model": "openclaw/talker", "input": text, **named, **more}
    answer = await home.ask("/v1/responses", body, headers=headers)
    assert answer.status == 200, answer.body
    return answer


def told(provider: Provider, said: str) -> list[dict[str, Any]]:
    """The messages that the provider was sent with the newest: what was interrupted goes on beside it."""
    found = [request.json()["messages"] for request in provider.requests if said in str(request.json()["messages"][-1])]
    return [message for message in found[-1] if message["role"] != "system"]


def texts(provider: Provider, said: str) -> list[str]:
    """What was said up to there, by whomever."""
    found = []
    for message in told(provider, said):
        content = message.get("content") or ""
        found += [content] if isinstance(content, str) else [part.get("text", "[picture]") for part in content]
    return found


@requirement("R-SESS-4", "R-SESS-6", "R-SESS-7", "R-SESS-8")
def test_sessions_that_an_earlier_version_broke_go_on_with_all_that_was_said(tmp_path: Path) -> None:
    async def scene() -> None:
        async with kept(tmp_path) as (home, provider):
            # A turn that did not end had cost the session its past.
            await say(home, "hung-up", "and now?")
            heard = [text for text in texts(provider, "and now?") if "hold" not in text]
            assert heard == ["I am Ada", "re: I am Ada", "who am I?", "re: who am I?", "and now?"]
            # A deleted answer had taken what was before it along, and was told to models all the same.
            await say(home, "deleted", "four")
            assert texts(provider, "four") == ["one", "re: one", "three", "re: three", "four"]
            # There were too many pictures.
            await say(home, "pictured", "which was the first?")
            assert texts(provider, "which was").count("[picture]") == 32
            # The provider gave every call the same id.
            output = [{"type": "function_call_output", "call_id": "call_0", "output": "seen again"}]
            await say(home, "called", output)
            messages = told(provider, "seen again")
            ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
            results = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
            assert len(set(ids)) == 2 and results == list(zip(ids, ("seen", "seen again"), strict=True))
            # It was another session when its key was spelled with the agent.
            for key in (":agent:talker:desk", ":desk"):
                await say(home, key, "more")
                assert texts(provider, "more")[:2] == ["I am Ada", "re: I am Ada"]
            # The process was killed inside a turn.
            await say(home, "killed", "so, who am I?")
            assert texts(provider, "so, who am I?")[:2] == ["I am Ada", "re: I am Ada"]

    run(scene(), timeout=40)
