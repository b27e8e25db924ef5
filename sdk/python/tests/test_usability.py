"""What a user of such clients expects: the environment, per-call limits, raw answers, pages, errors that say where."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from conformance.runner.fake_server import FakeServer
from fixture_parts import CHAT, TURN
from scenario import EDITIONS, Edition, load

import envai_client as sdk
from envai_client.requests import read_error

STAMP = "2026-08-17T14:00:00.123456Z"
TURN_CASE = next(case for case in load("flows/scenarios.json") if case["name"].startswith("chat created"))
both = pytest.mark.parametrize("edition", EDITIONS)


class Scripted:
    """A server of one answer after the other, the last one for ever; what it was asked."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)


def says(status: int, value: Any, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json=value, headers={"X-Envai-Contract-Version": "3", **headers})


def client(edition: str, server: Scripted, **options: Any) -> Edition:
    given = {"api_key": "k", "base_url": "http://x", "contract_version": 3, "transport": httpx2.MockTransport(server)}
    return Edition(edition, **given | options)


WORKSPACE = {"id": "wsp_1", "user_id": "u", "name": "n", "metadata": {}, "created_at": STAMP, "updated_at": STAMP}


@both
def test_the_key_and_the_address_come_from_the_environment(edition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVAI_API_KEY", "envai_sk_env")
    monkeypatch.setenv("ENVAI_BASE_URL", "http://env")
    server = Scripted(says(200, {"data": []}))
    kind = sdk.AsyncEnvaiClient if edition == "async" else sdk.EnvaiClient

    async def play() -> None:
        made = Edition(edition, transport=httpx2.MockTransport(server))
        assert isinstance(made.client, kind)
        await made.wait(made.client.workspaces.list)

    asyncio.run(play())
    assert str(server.asked[0].url) == "http://env/api/v1/workspaces"
    assert server.asked[0].headers["authorization"] == "Bearer envai_sk_env"
    monkeypatch.delenv("ENVAI_BASE_URL")
    with pytest.raises(ValueError, match="ENVAI_BASE_URL"):
        kind()


def test_the_key_is_never_a_position() -> None:
    with pytest.raises(TypeError):
        sdk.EnvaiClient("envai_sk_x")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("retry", "never"),
        ("timeouts", 30),
        ("reconnect", None),
        ("max_frame_bytes", "1"),
        ("jwks_ttl", True),
        ("observer", "log"),
        ("trace_headers", {}),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_when_the_client_is_made(setting: str, value: Any) -> None:
    with pytest.raises(TypeError, match=setting):
        sdk.EnvaiClient(base_url="http://x", **{setting: value})


def test_a_policy_is_made_of_numbers() -> None:
    with pytest.raises(TypeError, match=r"RetryPolicy\.max_retries"):
        sdk.RetryPolicy(max_retries="never")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Timeouts\.connect"):
        sdk.Timeouts(connect=-1)
    assert sdk.ReconnectPolicy(max_seconds=None).max_seconds is None


@both
def test_one_call_may_retry_otherwise_than_the_client(edition: str) -> None:
    server = Scripted(says(503, {}))

    async def play() -> None:
        made = client(edition, server, retry=sdk.RetryPolicy(max_retries=1, base_delay=0.001))
        for retries, attempts in ((None, 2), (0, 1), (3, 4)):
            server.asked.clear()
            with pytest.raises(sdk.ServerError):
                await made.wait(made.client.workspaces.list, max_retries=retries)
            assert len(server.asked) == attempts
        other = made.client.with_options(max_retries=0, timeout=7)
        server.asked.clear()
        with pytest.raises(sdk.ServerError):
            await made.wait(other.workspaces.list)
        assert len(server.asked) == 1
        assert server.asked[0].extensions["timeout"]["read"] == 7
        assert other.ledger is made.client.ledger
        with pytest.raises(TypeError, match="retry"):
            made.client.with_options(retry="never")
        await made.wait(other.close)
        with pytest.raises(sdk.ServerError):
            await made.wait(made.client.workspaces.list)  # closing the other released nothing of this one's

    asyncio.run(play())


@both
def test_an_answer_can_be_had_as_it_came(edition: str) -> None:
    refusal = {"error": {"type": "not_found", "code": "gone", "message": "m"}}
    server = Scripted(says(200, {"data": WORKSPACE}, **{"X-Request-Id": "r1"}), says(404, refusal))

    async def play() -> None:
        made = client(edition, server)
        answer = await made.wait(made.client.raw_response, "getWorkspace", workspace_id="wsp_1")
        assert (answer.http_status, answer.request_id, answer.json()) == (200, "r1", {"data": WORKSPACE})
        assert ("x-request-id", "r1") in answer.headers
        gone = await made.wait(made.client.raw_response, "getWorkspace", workspace_id="wsp_1")
        assert gone.http_status == 404
        with pytest.raises(sdk.NotFoundError, match="gone"):
            gone.raise_for_status()
        with pytest.raises(ValueError, match="launch"):
            await made.wait(made.client.raw_response, "launch")

    asyncio.run(play())


def completion(number: int) -> dict[str, Any]:
    names = ("workspace_id", "chat_id", "team_id", "user_id", "status")
    stamps = dict.fromkeys(("started_at", "created_at", "updated_at"), STAMP)
    more = {"models_subagents": [], "usage": {"prompt_tokens": number}, "cost_usd": None}
    return {"id": f"cmpl_{number}", **dict.fromkeys(names, "x"), **stamps, **more}


@both
def test_a_page_iterates_to_the_last_completion(edition: str) -> None:
    pages = [
        says(200, {"data": [completion(2 * n - 1), completion(2 * n)], "links": {}, "meta": {"last_page": 3}})
        for n in (1, 2, 3)
    ]
    server = Scripted(*pages)

    async def play() -> None:
        made = client(edition, server)
        page = await made.wait(made.client.completions.list, "w", "c", per_page=2)
        assert [item.id for item in page.data] == ["cmpl_1", "cmpl_2"]
        assert page.has_next and page.meta.last_page == 3
        found, iterator = [], made.iterate(page)
        while (item := await made.next(iterator)) is not None:
            found.append(item)
        assert [item.usage.prompt_tokens for item in found] == [1, 2, 3, 4, 5, 6]
        assert found[0].created_at == datetime(2026, 8, 17, 14, 0, 0, 123456, tzinfo=UTC)

    asyncio.run(play())
    assert [request.url.query.decode() for request in server.asked] == [
        "per_page=2",
        "per_page=2&page=2",
        "per_page=2&page=3",
    ]


class Chats:
    """A server of so many chats, newest first, at most 1,000 in a page, with `links.next` as ours and without it."""

    def __init__(self, many: int, links: bool = True) -> None:
        self.ids = [f"chat_{number:05}" for number in range(many, 0, -1)]
        self.links = links
        self.asked: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request.url.query.decode())
        query = request.url.params
        size = int(query.get("per_page", 1000))
        left = [one for one in self.ids if one < query.get("before", "~")]
        names = ("workspace_id", "user_id", "team_id", "title")
        stamps = {"created_at": STAMP, "updated_at": STAMP}
        answer: dict[str, Any] = {"data": [{**dict.fromkeys(names, "x"), "id": one, **stamps} for one in left[:size]]}
        following = f"{request.url.path}?before={left[size - 1]}&per_page={size}" if len(left) > size else None
        return says(200, answer | ({"links": {"next": following}} if self.links else {}))


