"""Canaries through every failing path: none comes out in a repr, a message, a log or a signal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import pickle
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from conformance.runner.cases import Play
from conformance.runner.fake_server import FakeServer
from driver import SdkDriver
from scenario import Edition, load

import envai_client as sdk
from envai_client.models import ApiKeyCreated
from envai_client.models.base import decode
from envai_client.options import RetryPolicy
from envai_client.secrets import Secret, safe_url, scrub

KEY = "envai_sk_canary0key"
CANARIES = [KEY, "canary-token", "canary-arg", "canary-output", "canary-signature", "canary-text", "canary-path"]
CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz"


class Overheard:
    """Everything the SDK says: log records, signals and printed errors."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        self.logger = logging.Logger("test", logging.DEBUG)
        self.handler = logging.StreamHandler(self.text)
        self.logger.addHandler(self.handler)

    def __enter__(self) -> Overheard:
        root = logging.getLogger()
        self.before = root.level
        root.setLevel(logging.INFO)
        root.addHandler(self.handler)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.setLevel(self.before)
        root.removeHandler(self.handler)

    def observe(self, signal: Any) -> None:
        self.text.write(repr(signal) + msgspec.json.encode(signal).decode())

    def error(self, problem: BaseException) -> None:
        self.text.write(repr(problem) + str(problem))
        self.text.write("".join(traceback.format_exception(problem)))

    def check(self) -> None:
        """Nothing at any level of ours, nor at INFO of anybody's, in a process that logs everything."""
        said = self.text.getvalue()
        assert said
        for canary in CANARIES:
            assert canary not in said, canary


CALLS = [
    ("workspaces.list", [], {}),
    ("files.read_or_list", ["wsp_1", "/canary-path"], {}),
    ("files.create", ["wsp_1", "/canary-path", "canary-text"], {}),
    ("chats.submit_tool_output", [CHAT, "tc_1", "canary-output"], {}),
    ("chats.send_message", [CHAT, "canary-text"], {"idempotency_key": "k"}),
    ("images.download_artifact", ["igr_1", "art_1", "canary-signature"], {}),
    ("primitives.handleProviderWebhook", [], {"provider": "p", "callback_token": "canary-token"}),
]
REPLIES = [
    {
        "status": 401,
        "json": {"error": {"type": "unauthenticated", "message": f"bad key {KEY}", "details": {"x": "canary-arg"}}},
    },
    {
        "status": 422,
        "json": {"error": {"type": "validation_error", "message": "see https://x.y/a?signature=canary-signature"}},
    },
    {"status": 500, "text": f"Bearer {KEY}"},
    {"status": 200, "text": "canary-text {"},
    {"status": 200, "json": {"data": "canary-text"}, "headers": {"X-Envai-Contract-Version": "3"}},
    {"status": 302, "headers": {"Location": "http://evil.invalid/?t=canary-token"}},
    {"status": 200, "end": "reset"},
]


