"""What services and downloads stand on. The sync edition is made from this file: scripts/generate.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

from ..async_driver import AsyncDriver
from ..cancel import CancelToken
from ..core import call, deadline_of, open_bytes
from ..effects import CloseStream, Flow, Head, ReadChunk
from ..helpers import read_all, save

T = TypeVar("T")


class AsyncService:
    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver
        self._core = driver.core

    async def _call(
        self, kind: type[T], name: str, given: dict[str, Any], timeout: float | None, max_retries: int | None = None
    ) -> T:
        result: T = await self._driver.run(call(self._core, name, given, kind, timeout, max_retries))
        return result

    async def _do(
        self, name: str, given: dict[str, Any], timeout: float | None, max_retries: int | None = None
    ) -> None:
        await self._driver.run(call(self._core, name, given, object, timeout, max_retries))

    async def _open(self, name: str, given: dict[str, Any], timeout: float | None) -> AsyncByteStream:
        return AsyncByteStream(self._driver, await self._driver.run(open_bytes(self._core, name, given, timeout)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class AsyncByteStream:
    """A download in progress: iterate over its chunks, `read` it whole or `save` it. Close it, or use `with`."""

    def __init__(self, driver: AsyncDriver, head: Head) -> None:
        self._driver = driver
        self._head = head

    @property
    def content_type(self) -> str | None:
        return self._head.get("content-type")

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._head.headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._driver.run(one_effect(ReadChunk(self._head.handle)))) is not None:
                yield chunk
        finally:
            await self.close()

    async def read(self, *, timeout: float | None = None, cancel: CancelToken | None = None) -> bytes:
        """All of it."""
        return await self._driver.run(read_all(self._head, deadline_of(timeout)), cancel)

    async def save(
        self,
        destination: str | Path,
        *,
        atomic: bool = True,
        overwrite: bool = False,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Path:
        """Write it to a file without holding it in memory. Atomic by default: the name appears complete or not."""
        deadline = deadline_of(timeout)
        flow = save(self._head, destination, atomic=atomic, overwrite=overwrite, deadline=deadline)
        return await self._driver.run(flow, cancel)

    async def close(self) -> None:
        await self._driver.run(one_effect(CloseStream(self._head.handle)))

    aclose = close

    async def __aenter__(self) -> AsyncByteStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncByteStream {self._head.status}>"


def one_effect(effect: Any) -> Flow[Any]:
    return (yield effect)
