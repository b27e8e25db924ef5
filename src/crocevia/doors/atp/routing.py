"""From a path to its operations: a tree of segments, built once from the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from crocevia.asgi.types import Scope
from crocevia.doors.atp.operation import Operation

PREFIX: Final = "/api/v1"
_MAX_SEGMENT: Final = 1024


class Found(NamedTuple):
    """The operations at a path by method, and the values of its parameters in order."""

    operations: dict[str, Operation]
    values: tuple[str, ...]


class _Node:
    __slots__ = ("any", "below", "operations")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.operations: dict[str, Operation] = {}


class Router:
    """Raises ValueError if two operations have one method and one path."""

    def __init__(self, table: Iterable[Operation]) -> None:
        self._root = _Node()
        for operation in table:
            node = self._root
            for segment in full(operation.path).split("/")[1:]:
                if segment.startswith("{"):
                    node.any = node = node.any or _Node()
                else:
                    node = node.below.setdefault(segment, _Node())
            if node.operations.setdefault(operation.method, operation) is not operation:
                raise ValueError(f"{operation.method} {operation.path} is there twice")

    def find(self, scope: Scope) -> Found | None:
        """What is at this path; None if nothing. A fixed segment wins over a parameter."""
        node, values = self._root, []
        for segment in segments(scope):
            fixed = node.below.get(segment)
            if fixed is None:
                if node.any is None or not segment:
                    return None
                values.append(segment)
                fixed = node.any
            node = fixed
        return Found(node.operations, tuple(values)) if node.operations else None


def names(operation: Operation) -> list[str]:
    """The names of an operation's path parameters in order."""
    return [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]


def segments(scope: Scope) -> list[str]:
    """The path's segments, decoded one by one, so that an encoded slash stays inside its segment.

    One that is too long or not UTF-8 becomes the empty one, which is at no address.
    """
    raw = scope.get("raw_path")
    if raw is None:
        found: list[str] = scope["path"].split("/")[1:]
        return found
    return [_decoded(part) for part in raw.split(b"?", 1)[0].split(b"/")[1:]]


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode() if len(part) <= _MAX_SEGMENT * 3 else ""
    except UnicodeDecodeError:
        return ""


def full(path: str) -> str:
    """A path of the table from the origin on."""
    return path if path.startswith("/.well-known/") else PREFIX + path