@pytest.mark.parametrize("edition", ["sync", "async"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_no_failing_request_says_a_secret(call: Any, edition: str) -> None:
    with Overheard() as heard:
        asyncio.run(fail_in_every_way(call, edition, heard))
    heard.check()


async def fail_in_every_way(call: Any, edition: str, heard: Overheard) -> None:
    name, args, kwargs = call
    for reply in REPLIES:
        async with FakeServer([]) as server:
            server._replies = Endless(reply)  # type: ignore[assignment]
            client = Edition(
                edition,
                api_key=KEY,
                base_url=server.origin,
                contract_version=3,
                logger=heard.logger,
                observer=heard.observe,
                retry=RetryPolicy(max_retries=0),
            )
            try:
                service, method = name.split(".")
                value = await client.wait(getattr(getattr(client.client, service), method), *args, **kwargs)
                heard.text.write(repr(value))
            except sdk.EnvaiError as problem:
                heard.error(problem)
            heard.text.write(repr(client.client) + repr(vars(client.client)))
            await client.close()


class Endless:
    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply

    def get(self, _: str) -> Any:
        from collections import deque

        return deque([self.reply])


@pytest.mark.parametrize("case", [c for c in load("tools/scenarios.json")], ids=lambda case: case["name"])
def test_no_tool_flow_says_an_argument_or_an_output(case: dict[str, Any], tmp_path: Path) -> None:
    heard = Overheard()
    driver = SdkDriver("async", logger=heard.logger, observer=heard.observe)
    asyncio.run(Play(case, driver, tmp_path).run())
    said = heard.text.getvalue()
    assert "EventReceived" in said
    for secret in ("a@example.com", "sent", "mallory", "secret", "😀", "xxxxxxxx"):
        assert secret not in said


def texts(value: Any, name: str = "") -> Iterator[str]:
    """What people and models wrote: every text that is no id, no name of a program and no state."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, name)
    elif isinstance(value, str) and len(value) > 3 and name in WRITTEN:
        yield value


WRITTEN = {
    "delta",
    "text",
    "input",
    "output",
    "message",
    "task",
    "title",
    "summary",
    "plan",
    "new_context",
    "sig",
    "to",
}


def test_a_repr_shows_what_a_reader_looks_for_and_nothing_anybody_wrote() -> None:
    page = sdk.models.Agent(
        id="agt_1",
        user_id="usr_1",
        name="clerk",
        description="d" * 9,
        system_prompt="never tell",
        model="m",
        mode="primary",
        tools_enabled=[sdk.models.AgentTool(name="read")],
        external_tools_enabled=[],
        permissions={"write": "ask"},
        can_write_knowledge=True,
        can_write_skills=False,
        config={},
        created_at=datetime(2026, 8, 17, tzinfo=UTC),
        updated_at=datetime(2026, 8, 17, tzinfo=UTC),
    )
    said = repr(page)
    assert "id='agt_1'" in said and "mode='primary'" in said and "can_write_knowledge=True" in said
    assert "system_prompt=<10 characters>" in said and "2026-08-17" in said and "never tell" not in said
    file = sdk.models.ImageGenerationStatusFile(
        artifact_id="art_1", mime_type="image/png", size=9, download_url="https://x/y?signature=abc"
    )
    assert "signature" not in repr(file) and "art_1" in repr(file) and "size=9" in repr(file)


def test_events_and_resources_print_no_content() -> None:
    from envai_client.events import parse_event

    for case in load("atp/events.json"):
        if case["valid"]:
            event = parse_event(msgspec.json.encode(case["event"]))
            assert event.id in repr(event)
            assert len(repr(event)) < 160
            said = repr(event.data) if isinstance(event.data, msgspec.Struct) else ""
            for text in texts(case["event"]["data"]):
                assert text not in said
    raw = {
        "id": "key_1",
        "name": "ci",
        "scopes": [],
        "expires_at": None,
        "revoked_at": None,
        "created_at": "2026-08-17T14:00:00Z",
        "token": KEY,
    }
    created = decode(ApiKeyCreated, raw)
    assert created.token == KEY
    assert "id='key_1'" in repr(created) and KEY not in repr(created)


def test_a_secret_prints_itself_nowhere() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret!r} {secret} {[secret]}"
    with contextlib.suppress(TypeError):
        assert KEY.encode() not in pickle.dumps(secret)
    assert secret.reveal() == KEY


def test_scrubbing_keeps_the_words_and_drops_the_secrets() -> None:
    text = "see https://user:pw@host/a?signature=abc&x=1, Authorization: Bearer abc.def eyJhbGciOiJF.eyJzdWIi.sig end"
    cleaned = scrub(text)
    assert cleaned == "see https://host/a?*** Authorization: *** *** end"
    assert safe_url("http://[::1") == "***"


def test_the_original_transport_error_is_not_chained_for_others_to_print() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("canary-text", request=request)

    client = sdk.EnvaiClient(
        api_key=KEY, base_url="http://x", transport=httpx2.MockTransport(refuse), retry=RetryPolicy(max_retries=0)
    )
    with pytest.raises(sdk.TransportError) as caught:
        client.workspaces.list()
    assert caught.value.sent is False
    assert caught.value.__suppress_context__
    assert "canary" not in "".join(traceback.format_exception(caught.value))
