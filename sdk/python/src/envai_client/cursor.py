"""Where a reader is in a chat's log: duplicates, gaps, epochs and restarted numbering. Pure state, no I/O."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from enum import Enum

from .errors import CursorExpiredError, ReplayGapError
from .events import Event, moment

REMEMBERED = 1024


class Verdict(Enum):
    DELIVER = "deliver"
    DROP = "drop"
    REPLAY = "replay"


class Cursor:
    """Judges each event against the last one delivered.

    `last_seq` moves only in `settle`, after the application has taken the event. `connected` starts a connection.
    """

    __slots__ = ("_ids", "_moment", "_replaying", "chat_id", "epoch", "last_seq", "live")

    def __init__(self, chat_id: str, last_seq: int = 0, epoch: str | None = None) -> None:
        if last_seq < 0:
            raise ValueError("after must not be negative")
        self.chat_id = chat_id
        self.last_seq = last_seq
        self.epoch = epoch
        self.live = False
        self._replaying = False
        self._ids: OrderedDict[int, str] = OrderedDict()
        self._moment: datetime | None = None

    def connected(self, epoch: str | None = None) -> None:
        """A new connection answered. Raises CursorExpiredError if it serves another epoch."""
        self.live = False
        self._see_epoch(epoch)

    def judge(self, event: Event) -> Verdict:
        """What to do with an event of this chat. Raises ReplayGapError and CursorExpiredError."""
        self._see_epoch(event.epoch)
        if event.is_ping:
            self.live = True
            self._moment = later(self._moment, event.ts)
            return Verdict.DELIVER
        if event.seq <= self.last_seq:
            self._check_restart(event)
            return Verdict.DROP
        if event.seq == self.last_seq + 1:
            self._replaying = False
            return Verdict.DELIVER
        if self._replaying:
            first, last = self.last_seq + 1, event.seq - 1
            raise ReplayGapError(chat_id=self.chat_id, missing_from=first, missing_to=last, last_seq=self.last_seq)
        self._replaying = True
        return Verdict.REPLAY

    def settle(self, event: Event) -> None:
        """The application has taken `event`."""
        if event.is_ping:
            return
        self.last_seq = event.seq
        self._moment = later(self._moment, event.ts)
        self._ids[event.seq] = event.id
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)

    def restart(self, epoch: str | None = None) -> None:
        """Begin again at zero, as another log: only ever on the caller's explicit policy."""
        self.last_seq = 0
        self.epoch = epoch
        self.live = False
        self._replaying = False
        self._ids.clear()
        self._moment = None

    def _see_epoch(self, epoch: str | None) -> None:
        if epoch is None:
            return
        if self.epoch is not None and epoch != self.epoch:
            raise CursorExpiredError(reason="epoch_changed", last_seq=self.last_seq, epoch=epoch)
        self.epoch = epoch

    def _check_restart(self, event: Event) -> None:
        """An old number on a new event means the numbering began again (an epoch nobody announced).

        A duplicate has an id we delivered, or is older than what we know by the server's own clock. Anything else is
        a restart: dropping it as a duplicate would wait for ever.
        """
        if self._ids.get(event.seq) == event.id or self._moment is None:
            return
        if moment(event.ts) > self._moment:
            raise CursorExpiredError(reason="sequence_reset", last_seq=self.last_seq, epoch=self.epoch)


def later(known: datetime | None, ts: str) -> datetime:
    new = moment(ts)
    return new if known is None or new > known else known
