"""A few things by key, in memory; the one unused for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, str]


class LruCache(Generic[T]):
    """most: how many are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Key, T] = OrderedDict()

    def get(self, key: Key) -> T | None:
        """What was put there, if it still is."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Key, value: T) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._kept.pop(key, None)