@both
@pytest.mark.parametrize(
    ("many", "links", "found", "asked"),
    [
        (2500, True, 2500, ["", "before=chat_01501", "before=chat_00501"]),
        (1000, True, 1000, [""]),
        (0, True, 0, [""]),
        (1200, False, 1000, [""]),  # a server without pages: what it gave is all there is
    ],
)
def test_a_list_of_chats_iterates_to_the_last_one(
    edition: str, many: int, links: bool, found: int, asked: list[str]
) -> None:
    server = Chats(many, links)

    async def play() -> None:
        made = client(edition, server)
        page = await made.wait(made.client.chats.list, "w")
        assert [chat.id for chat in page.data] == server.ids[:1000]
        assert page.has_next is (many > 1000 and links)
        seen, iterator = [], made.iterate(page)
        while (chat := await made.next(iterator)) is not None:
            seen.append(chat.id)
        assert seen == server.ids[:found]

    asyncio.run(play())
    assert server.asked == asked


@both
def test_a_page_of_chats_may_be_small_and_start_anywhere(edition: str) -> None:
    server = Chats(9)

    async def play() -> None:
        made = client(edition, server)
        page = await made.wait(made.client.chats.list, "w", before="chat_00009", per_page=5)
        following = await made.wait(page.next_page)
        assert [chat.id for chat in (*page.data, *following.data)] == server.ids[1:]
        assert await made.wait(following.next_page) is None

    asyncio.run(play())
    assert server.asked == ["before=chat_00009&per_page=5", "before=chat_00004&per_page=5"]


