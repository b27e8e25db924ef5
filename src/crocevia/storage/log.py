"""The event log's tables. The log itself writes them with plain SQL on the writer's connection.

One order for everything: an entry's place is (`seq`, `sub`). A public entry has its own `seq` and `sub` 0; private
entries follow the public one they came after, as `sub` 1, 2, 3 …. So one index serves replay and cursor alike.
The bodies lie in the order of their arrival: a commit that many chats share ends in a few pages, not in one per chat.
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from crocevia.storage.metadata import metadata

# epoch: fixed at birth, another only if the log really lost something. first_seq: the oldest one kept.
# fence: grows with every owner; `lease_until` (ms UTC) says how long `owner` is undisputed. turn: the open one.
chat_logs = Table(
    "chat_logs",
    metadata,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("chat", Text, nullable=False, unique=True),
    Column("epoch", Text, nullable=False),
    Column("first_seq", Integer, nullable=False, server_default=text("1")),
    Column("fence", Integer, nullable=False, server_default=text("0")),
    Column("owner", Text),
    Column("lease_until", Integer),
    Column("turn", Text),
    Index("ix_chat_logs_turn", "turn", sqlite_where=text("turn is not null")),
)

journal = Table(
    "journal",
    metadata,
    Column("pos", Integer, primary_key=True, nullable=False),
    Column("log", Integer, ForeignKey("chat_logs.id", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("sub", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "log", "seq", "sub", unique=True),
)

# What came in from outside for a chat's owner: message, cancel, steer, approval, tool_output, claim.
# `key` is unique for its kind: the first insert decides the answer. `digest` tells a repetition from a conflict.
commands = Table(
    "commands",
    metadata,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("log", Integer, ForeignKey("chat_logs.id", ondelete="CASCADE"), nullable=False),
    Column("turn", Text),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("at", Integer, nullable=False),
    Index(None, "log", "kind", "key", unique=True),
    Index("ix_commands_log_id", "log", "id"),
    sqlite_autoincrement=True,
)

# What a turn waits for from outside: client tools and approvals. `deadline`: ms UTC. Gone with the turn's terminal.
pending = Table(
    "pending",
    metadata,
    Column("log", Integer, ForeignKey("chat_logs.id", ondelete="CASCADE"), primary_key=True, nullable=False),
    Column("id", Text, primary_key=True, nullable=False),
    Column("turn", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("deadline", Integer, nullable=False),
    Column("digest", Text),
    sqlite_with_rowid=False,
)
