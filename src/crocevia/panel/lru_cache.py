"""A small cache: the least recently used item goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, str]


class LruCache(Generic[T]):
    """Holds at most `most` items."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Key, T] = OrderedDict()

    def get(self, key: Key) -> T | None:
        """The item, if it is still there."""
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: Key, value: T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._most:
            self._items.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._items.pop(key, None)