@both
@pytest.mark.parametrize("following", ["/chats", "/chats?before=", "/chats?before=c1"])
def test_a_next_page_that_leads_nowhere_is_an_error_and_no_endless_list(edition: str, following: str) -> None:
    chat = {**dict.fromkeys(("id", "workspace_id", "user_id", "team_id", "title"), "x")}
    page = {"data": [chat | {"created_at": STAMP, "updated_at": STAMP}], "links": {"next": following}}

    async def play() -> None:
        made = client(edition, Scripted(says(200, page)))
        with pytest.raises(sdk.InvalidResponseError, match="next page"):
            await made.wait(made.client.chats.list, "w", before="c1")

    asyncio.run(play())


@both
def test_an_attachment_is_waited_for_until_nothing_is_converted_any_more(edition: str) -> None:
    def attachment(status: str, recoverable: bool = False) -> dict[str, Any]:
        cost = {"status": "complete", "basis": "none", "scope_status": "closed", "revision": 1, "as_of": "t"}
        cost |= {"invocation_count": 0, "pending_invocation_count": 0, "totals": [], "priced_subtotals": []}
        state = {"status": status, "error_code": None, "recoverable": recoverable, "next_retry_at": None}
        names = ("attachment_id", "workspace_id", "chat_id", "original_name", "mime_type", "lifecycle")
        more = {"byte_size": 1, "revision": 1, "derived": None, "expires_at": STAMP, "attached_at": None}
        return {**dict.fromkeys(names, "x"), **more, "conversion": {**state, "retryable": False}, "usage_cost": cost}

    states = [("queued", False), ("running", False), ("failed", True), ("completed", False)]
    server = Scripted(*(says(200, {"data": attachment(*state)}) for state in states))

    async def play() -> Any:
        made = client(edition, server)
        return await made.wait(made.client.attachments.wait, "w", "c", "a", interval=0.001)

    assert asyncio.run(play()).conversion.status == "completed"
    assert len(server.asked) == 4


def test_an_error_says_what_and_where() -> None:
    details = {"name": ["too long"], "model": ["unknown"]}
    error = {"type": "validation_error", "code": None, "message": "The given data was invalid.", "details": details}
    server = Scripted(says(422, {"error": error}, **{"X-Request-Id": "req_1"}))
    made = sdk.EnvaiClient(base_url="http://x", transport=httpx2.MockTransport(server))
    with made, pytest.raises(sdk.ValidationError) as caught:
        made.agents.create("n", "s", "primary")
    assert str(caught.value) == (
        "The given data was invalid. (422 validation_error); fields: name, model"
        " [in createAgent POST /agents, request req_1]"
    )
    server = Scripted(httpx2.ConnectError("refused"))
    made = sdk.EnvaiClient(base_url="http://x", transport=httpx2.MockTransport(server))
    with made, pytest.raises(sdk.TransportError, match=r"no answer: ConnectError \[in createChat POST /workspaces/"):
        made.chats.create("w", "t")


