"""From an address to its operations: a tree of segments, built once from the tables of all doors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from crocevia.asgi.http import Door, Operation
from crocevia.asgi.types import Scope

_MAX_SEGMENT: Final = 1024
_REST: Final = "+}"  # how a parameter ends that takes all segments that follow


class Found(NamedTuple):
    """What is at an address."""

    door: Door | None
    """Whose address it is, also where nothing is; None: nobody's."""
    operations: dict[str, Operation]
    """By method; empty: nothing is there."""
    values: tuple[str, ...] = ()
    """Of the parameters, in order."""


class _Node:
    __slots__ = ("any", "below", "door", "operations", "rest")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.rest: _Node | None = None
        self.operations: dict[str, Operation] = {}
        self.door: Door | None = None


class Router:
    """Raises ValueError if two operations have one method and one address."""

    def __init__(self, doors: Iterable[Door]) -> None:
        self._root = _Node()
        self._exact: dict[bytes, Found] = {}
        self.addresses: set[str] = set()
        for door in doors:
            for prefix in door.prefixes:
                self._node(prefix).door = door
            for operation in door.table:
                for address in (operation.path, *operation.aliases):
                    self._add(door, operation, address)

    def _add(self, door: Door, operation: Operation, address: str) -> None:
        node = self._node(address)
        for method in (operation.method, "HEAD") if operation.head else (operation.method,):
            if node.operations.setdefault(method, operation) is not operation:
                raise ValueError(f"{method} {address} is there twice")
        node.door = door
        self.addresses.add(address)
        if "{" not in address:
            self._exact[address.encode()] = Found(door, node.operations)

    def _node(self, address: str) -> _Node:
        node = self._root
        for segment in address.split("/")[1:]:
            if segment.endswith(_REST):
                node.rest = node = node.rest or _Node()
            elif segment.startswith("{"):
                node.any = node = node.any or _Node()
            else:
                node = node.below.setdefault(segment, _Node())
        return node

    def find(self, scope: Scope) -> Found:
        """What is at this address. A fixed segment wins over a parameter, one segment over all that follow."""
        found = self._exact.get(scope.get("raw_path", b""))
        return found if found is not None else self._walk(segments(scope))

    def _walk(self, path: list[str]) -> Found:
        node, owner = self._root, None
        values: list[str] = []
        for index, segment in enumerate(path):
            owner = node.door or owner
            following = node.below.get(segment)
            if following is None:
                following = node.any if segment else None
                if following is None:
                    return self._tail(node, path[index:], values, owner)
                values.append(segment)
            node = following
        return Found(node.door or owner, node.operations, tuple(values))

    def _tail(self, node: _Node, path: list[str], values: list[str], owner: Door | None) -> Found:
        if node.rest is None:
            return Found(owner, {})
        return Found(node.rest.door, node.rest.operations, (*values, "/".join(path)))


def names(operation: Operation) -> list[str]:
    """The names of an operation's path parameters in order."""
    return [part.strip("{+}") for part in operation.path.split("/") if part.startswith("{")]


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
