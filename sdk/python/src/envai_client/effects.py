"""What a flow may ask of the world.

A flow is a generator that holds a protocol and no I/O: it yields one of these, the driver performs it and sends the
result (or throws the failure) back in. The two drivers differ in how they wait and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")
Flow: TypeAlias = Generator[Any, Any, T]
FilePart: TypeAlias = tuple[str, tuple[str, Any, str]]


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds allowed to connect and between two reads."""

    connect: float
    read: float


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request. Prints only what may be seen by anyone."""

    operation: str
    method: str
    url: str
    label: str
    headers: dict[str, str]
    phases: Phases
    content: bytes | None = None
    form: dict[str, str] | None = None
    files: list[FilePart] | None = None

    def __repr__(self) -> str:
        return f"<Request {self.operation} {self.method} {self.label}>"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Status and headers, names in lower case, repeated lines kept. `handle` belongs to the driver."""

    status: int
    headers: list[tuple[str, str]]
    handle: Any = None

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def __repr__(self) -> str:
        return f"<Head {self.status}>"


class Exchange(msgspec.Struct, frozen=True):
    """Send and read the whole answer -> (Head, bytes)."""

    request: Request
    deadline: float | None = None


class OpenStream(msgspec.Struct, frozen=True):
    """Send and read only the head -> Head."""

    request: Request
    deadline: float | None = None


class ReadChunk(msgspec.Struct, frozen=True):
    """Next bytes of an open body -> bytes, or None at its end."""

    handle: Any
    deadline: float | None = None


class CloseStream(msgspec.Struct, frozen=True):
    """Release the connection of an open body, read or not."""

    handle: Any


class Sleep(msgspec.Struct, frozen=True):
    seconds: float
    deadline: float | None = None


class Blocking(msgspec.Struct, frozen=True):
    """Run a function that touches disk -> its result. The async driver moves it to a thread."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Guarded(msgspec.Struct, frozen=True):
    """Run a flow while holding the client's lock of that name -> its result."""

    name: str
    flow: Any


class Invoke(msgspec.Struct, frozen=True):
    """Run a tool handler for at most `seconds` -> what it returned. Raises TimeoutError."""

    handler: Callable[..., Any]
    arguments: dict[str, Any]
    context: Any
    seconds: float