@pytest.mark.parametrize("value", [1, None, True, [], {}, ["file_x"], {"a": 1}])
def test_an_envelope_of_nonsense_is_an_error_of_ours_all_the_same(value: Any) -> None:
    for status in (400, 404, 500):
        head = sdk.core.Head(status=status, headers=[])
        body = json.dumps({"error": {"type": value, "code": value, "message": value, "details": value}}).encode()
        problem = read_error(head, body)
        assert (problem.http_status, problem.type, problem.code) == (status, None, None)
        assert str(problem) and repr(problem)


@both
def test_a_lost_answer_says_which_chat_and_where_it_stood(edition: str) -> None:
    """The message went out and its answer did not come: the reader knows from where to look whether it arrived."""
    server_script = [
        {**entry, "replies": [{"status": 202, "end": "reset"}]} if entry["on"].endswith("/messages") else entry
        for entry in TURN_CASE["server"]
    ]

    async def play() -> sdk.EnvaiError:
        async with FakeServer(server_script) as server:
            made = Edition(edition, api_key="k", base_url=server.origin, contract_version=3)
            try:
                with pytest.raises(sdk.TransportError) as caught:
                    await made.wait(made.client.chats.send_and_wait, CHAT, "hello", timeout=10)
                return caught.value
            finally:
                await made.close()

    problem = asyncio.run(play())
    assert isinstance(problem, sdk.TransportError) and problem.sent
    assert (problem.chat_id, problem.turn_id, problem.last_seq) == (CHAT, None, 0)
    assert problem.where is not None and problem.where.startswith("sendChatMessage")
    assert CHAT in str(problem)


@both
def test_a_turn_that_cannot_be_followed_says_which_turn_and_where(edition: str) -> None:
    cut = [
        {**entry, "replies": [{**entry["replies"][0], "stream": entry["replies"][0]["stream"][:-1], "end": "reset"}]}
        if entry["on"].endswith("/events")
        else entry
        for entry in TURN_CASE["server"]
    ]

    async def play() -> sdk.EnvaiError:
        async with FakeServer(cut) as server:
            never = sdk.ReconnectPolicy(max_reconnects=0)
            made = Edition(edition, api_key="k", base_url=server.origin, contract_version=3, reconnect=never)
            try:
                with pytest.raises(sdk.StreamInterruptedError) as caught:
                    await made.wait(made.client.chats.send_and_wait, CHAT, "hello", timeout=10)
                return caught.value
            finally:
                await made.close()

    problem = asyncio.run(play())
    assert (problem.chat_id, problem.turn_id) == (CHAT, TURN)
    assert problem.last_seq


def test_an_event_that_was_kept_is_read_again() -> None:
    case = next(c for c in load("atp/events.json") if c["valid"] and c["event"]["type"] == "agent.text.delta")
    event = sdk.parse_event(json.dumps(case["event"]))
    assert isinstance(event, sdk.TextDeltaEvent) and event.type == "agent.text.delta"
    assert event.time.tzinfo is not None
    unknown = sdk.parse_event(json.dumps({**case["event"], "type": "agent.dreamt"}))
    assert isinstance(unknown, sdk.UnknownEvent)
    assert (unknown.type, unknown.wire_type, unknown.data) == ("unknown", "agent.dreamt", case["event"]["data"])
    with pytest.raises(sdk.UnsupportedVersionError):
        sdk.parse_event(json.dumps({**case["event"], "v": 3}), versions=frozenset({2}))


@pytest.mark.parametrize("name", ["", "Send", "1a", "_a", "a-b", "a.b", "a b", "a" * 256, "è", "a\n"])
def test_a_tool_name_no_server_accepts_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        sdk.ClientToolRegistry().register_tool(name, print, {"type": "object"})


def test_a_handler_knows_its_deadline() -> None:
    context = sdk.ToolContext(CHAT, TURN, "tc_1", "send", 0.0)
    assert context.seconds_left == 0.0
