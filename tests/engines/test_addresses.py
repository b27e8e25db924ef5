"""Names are asked once for all who wait, kept for a while, and asked again after a failure; addresses never."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from crocevia.engines.upstream.addresses import KEEP_SECONDS, Address, Addresses
from tests.aio import run

FOUND: list[Address] = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]


class Names:
    """What stands for the system's resolver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.fails = False
        self.now = 1000.0
        self.answer = asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self.find)
        monkeypatch.setattr(loop, "time", lambda: self.now)

    async def find(self, *_: Any, **__: Any) -> list[Address]:
        self.asked += 1
        await self.answer.wait()
        if self.fails:
            raise socket.gaierror(socket.EAI_NONAME, "nobody")
        return FOUND


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_an_address_is_its_own_answer(host: str, family: socket.AddressFamily, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        names = Names(monkeypatch)
        ((found, *_, where),) = await Addresses().of(host, 80)
        assert (found, where, names.asked) == (family, (host, 80), 0)

    run(scene())


def test_a_name_is_asked_once_for_all_and_again_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        names, addresses = Names(monkeypatch), Addresses()
        waiting = [asyncio.ensure_future(addresses.of("provider.test", 80)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # the others still get their answer
        names.answer.set()
        assert await asyncio.gather(*waiting[1:]) == [FOUND, FOUND]
        assert await addresses.of("provider.test", 80) == FOUND and names.asked == 1
        names.now += KEEP_SECONDS + 1
        await addresses.of("provider.test", 80)
        assert names.asked == 2
        addresses.forget("provider.test", 80)
        await addresses.of("provider.test", 80)
        assert names.asked == 3

    run(scene())


def test_a_failure_is_told_to_all_who_wait_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        names, addresses = Names(monkeypatch), Addresses()
        names.fails = True
        names.answer.set()
        results = await asyncio.gather(*(addresses.of("x.test", 80) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [socket.gaierror] * 3 and names.asked == 1
        names.fails = False
        assert await addresses.of("x.test", 80) == FOUND

    run(scene())


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".test", "."])
def test_what_no_name_can_be_is_an_address_that_is_not_there(host: str) -> None:
    async def scene() -> None:
        with pytest.raises(OSError):
            await Addresses().of(host, 80)

    run(scene())
