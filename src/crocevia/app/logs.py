"""Logs: lines for a person, or one JSON object a line."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

from crocevia.config import LogSettings


def configure(settings: LogSettings, stream: TextIO = sys.stderr) -> Any:
    """Set structlog up for this process and give back our logger."""
    structlog = _import_structlog()
    person = settings.format == "console"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S" if person else "iso", utc=not person),
            structlog.dev.ConsoleRenderer(colors=stream.isatty())
            if person
            else structlog.processors.JSONRenderer(sort_keys=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = _Forward(structlog.get_logger("crocevia"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    return structlog.get_logger("crocevia")


class _Forward(logging.Handler):
    """What libraries report, as one line: the message and the kind of error, never a traceback with values in it."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        fields = {"logger": record.name} | ({"error": kind} if kind else {})
        self._log.log(record.levelno, record.getMessage().strip(), **fields)


def _import_structlog() -> Any:
    # structlog loads rich when it can, for tracebacks that we never print: 3 MB and a tenth of a second.
    hidden = "rich" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]  # the documented way to make an import fail
    try:
        import structlog
    finally:
        if hidden:
            del sys.modules["rich"]
    return structlog
