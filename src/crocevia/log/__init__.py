"""The event log: append a chat's entries durably, let anyone follow them from a cursor.

values.py    what it gives and takes, and the `Log` protocol that every backend keeps
sqlite.py    SqliteLog; appends.py: what waits at the same time is written together; commands.py, pending.py, trim.py
hub.py, ring.py, reader.py    the newest entries in memory; `follow` and `follow_rows` are readers
coalesce.py  merging deltas before they get a seq
"""

from crocevia.log.coalesce import Coalescer, Piece
from crocevia.log.commands import once
from crocevia.log.hub import Hub, Stalled
from crocevia.log.reader import check_cursor, follow, follow_rows
from crocevia.log.sqlite import SqliteLog, create_log, entries_of
from crocevia.log.values import (
    Appended,
    Bounds,
    Closed,
    Command,
    CommandKind,
    Created,
    Duplicate,
    Effect,
    Fence,
    Fenced,
    Log,
    Outcome,
    Repeated,
    Row,
    TurnOpen,
    Unread,
)

__all__ = [
    "Appended",
    "Bounds",
    "Closed",
    "Coalescer",
    "Command",
    "CommandKind",
    "Created",
    "Duplicate",
    "Effect",
    "Fence",
    "Fenced",
    "Hub",
    "Log",
    "Outcome",
    "Piece",
    "Repeated",
    "Row",
    "SqliteLog",
    "Stalled",
    "TurnOpen",
    "Unread",
    "check_cursor",
    "create_log",
    "entries_of",
    "follow",
    "follow_rows",
    "once",
]
