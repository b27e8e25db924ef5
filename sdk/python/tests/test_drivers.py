"""Connections, deadlines and cancellation: what only the drivers know. Each test runs on both clients."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import httpx2
import pytest
from conformance.runner.fake_server import FakeServer
from scenario import EDITIONS, Edition, load

import envai_client as sdk
from envai_client.options import ReconnectPolicy, RetryPolicy

CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz"
EVENTS = f"GET /api/v1/atp/v3/chats/{CHAT}/events"
HEADERS = {"Content-Type": "text/event-stream", "X-Envai-Contract-Version": "3"}
ACK = {"X-Envai-Contract-Version": "3"}
SPACES = {"on": "GET /api/v1/workspaces", "replies": [{"status": 200, "json": {"data": []}}]}
ONE = next(case for case in load("atp/streams.json") if case["name"] == "many events in one chunk")
TEXT = ONE["server"][0]["replies"][0]["stream"][0]["text"]


def stream(*items: dict[str, Any], end: str = "hold") -> dict[str, Any]:
    return {"status": 200, "headers": HEADERS, "stream": list(items), "end": end}


def both(test: Any) -> Any:
    return pytest.mark.parametrize("edition", EDITIONS)(test)


def client_for(server: FakeServer, edition: str, **options: Any) -> Edition:
    options.setdefault("contract_version", 3)
    return Edition(edition, api_key="envai_sk_x", base_url=server.origin, **options)


@both
def test_abandoned_streams_give_their_connections_back(edition: str) -> None:
    async def play() -> None:
        script = [{"on": EVENTS, "replies": [stream({"text": TEXT})] * 20}, SPACES]
        async with FakeServer(script) as server:
            client = client_for(server, edition)
            for _ in range(20):
                events = client.client.chats.events(CHAT)
                assert (await client.next(client.iterate(events))).seq == 1
                del events
            await server.until(lambda: server.closed_by_client == 20)
            started = time.monotonic()
            assert await client.wait(client.client.workspaces.list) == []
            assert time.monotonic() - started < 2
            pool = client.client._transport._pool
            assert len(pool.connections) <= 1
            await client.close()

    asyncio.run(play())


@both
def test_a_helper_timeout_bounds_the_whole_turn(edition: str) -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream()]}, capabilities()]) as server:
            client = client_for(server, edition)
            started = time.monotonic()
            with pytest.raises(sdk.RequestTimeoutError):
                await client.wait(client.client.chats.send_and_wait, CHAT, "hi", timeout=2.0)
            assert 1.9 < time.monotonic() - started < 8
            await server.until(lambda: server.closed_by_client == 1)
            assert all(asked.method == "GET" for asked in server.asked)
            await client.close()

    asyncio.run(play())


def capabilities() -> dict[str, Any]:
    body = {
        "protocol_version": 3,
        "contract_version": 3,
        "supported_contract_versions": [2, 3],
        "legacy_v2_mode": "x",
        "families": [],
        "event_types": [],
        "tool_kinds": [],
        "features": [],
    }
    return {"on": "GET /api/v1/atp/v3/capabilities", "replies": [{"status": 200, "headers": ACK, "json": body}] * 4}


@both
def test_a_token_cancels_a_request_that_gets_no_answer(edition: str) -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream()]}, capabilities()]) as server:
            client, token = client_for(server, edition), sdk.CancelToken()

            async def cancel_once_open() -> None:
                await server.until(lambda: len(server.asked) == 2)
                token.cancel()

            cancelling = asyncio.create_task(cancel_once_open())
            with pytest.raises(sdk.CancelledError):
                await client.wait(client.client.chats.send_and_wait, CHAT, "hi", cancel=token)
            await cancelling
            await server.until(lambda: server.closed_by_client == 1)
            await client.close()

    asyncio.run(play())


@both
def test_a_cancelled_token_stops_a_poll_between_two_requests(edition: str) -> None:
    stamps = dict.fromkeys(("created_at", "submitted_at", "completed_at", "expires_at"), "2026-08-17T14:00:00Z")
    record = {
        "id": "igr_1",
        "status": "queued",
        "provider": "p",
        "initial_provider": "p",
        "routed": False,
        "model": "m",
        **stamps,
    }
    accepted = {**record, "webhook_url": "https://x", "status_url": "https://x"}
    script = [
        {"on": "POST /api/v1/images/generations", "replies": [{"status": 202, "json": {"data": accepted}}] * 2},
        {
            "on": "GET /api/v1/images/generations/igr_1",
            "replies": [
                {"status": 200, "json": {"data": record}},
                {"status": 200, "json": {"data": {**record, "status": "succeeded"}}},
            ],
        },
    ]
    request = {"model": "m", "prompt": "p", "webhook_url": "https://x.y/z"}

    async def play() -> None:
        async with FakeServer(script) as server:
            client, token = client_for(server, edition), sdk.CancelToken()
            done = await client.wait(client.client.images.generate_and_wait, interval=0.01, **request)
            assert done.status == "succeeded"
            asyncio.get_running_loop().call_later(0.2, token.cancel)
            with pytest.raises(sdk.CancelledError):
                await client.wait(client.client.images.generate_and_wait, interval=9, cancel=token, **request)
            with pytest.raises(sdk.RequestTimeoutError):
                await client.wait(client.client.images.generate_and_wait, interval=9, timeout=0.0001, **request)
            await client.close()

    asyncio.run(play())


@both
def test_silence_beyond_the_idle_bound_is_a_lost_connection(edition: str) -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream({"text": TEXT}), stream()]}]) as server:
            client = client_for(
                server,
                edition,
                timeouts=sdk.Timeouts(stream_idle=0.2),
                reconnect=ReconnectPolicy(max_reconnects=1, base_delay=0.01),
            )
            iterator = client.iterate(client.client.chats.events(CHAT))
            assert [(await client.next(iterator)).seq for _ in range(3)] == [1, 2, 3]
            with pytest.raises(sdk.StreamInterruptedError) as caught:
                await client.next(iterator)
            assert caught.value.last_seq == 3
            await client.close()

    asyncio.run(play())


@both
def test_the_checkpoint_moves_only_when_the_event_was_dealt_with(edition: str) -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream({"text": TEXT})]}]) as server:
            client = client_for(server, edition)
            events = client.client.chats.events(CHAT)
            iterator = client.iterate(events)
            seen = [
                (await client.next(iterator)).seq,
                events.last_seq,
                (await client.next(iterator)).seq,
                events.last_seq,
            ]
            assert seen == [1, 0, 2, 1]
            events.acknowledge()
            assert events.last_seq == 2
            await client.wait(events.close)
            await client.close()

    asyncio.run(play())


def test_a_handler_that_raises_leaves_the_checkpoint_before_its_event() -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream({"text": TEXT})] * 2}]) as server:
            client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3)
            with pytest.raises(RuntimeError):
                async with client.chats.events(CHAT) as events:
                    async for event in events:
                        if event.seq == 2:
                            raise RuntimeError
            assert events.last_seq == 1
            async with client.chats.events(CHAT) as events:
                async for event in events:
                    if event.seq == 2:
                        break
            assert events.last_seq == 2
            await client.aclose()

    asyncio.run(play())


def test_a_stream_has_one_reader_async() -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream()]}]) as server:
            client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3)
            events = client.chats.events(CHAT)
            first = asyncio.create_task(anext(events))
            await server.until(lambda: server.asked)
            with pytest.raises(sdk.StreamInUseError):
                await anext(events)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await events.close()
            await server.until(lambda: server.closed_by_client == 1)
            await client.aclose()

    asyncio.run(play())


def test_a_stream_has_one_reader_sync() -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream()]}]) as server:
            client, token = sdk.EnvaiClient(api_key="k", base_url=server.origin, contract_version=3), sdk.CancelToken()
            events = client.chats.events(CHAT, cancel=token)
            outcome: list[str] = []

            def read() -> None:
                try:
                    next(events)
                except sdk.CancelledError as problem:
                    outcome.append(type(problem).__name__)

            thread = threading.Thread(target=read)
            thread.start()
            await server.until(lambda: server.asked)
            with pytest.raises(sdk.StreamInUseError):
                next(events)
            token.cancel()
            await asyncio.to_thread(thread.join, 5)
            assert outcome == ["CancelledError"]
            await asyncio.to_thread(events.close)
            client.close()

    asyncio.run(play())


def test_an_async_task_that_is_cancelled_leaves_nothing_open() -> None:
    async def play() -> None:
        async with FakeServer([{"on": EVENTS, "replies": [stream()]}, capabilities()]) as server:
            client = sdk.AsyncEnvaiClient(api_key="k", base_url=server.origin, contract_version=3)
            task = asyncio.create_task(client.chats.send_and_wait(CHAT, "hi"))
            await server.until(lambda: len(server.asked) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.until(lambda: server.closed_by_client == 1)
            await client.aclose()

    asyncio.run(play())


@both
def test_redirects_keep_the_origin_or_drop_the_credentials(edition: str) -> None:
    async def play() -> None:
        other = FakeServer([{"on": "GET /blob", "replies": [{"status": 200, "text": "bytes"}]}])
        async with other, FakeServer([]) as server:
            files = "/api/v1/workspaces/wsp_1/files/download"
            server._replies.update(
                {
                    f"GET {files}": [{"status": 302, "headers": {"Location": other.origin + "/blob"}}],
                    "GET /api/v1/teams": [{"status": 307, "headers": {"Location": "/api/v1/teams2"}}],
                    "GET /api/v1/teams2": [{"status": 200, "json": {"data": []}}],
                    "POST /api/v1/teams": [{"status": 307, "headers": {"Location": "/api/v1/teams2"}}],
                }
            )
            for route, replies in list(server._replies.items()):
                server._replies[route] = __import__("collections").deque(replies)
            client = client_for(server, edition)
            download = await client.wait(client.client.files.download, "wsp_1", "/a")
            assert await client.wait(download.read) == b"bytes"
            assert "authorization" not in other.asked[0].headers
            assert await client.wait(client.client.teams.list) == []
            assert server.asked[-1].headers["authorization"] == "Bearer envai_sk_x"
            with pytest.raises(sdk.RedirectRefusedError):
                await client.wait(client.client.teams.create, "t", "agt_1")
            await client.close()

    asyncio.run(play())


@both
def test_signed_urls_are_taken_as_given_and_only_from_our_origin(edition: str, tmp_path: Any) -> None:
    async def play() -> None:
        route = "GET /api/v1/artifacts/download"
        async with FakeServer([{"on": route, "replies": [{"status": 200, "text": "png"}]}]) as server:
            client = client_for(server, edition)
            url = f"{server.origin}/api/v1/artifacts/download?artifact=art_1&generation=igr_1&signature=a%2Bb"
            path = await client.wait(client.client.images.download_to_file, url, tmp_path / "a.png")
            assert path.read_bytes() == b"png"
            assert server.asked[0].raw_query == "artifact=art_1&generation=igr_1&signature=a%2Bb"
            assert "authorization" not in server.asked[0].headers
            for bad in (
                "http://evil.invalid/api/v1/artifacts/download?signature=x",
                f"{server.origin}/other?signature=x",
            ):
                with pytest.raises(sdk.UnsafePathError):
                    await client.wait(client.client.images.download_signed, bad)
            with pytest.raises(FileExistsError):
                path.touch()
                server._replies[route].append({"status": 200, "text": "new"})
                await client.wait(client.client.images.download_to_file, url, path)
            server._replies[route].append({"status": 200, "text": "new"})
            await client.wait(client.client.images.download_to_file, url, path, overwrite=True)
            assert path.read_bytes() == b"new"
            with pytest.raises(sdk.UnsafePathError):
                server._replies[route].append({"status": 200, "text": "new"})
                await client.wait(client.client.images.download_to_file, url, tmp_path)
            await client.close()

    asyncio.run(play())


@pytest.mark.parametrize("path", ["a", "/a/../b", "/a\\b", "/a//b", "/a/", "/a\x00b", "/\u007f"])
def test_workspace_paths_are_checked_before_they_leave(path: str) -> None:
    with pytest.raises(sdk.UnsafePathError):
        sdk.EnvaiClient(base_url="http://127.0.0.1:9").files.read_or_list("wsp_1", path)


def test_trace_headers_pass_and_nothing_else_does() -> None:
    seen: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(200, json={"data": []})

    given = {"traceparent": "00-a-b-01", "Baggage": "k=v", "Authorization": "Bearer other", "Cookie": "x"}
    client = sdk.EnvaiClient(
        api_key="k", base_url="http://x", transport=httpx2.MockTransport(answer), trace_headers=lambda: given
    )
    client.workspaces.list()
    assert (seen[0]["traceparent"], seen[0]["baggage"], seen[0]["authorization"]) == ("00-a-b-01", "k=v", "Bearer k")
    assert "cookie" not in seen[0]
    assert seen[0]["user-agent"].startswith("envai-python/0.1.0.dev0 (cpython/3.")


def test_a_failing_observer_breaks_nothing() -> None:
    def explode(_: Any) -> None:
        raise RuntimeError

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json={"data": []}))
    assert sdk.EnvaiClient(base_url="http://x", transport=transport, observer=explode).workspaces.list() == []


@pytest.mark.parametrize("url", ["", "x", "ftp://h", "http://u:p@h", "http://h?x=1", "http://h/#f"])
def test_a_bad_base_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        sdk.EnvaiClient(base_url=url)


def test_retry_waits_are_bounded_by_the_callers_timeout() -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(503, headers={"Retry-After": "5"}))
    client = sdk.EnvaiClient(base_url="http://x", transport=transport, retry=RetryPolicy(max_retries=3))
    started = time.monotonic()
    with pytest.raises(sdk.ServerError):
        client.workspaces.list(timeout=1)
    assert time.monotonic() - started < 1


def test_the_version_is_found_whatever_is_asked_first() -> None:
    body = {"protocol_version": 2, "families": [], "event_types": [], "tool_kinds": [], "features": ["ping"]}

    def alpha(request: httpx2.Request) -> httpx2.Response:
        found = request.url.path == "/api/v1/capabilities" and "x-envai-contract-version" not in request.headers
        return httpx2.Response(200, json=body) if found else httpx2.Response(404)

    client = sdk.EnvaiClient(base_url="http://x", transport=httpx2.MockTransport(alpha))
    assert client.capabilities.get().features == ["ping"]
