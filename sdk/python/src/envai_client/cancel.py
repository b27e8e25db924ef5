"""Cancelling from anywhere: what sync programs use where async ones cancel a task. Works with both clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CancelToken:
    """Cancelled once, for good, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until cancelled; whether it was within `timeout` seconds."""
        return self._event.wait(timeout)

    @contextmanager
    def calling(self, listener: Callable[[], object]) -> Iterator[None]:
        """Have `listener` called on cancellation while the block runs, at once if that has happened."""
        with self._lock:
            self._listeners.append(listener)
            already = self._event.is_set()
        if already:
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
