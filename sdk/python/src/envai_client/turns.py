"""One turn: its text, its end, and the flow that sends a message and follows it to the terminal event."""

from __future__ import annotations

from typing import Any

import msgspec

from .clock import monotonic
from .core import Core, call, learn_capabilities
from .effects import Flow
from .errors import EnvaiError, ProtocolError, RequestTimeoutError
from .events import Event, TerminalEvent, TurnFailedEvent
from .follow import Follower, OnExpired
from .models import ChatMessageAccepted
from .payloads import Usage
from .tools import ToolOutcome

ATOMIC_ATTACH = "atomic_attach"


class TurnFailedError(EnvaiError):
    """Raised by `TurnResult.raise_for_failure`: the turn ended, but not with `turn.completed`."""

    def __init__(self, result: TurnResult) -> None:
        ended = result.terminal_event
        code = ended.data.code if isinstance(ended, TurnFailedEvent) else None
        super().__init__(f"the turn ended with {ended.type}", code=code)
        self.result = result
        self.locate(chat_id=result.chat_id, turn_id=result.turn_id, last_seq=result.last_seq)
        self.tool_outcomes = result.tool_outcomes


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended. `text` is the orchestrator's; `usage` and `cost` are the server's, `cost` None if unknown."""

    chat_id: str
    turn_id: str
    text: str
    terminal_event: TerminalEvent
    usage: Usage
    cost: float | None
    last_seq: int
    epoch: str | None
    tool_outcomes: tuple[ToolOutcome, ...] = ()
    """What became of each client-tool call that was answered here."""

    @property
    def completed(self) -> bool:
        return self.terminal_event.type == "turn.completed"

    def raise_for_failure(self) -> TurnResult:
        """This result, or TurnFailedError if the turn was cancelled or failed."""
        if not self.completed:
            raise TurnFailedError(self)
        return self

    def __repr__(self) -> str:
        return f"<TurnResult {self.turn_id} {self.terminal_event.type} last_seq={self.last_seq}>"


class TurnAccumulator:
    """Rebuilds the text of each agent instance of one turn. Reasoning and tools never enter a text."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.terminal: TerminalEvent | None = None
        self.last_seq = 0
        self.orchestrator: str | None = None
        self._partial: dict[str, list[str]] = {}
        self._done: dict[str, str] = {}

    def add(self, event: Event) -> None:
        """Take an event; those of other turns are ignored. Raises ProtocolError on anything after the terminal."""
        if event.turn_id != self.turn_id:
            return
        if self.terminal is not None:
            raise ProtocolError(f"{event.type} after the turn's terminal event", raw=event.raw)
        self.last_seq = max(self.last_seq, event.seq)
        if isinstance(event, TerminalEvent):
            self.terminal = event
        elif event.agent is not None:
            self._add_agent(event, event.agent.instance_id)
            if event.agent.role == "orchestrator" and self.orchestrator is None:
                self.orchestrator = event.agent.instance_id

    def _add_agent(self, event: Event, instance: str) -> None:
        if event.type == "agent.text.delta":
            self._partial.setdefault(instance, []).append(event.data.delta)
        elif event.type == "agent.text.done":
            self._done[instance] = event.data.text
            self._partial.pop(instance, None)
        elif event.type == "agent.text.reset":
            self._partial.pop(instance, None)

    def text_of(self, instance_id: str) -> str:
        """The text of one instance: what it is writing now, else what it finished last."""
        if instance_id in self._partial:
            return "".join(self._partial[instance_id])
        return self._done.get(instance_id, "")

    @property
    def text(self) -> str:
        """The user-facing text: the orchestrator's."""
        return self.text_of(self.orchestrator) if self.orchestrator is not None else ""

    def result(self, chat_id: str, epoch: str | None = None, tool_outcomes: tuple[ToolOutcome, ...] = ()) -> TurnResult:
        """The result of a turn that has ended. Raises ProtocolError if it has not."""
        if self.terminal is None:
            raise ProtocolError("the turn has no terminal event yet")
        return TurnResult(
            chat_id=chat_id,
            turn_id=self.turn_id,
            text=self.text,
            terminal_event=self.terminal,
            usage=self.terminal.data.usage,
            cost=self.terminal.data.cost,
            last_seq=self.last_seq,
            epoch=epoch,
            tool_outcomes=tool_outcomes,
        )


