"""What running and finished calls leave behind, written in groups: a call is durable before its provider is asked.

How a call ended is never waited for. A store that is busy holds calls up for a moment, not for ever: see `recorded`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from crocevia.core.errors import GatewayError, Reason
from crocevia.storage.records import FallbackCall, OpenedCall, SettledCall, fall_back, open_calls, settle_calls

if TYPE_CHECKING:
    from crocevia.storage.database import Transaction


GATHER_SECONDS: Final = 0.025
OPENING_SECONDS: Final = 0.005
"""Between two groups of calls that wait to be durable; one that comes after a pause goes at once."""

PATIENCE_SECONDS: Final = 1.0
"""How long a call waits for a store that is busy: locked by another process, or on a disk that stalls."""

Durable: TypeAlias = asyncio.Future[Exception | None]
"""Done once a call's record is durable; its result says why it never will be, or not yet (TimeoutError)."""


class RecordStore(Protocol):
    """The part of `storage.database.Database` that is needed here."""

    failing_since: float | None

    def post(self, work: Callable[[Transaction], object]) -> None: ...
    def submit(
        self, work: Callable[[Transaction], Any], done: Callable[[Any, Exception | None], None], *, kept: bool
    ) -> None: ...


class _Opening(NamedTuple):
    record: OpenedCall | FallbackCall
    durable: Durable
    until: float
    """When the call has waited long enough, by the loop's clock."""


class CallRecords:
    """Queues records for the store. What comes within `gather` seconds is one unit of work: one wake-up of the
    writer's thread, which would otherwise fight the event loop for the interpreter at every call, and one commit, which
    costs as much as many rows. Calls that wait are one group per `opening` seconds and one at a time.

    late: how many calls waited longer than `patience` seconds; their rows are written as soon as the store takes them.
    """

    __slots__ = (
        "_gather",
        "_impatient",
        "_in_flight",
        "_latest",
        "_opening",
        "_opening_timer",
        "_patience",
        "_spacing",
        "_store",
        "_timer",
        "_waiting",
        "late",
    )

    def __init__(
        self,
        store: RecordStore,
        *,
        gather: float = GATHER_SECONDS,
        opening: float = OPENING_SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.late = 0
        self._store = store
        self._patience = patience
        self._gather = gather
        self._spacing = opening
        self._opening: list[_Opening] = []
        self._opening_timer: asyncio.TimerHandle | None = None
        self._impatient: deque[_Opening] = deque()  # in order; a timer is set for the first while there is one
        self._in_flight = 0  # groups of calls that are being made durable
        self._latest = float("-inf")  # when such a group was handed over
        self._waiting: list[SettledCall] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def failing(self) -> bool:
        """Whether the store takes nothing at the moment. What is queued waits for it."""
        return self._store.failing_since is not None

    def open(self, record: OpenedCall | FallbackCall) -> Durable:
        """Queue a call's record. Await `recorded` of what is returned before its provider is asked."""
        loop = asyncio.get_running_loop()
        durable: Durable = loop.create_future()
        opening = _Opening(record, durable, loop.time() + self._patience)
        self._opening.append(opening)
        if not self._impatient:
            loop.call_at(opening.until, self._run_out)
        self._impatient.append(opening)
        if self._opening_timer is None:
            self._hasten()
        return durable

    def put(self, record: SettledCall) -> None:
        """Queue how a call ended; it is written after its opening, and retried until it is."""
        self._waiting.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._gather, self.flush)

    def flush(self) -> None:
        """Hand what is queued to the store now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._open_group()
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._store.post(lambda tx: settle_calls(tx, waiting))

    def _run_out(self) -> None:
        """One timer for all, moved only when it rings."""
        loop, waiting = asyncio.get_running_loop(), self._impatient
        while waiting and (waiting[0].durable.done() or waiting[0].until <= loop.time()):
            durable = waiting.popleft().durable
            if durable.done():
                continue
            if self.failing:  # it will not be taken soon, and no call is admitted meanwhile
                durable.set_result(GatewayError(Reason.UNAVAILABLE, retry_after=1))
            else:
                self.late += 1
                durable.set_result(TimeoutError())
        if waiting:
            loop.call_at(waiting[0].until, self._run_out)

    def _hasten(self) -> None:
        if self._opening and not self._in_flight and self._opening_timer is None:
            loop = asyncio.get_running_loop()
            due = max(loop.time(), self._latest + self._spacing)
            self._opening_timer = loop.call_at(due, self._open_group)

    def _open_group(self) -> None:
        if self._opening_timer is not None:
            self._opening_timer.cancel()
            self._opening_timer = None
        group, self._opening = self._opening, []
        if group:
            self._latest = asyncio.get_running_loop().time()
            self._submit(group)

    def _submit(self, group: list[_Opening]) -> None:
        def done(_: Any, error: Exception | None) -> None:
            self._in_flight -= 1
            if error is not None and len(group) > 1 and not isinstance(error, GatewayError):
                for one in group:  # the fault of one of them, which takes no other along
                    self._submit([one])
            else:
                _tell(group, error)
            self._hasten()

        try:
            # Kept: how a call ended may be queued behind it already.
            self._store.submit(lambda tx: _open(tx, [one.record for one in group]), done, kept=True)
        except GatewayError as error:
            _tell(group, error)
        else:
            self._in_flight += 1


async def recorded(durable: Durable, *, must: bool = True) -> bool:
    """Wait until a call's record is durable. False, where it need not be (`must`): the store is busy, and will take it
    later. Raises GatewayError(UNAVAILABLE) if the store does not take it.
    """
    failure = durable.result() if durable.done() else await durable
    if failure is None:
        return True
    if not isinstance(failure, TimeoutError):
        raise failure
    if must:
        raise GatewayError(Reason.UNAVAILABLE, retry_after=1)
    return False


def _open(tx: Transaction, records: list[OpenedCall | FallbackCall]) -> None:
    open_calls(tx, [record for record in records if isinstance(record, OpenedCall)])
    fall_back(tx, [record for record in records if isinstance(record, FallbackCall)])


def _tell(group: list[_Opening], error: Exception | None) -> None:
    for one in group:
        if not one.durable.done():  # its call was cut, or went on
            one.durable.set_result(error)
