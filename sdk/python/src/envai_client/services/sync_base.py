"""What services and downloads stand on."""

# Generated from the async edition by scripts/generate.py: do not edit.

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from ..cancel import CancelToken
from ..core import call, deadline_of, open_bytes
from ..effects import CloseStream, Flow, Head, ReadChunk
from ..helpers import read_all, save
from ..sync_driver import SyncDriver

T = TypeVar("T")


class Service:
    def __init__(self, driver: SyncDriver) -> None:
        self._driver = driver
        self._core = driver.core

    def _call(
        self, kind: type[T], name: str, given: dict[str, Any], timeout: float | None, max_retries: int | None = None
    ) -> T:
        result: T = self._driver.run(call(self._core, name, given, kind, timeout, max_retries))
        return result

    def _do(self, name: str, given: dict[str, Any], timeout: float | None, max_retries: int | None = None) -> None:
        self._driver.run(call(self._core, name, given, object, timeout, max_retries))

    def _open(self, name: str, given: dict[str, Any], timeout: float | None) -> ByteStream:
        return ByteStream(self._driver, self._driver.run(open_bytes(self._core, name, given, timeout)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class ByteStream:
    """A download in progress: iterate over its chunks, `read` it whole or `save` it. Close it, or use `with`."""

    def __init__(self, driver: SyncDriver, head: Head) -> None:
        self._driver = driver
        self._head = head

    @property
    def content_type(self) -> str | None:
        return self._head.get("content-type")

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._head.headers)

    def __iter__(self) -> Iterator[bytes]:
        try:
            while (chunk := self._driver.run(one_effect(ReadChunk(self._head.handle)))) is not None:
                yield chunk
        finally:
            self.close()

    def read(self, *, timeout: float | None = None, cancel: CancelToken | None = None) -> bytes:
        """All of it."""
        return self._driver.run(read_all(self._head, deadline_of(timeout)), cancel)

    def save(
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
        return self._driver.run(flow, cancel)

    def close(self) -> None:
        self._driver.run(one_effect(CloseStream(self._head.handle)))

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ByteStream {self._head.status}>"


def one_effect(effect: Any) -> Flow[Any]:
    return (yield effect)
