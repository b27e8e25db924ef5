"""A body is read whole, bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.asgi.body import BodyRoom, ClientGone, read_body
from crocevia.core.errors import Code, GatewayError
from tests.aio import run


def piece(data: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def read(*messages: dict[str, Any], limit: int = 8, seconds: float = 10.0) -> bytes:
    """What `read_body` makes of these messages, after which the caller says nothing more."""
    coming = list(messages)

    async def receive() -> dict[str, Any]:
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    return run(read_body(receive, limit, None, seconds))


def test_pieces_are_one_body() -> None:
    assert read(piece(b"ab", False)) == b"ab"
    assert read(piece(b"ab", True), piece(b"", True), piece(b"cd", False)) == b"abcd"


@pytest.mark.parametrize("before", [(), (piece(b"ab", True),)], ids=["not a byte", "half of it"])
def test_a_caller_who_falls_silent_is_not_waited_for_without_end(before: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(GatewayError) as failure:
        read(*before, seconds=0.05)
    assert (failure.value.code, failure.value.message.reason) == (Code.INVALID_REQUEST, "body_too_slow")


@pytest.mark.parametrize("before", [(), (piece(b"ab", True),)], ids=["not a byte", "half of it"])
def test_a_caller_who_left_is_gone(before: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ClientGone):
        read(*before, {"type": "http.disconnect"})


@pytest.mark.parametrize("pieces", [(piece(b"a" * 9, False),), (piece(b"a" * 8, True), piece(b"a", False))])
def test_a_body_above_the_limit_is_refused(pieces: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(GatewayError) as failure:
        read(*pieces)
    assert failure.value.code is Code.TOO_LARGE


async def reading(room: BodyRoom, size: int, caller: str, until: asyncio.Event, begun: list[str]) -> None:
    async with room.take(size, caller):
        begun.append(caller)
        await until.wait()


async def turns(count: int = 9) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_bodies_share_one_bound_and_callers_take_turns() -> None:
    async def work() -> None:
        room, begun = BodyRoom(100), list[str]()
        first, rest = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.ensure_future(reading(room, 50, who, first, begun)) for who in ("a", "b")]
        await turns()
        tasks += [asyncio.ensure_future(reading(room, 50, who, rest, begun)) for who in ("a", "a", "a", "c")]
        await turns()
        assert (begun, room.held) == (["a", "b"], 100)
        first.set()
        await turns()
        assert begun == ["a", "b", "a", "c"]  # and not "a" twice: the others' turn comes first, and half is the most
        rest.set()
        await asyncio.gather(*tasks)
        assert (len(begun), room.held) == (6, 0)

    run(work())


def test_one_caller_never_has_more_than_half_of_the_room_unless_one_body_is_larger() -> None:
    async def work() -> None:
        room = BodyRoom(100, wait_seconds=0.05)
        async with room.take(1000, "a"):
            assert room.held == 100
        async with room.take(40, "a"):
            with pytest.raises(GatewayError) as failure:
                async with room.take(20, "a"):
                    pass
            assert (failure.value.code, failure.value.message.reason) == (Code.UNAVAILABLE, "bodies_busy")
            assert failure.value.retry_after
            async with room.take(60, "b"):
                assert room.held == 100
        assert room.held == 0

    run(work())


def test_whoever_gives_up_waiting_leaves_no_place_behind() -> None:
    async def work() -> None:
        room, until, begun = BodyRoom(10), asyncio.Event(), list[str]()
        holder = asyncio.ensure_future(reading(room, 10, "a", until, begun))
        await turns()
        for moment in range(6):  # cancelled before, at and after the moment in which room is given
            waiting = asyncio.ensure_future(reading(room, 10, "b", asyncio.Event(), begun))
            await turns()
            if moment == 3:
                until.set()
            await turns(moment)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await holder
        assert room.held == 0
        async with room.take(10, "c"):
            pass

    run(work())


def test_a_large_body_waits_for_room_before_it_is_read() -> None:
    async def work() -> None:
        room, until, begun, seen = BodyRoom(10), asyncio.Event(), list[str](), list[str]()
        holder = asyncio.ensure_future(reading(room, 10, "a", until, begun))
        coming = [piece(b"ab", True), piece(b"cd", False)]

        async def receive() -> dict[str, Any]:
            seen.append("asked")
            return coming.pop(0)

        body = asyncio.ensure_future(read_body(receive, 8, 4, room=room, caller="b"))
        await turns()
        assert (seen, body.done()) == (["asked"], False)
        until.set()
        assert await body == b"abcd"
        await holder
        assert room.held == 0

    run(work())


def test_a_body_that_hardly_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crocevia.asgi.body.START_SECONDS", 0.1)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.03)  # the pace is what is tested
        return piece(b"a", True)

    with pytest.raises(GatewayError) as failure:
        run(read_body(receive, 10**6, None, 60))
    assert failure.value.message.reason == "body_too_slow"