class TurnFlow:
    """Attach, send, follow. `next` gives the turn's events and None after its terminal event."""

    def __init__(
        self,
        core: Core,
        chat_id: str,
        message: dict[str, Any],
        *,
        after: int = 0,
        epoch: str | None = None,
        on_expired: OnExpired = "raise",
        deadline: float | None = None,
    ) -> None:
        self.core = core
        self.message = message
        self.deadline = deadline
        self.follower = Follower(
            core, chat_id, after=after, epoch=epoch, on_expired=on_expired, include_pings=True, deadline=deadline
        )
        self.turn: TurnAccumulator | None = None
        self._first_seen: dict[str, int] = {}

    @property
    def chat_id(self) -> str:
        return self.follower.chat_id

    def poll(self) -> Event | None:
        """The turn's next event among the bytes already read."""
        while self.turn is not None and self.turn.terminal is None:
            event = self.follower.poll()
            if event is None:
                return None
            if event.turn_id == self.turn.turn_id:
                self.turn.add(event)
                return event
        return None

    def next(self) -> Flow[Event | None]:
        if self.turn is None:
            yield from self.start()
        while self.turn is not None and self.turn.terminal is None:
            event = self.poll()
            if event is not None:
                return event
            yield from self.follower.advance()
        self.follower.settle()
        yield from self.follower.close()
        return None

    def start(self) -> Flow[str]:
        """Attach and send the message, once -> the turn's id. Never retried: an unclear outcome is the caller's."""
        capabilities = yield from learn_capabilities(self.core, self.deadline)
        if ATOMIC_ATTACH in capabilities.features and "idempotency_key" not in self.message:
            yield from self.follower.connect()
        else:
            yield from self._await_ping()
        left = None if self.deadline is None else max(0.001, self.deadline - monotonic())
        given = {"chat_id": self.chat_id, **self.message}
        accepted: ChatMessageAccepted = yield from call(self.core, "sendChatMessage", given, ChatMessageAccepted, left)
        self.turn = TurnAccumulator(accepted.turn_id)
        yield from self._rewind(accepted.turn_id)
        return accepted.turn_id

    def _await_ping(self) -> Flow[None]:
        """Read the replay until the ping that proves the live subscription. What it replays is of earlier turns."""
        bound = monotonic() + self.core.options.timeouts.attach
        outer = self.follower.deadline
        self.follower.deadline = bound if outer is None else min(bound, outer)
        try:
            while not (event := (yield from self.follower.next())).is_ping:
                self._first_seen.setdefault(event.turn_id or "", event.seq)
        except RequestTimeoutError:
            raise RequestTimeoutError("no ping confirmed the live subscription: nothing was sent", sent=False) from None
        finally:
            self.follower.deadline = outer
        self.follower.settle()

    def _rewind(self, turn_id: str) -> Flow[None]:
        """A repeated idempotency key names a turn that the replay already showed: read it again from its start."""
        first = self._first_seen.get(turn_id)
        if first is None:
            return
        yield from self.follower.rewind(first - 1)

    def result(self, tool_outcomes: tuple[ToolOutcome, ...] = ()) -> TurnResult:
        """The ended turn's result. Raises ProtocolError before that."""
        if self.turn is None:
            raise ProtocolError("the turn has not begun")
        return self.turn.result(self.chat_id, self.follower.cursor.epoch, tool_outcomes)

    def close(self) -> Flow[None]:
        yield from self.follower.close()
