"""What rooms are handed to log with: structlog's bound logger, as much of it as they use."""

from __future__ import annotations

from typing import Protocol


class Logger(Protocol):
    """An event is a constant sentence; what varies is in the fields, never a secret and never what a user said."""

    def info(self, event: str, /, **fields: object) -> None: ...
    def warning(self, event: str, /, **fields: object) -> None: ...
    def error(self, event: str, /, **fields: object) -> None: ...
