"""What the log gives and takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from crocevia.core.turn.entries import Entry, decode
from crocevia.storage.database import Transaction

CommandKind = Literal["message", "cancel", "steer", "approval", "tool_output", "claim"]


class Row(NamedTuple):
    """A public entry as it is stored."""

    seq: int
    body: bytes
    """The neutral JSON."""
    known: Entry | None = None
    """The entry, where the row was appended here; None: read from the log."""

    @property
    def entry(self) -> Entry:
        """Raises entries.Unreadable."""
        return decode(self.body) if self.known is None else self.known


class Appended(NamedTuple):
    """Where the public entries of one append stand."""

    first: int
    last: int
    """Less than `first`: there were none."""
    epoch: str


class Bounds(NamedTuple):
    """What there is of a chat's log."""

    epoch: str
    first: int
    """The oldest seq that is kept."""
    head: int
    """The newest seq; 0: nothing yet."""
    turn: str | None
    """The open one."""


class Fence(NamedTuple):
    """The right to append to a chat, until another node acquires it."""

    chat: str
    token: int
    node: str
    log: int
    """The chat's own number; it never changes."""
    epoch: str
    """Of the chat's log; it never changes."""


class Command(Struct, frozen=True):
    """Something said to a chat from outside."""

    id: int
    """Grows in the order of arrival."""
    turn: str | None
    kind: CommandKind
    key: str
    """Once per kind and chat."""
    payload: bytes
    at: int
    """ms UTC."""


class Created(Struct, frozen=True):
    """It is written and will be done."""

    id: int


class Duplicate(Struct, frozen=True):
    """Its key was used before."""

    same: bool
    """By the same request, so its answer can be given again."""
    earlier: Command


class Closed(Struct, frozen=True):
    """Too late, or about nothing that is open: it is not written."""

    reason: Literal["turn_closed", "unknown", "resolved", "expired"]


Outcome: TypeAlias = Created | Duplicate | Closed
Effect: TypeAlias = Callable[[Transaction, Appended], None]


class Fenced(Exception):
    """Another node owns this chat now. Nothing was written; discard what is in memory of it."""


class TurnOpen(Exception):
    """The chat already has an open turn. Nothing was written."""


class Unread(Exception):
    """A command was accepted that this owner has not read: the turn must not end yet. Nothing was written."""


class Repeated(Exception):
    """The key of `once` was used before. Nothing was written."""

    def __init__(self, duplicate: Duplicate) -> None:
        super().__init__("repeated")
        self.duplicate = duplicate


class Log(Protocol):
    """One chat, one order, one owner. Every backend passes tests/log/conformance.py."""

    async def create(self, chat: str) -> Bounds:
        """Begin a chat's log. Calling it again changes nothing."""
        ...

    async def append(
        self, fence: Fence, entries: Sequence[Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended:
        """Write `entries` and run `effects` in one transaction; durable and visible to readers on return.

        read_upto: the id of the newest command the owner has taken in; while a newer one waits, nothing that would
        leave it undone is written: no terminal over a cancel or a steer, no expiry over an answer. Appends of one chat
        are written in the order of the calls. Raises Fenced, TurnOpen, Unread.
        """
        ...

    async def read(self, chat: str, after: int, limit: int = 500) -> list[Row]:
        """Public entries after seq `after`, in order; fewer than `limit` if they are large, none if there is none."""
        ...

    async def replay(self, chat: str) -> list[Entry]:
        """All entries, private ones too, in order, from the last that replaces all before it. Raises
        entries.Unreadable.
        """
        ...

    async def bounds(self, chat: str) -> Bounds:
        """Raises GatewayError(NOT_FOUND)."""
        ...

    async def acquire(self, chat: str, node: str, ttl_ms: int, now: int) -> Fence | None:
        """Own the chat, or None while another node's lease lasts. The same node may always take over from itself."""
        ...

    async def renew(self, fence: Fence, ttl_ms: int, now: int) -> bool:
        """Prolong the lease; False if it is lost."""
        ...

    async def release(self, fence: Fence) -> None:
        """Give it up. A lost fence releases nothing."""
        ...

    async def put_command(
        self, chat: str, kind: CommandKind, key: str, payload: bytes, at: int, *, turn: str | None = None
    ) -> Outcome:
        """Write a command once. `turn`: it concerns this turn, which must be open. `at`: ms UTC, for deadlines.

        approval, tool_output and claim are about something pending whose id is `key` (for a claim: what precedes
        the last colon); they are Closed unless it is.
        """
        ...

    async def commands(self, chat: str, after: int = 0) -> list[Command]:
        """Commands with an id greater than `after`, in order."""
        ...

    async def find(self, chat: str, kind: CommandKind, key: str) -> Command | None:
        """The command of this kind that used up `key`."""
        ...

    async def open_turns(self) -> list[str]:
        """The chats whose turn has not ended: what to resume at start-up."""
        ...

    async def trim(self, chat: str, before: int) -> int:
        """Forget whole turns that precede seq `before`, never the newest nor an open one; the first seq kept."""
        ...
