"""What doors see of turns: messages, what is said to a turn under way, a chat's stream and its context."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.turn import open_turn
from crocevia.core.turn.files import placeholders
from crocevia.core.turn.ids import derive
from crocevia.log import (
    Bounds,
    Closed,
    Created,
    Duplicate,
    Hub,
    Log,
    Repeated,
    Row,
    check_cursor,
    follow,
    follow_rows,
    once,
)
from crocevia.log.values import CommandKind
from crocevia.runtime.control import chats
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.workspace import WorkspaceFiles
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.turns import attachments as attached
from crocevia.runtime.turns import contexts
from crocevia.runtime.turns.chat_sessions import ChatSession, now_ms
from crocevia.runtime.turns.commands import ApprovalDecision, ClientToolOutput, SteerCommand
from crocevia.runtime.turns.run_service import RunService
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.supervisor import OnFault, Supervisor
from crocevia.runtime.turns.tools import Toolbox
from crocevia.storage import chats as chat_rows
from crocevia.storage.chats import Chat

LoadManifests: TypeAlias = Callable[[], Awaitable[Sequence[Raw]]]
_PAGE: Final = 500  # entries
_MAX_RESUMING: Final = 16  # turns that are resumed at the same time


class Turns:
    """One per server; belongs to one event loop."""

    def __init__(
        self,
        control: Control,
        gateway: Gateway,
        log: Log,
        hub: Hub,
        toolbox: Toolbox,
        files: WorkspaceFiles,
        *,
        settings: TurnSettings | None = None,
        on_fault: OnFault = lambda where, error: None,
    ) -> None:
        self.closed = asyncio.Event()
        """Set when streams must end, whatever their readers still lack."""
        self._control = control
        self._gateway = gateway
        self._log = log
        self._hub = hub
        self._on_fault = on_fault
        self._supervisor = Supervisor(control, gateway, log, toolbox, files, settings or TurnSettings(), on_fault)
        self._sessions = self._supervisor.sessions
        self.runs = RunService(self._supervisor)
        self._draining = False

    # --- a server's life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Resume every turn that an earlier process left open; they are driven when this returns."""
        slots = asyncio.Semaphore(_MAX_RESUMING)

        async def resume(chat: Chat) -> None:
            async with slots:
                try:
                    await self._supervisor.resume(chat)
                except GatewayError as error:  # only this chat is affected
                    self._on_fault("resume", error)

        found = [await self._chat_row(chat_id) for chat_id in await self._log.open_turns()]
        await asyncio.gather(*(resume(chat) for chat in found if chat is not None))

    def drain(self, grace: float) -> None:
        """Open no more turns. A chat's streams end when no turn of it is under way and their readers have all there
        is; after `grace` seconds in any case.
        """
        if self._draining:
            return
        self._draining = True
        asyncio.get_running_loop().call_later(grace, self.closed.set)
        self._supervisor.on_idle = self._hub.wake
        self._hub.end_streams(lambda chat_id: chat_id not in self._supervisor.drivers)

    def look_again(self) -> None:
        """Another process may have said something to a turn: have every driver read."""
        for driver in self._supervisor.drivers.values():
            driver.look_again()

    async def close(self) -> None:
        """Stop driving; open turns go on in the next process."""
        self.closed.set()
        await self.runs.close()
        await self._supervisor.close()

    @property
    def is_busy(self) -> bool:
        """A turn or a run is under way, be it that it waits for somebody outside."""
        return bool(self._supervisor.drivers) or self.runs.is_busy

    # --- a message -------------------------------------------------------------------------------------------

    async def send(
        self,
        user_id: str,
        chat_id: str,
        message: str,
        *,
        key: str | None = None,
        wire: int = 3,
        attachment_ids: Sequence[str] = (),
        load_manifests: LoadManifests | None = None,
    ) -> str:
        """Open a turn; its id.

        key: of this request; sent again it gives the same turn, whatever became of its files. load_manifests: gives
        what the journal keeps of the files; called only when a turn is opened, and what it raises is raised here.

        Raises GatewayError: NOT_FOUND, DRAINING, UNAVAILABLE (`context_unavailable`), CONFLICT (`turn_in_progress`,
        `idempotency_conflict`, `team_unavailable`).
        """
        self._gateway.check_draining()
        chat = await chats.find(self._control, user_id, chat_id)
        # Shielded: a caller that leaves must not leave behind a turn that nobody drives.
        payload = msgspec.json.encode([message, *attachment_ids])
        return await asyncio.shield(self._send(chat, message, payload, key, wire, load_manifests))

    async def _send(
        self, chat: Chat, message: str, payload: bytes, key: str | None, wire: int, load_manifests: LoadManifests | None
    ) -> str:
        async with self._sessions.lock(chat.id):
            session = await self._sessions.enter(chat)
            earlier = None if key is None else await self._log.find(chat.id, "message", key)
            if earlier is not None:
                return _same_turn(chat.id, Duplicate(earlier.payload == payload, earlier))
            contexts.check_idle(session)
            attachments = () if load_manifests is None else tuple(await load_manifests())
            return await self._open(session, message, payload, key, wire, attachments)

    async def _open(
        self,
        session: ChatSession,
        message: str,
        payload: bytes,
        key: str | None,
        wire: int,
        attachments: tuple[Raw, ...],
    ) -> str:
        session.set_clock()
        chat, at = session.chat, session.clock.now()
        setup = await self._supervisor.team_setup(chat, title=session.title is None)
        if attachments:
            ids = [part.data.decode() for part in placeholders(attachments)]
            await attached.check(self._control, self._supervisor.gateway, chat.user_id, setup.plan.agents[0].model, ids)
        turn_id = _turn_id(chat.id, key, at)
        turn, before = session.fold.open(), session.fold.totals
        try:
            entries = open_turn(
                turn, turn_id, setup.plan, message, at, before=before, wire=wire, attachments=attachments
            )
            used = [] if key is None else [once(chat.id, "message", key, payload, at)]
            await self._supervisor.begin(session, setup, entries, used)
        except Repeated as repeated:
            self._sessions.forget(chat.id)
            return _same_turn(chat.id, repeated.duplicate)
        except BaseException:
            self._sessions.forget(chat.id)  # the fold may be ahead of the journal
            raise
        return turn_id

    # --- to a turn under way ---------------------------------------------------------------------------------

    async def cancel(self, user_id: str, chat_id: str) -> str:
        """Stop the turn under way; its id. Raises GatewayError: NOT_FOUND, CONFLICT (`no_turn_in_progress`)."""
        turn_id = await self._turn_under_way(user_id, chat_id)
        outcome = await self._command(chat_id, turn_id, "cancel", turn_id, b"user")
        if isinstance(outcome, Closed):
            raise _no_turn()
        return turn_id

    async def steer(self, user_id: str, chat_id: str, text: str, target: str | None = None) -> str:
        """Say something to an agent of the turn under way; the turn's id. target None: the orchestrator.

        Raises GatewayError: NOT_FOUND, CONFLICT (`no_turn_in_progress`), INVALID_REQUEST for a target that is not at
        work.
        """
        turn_id = await self._turn_under_way(user_id, chat_id)
        driver = self._supervisor.drivers.get(chat_id)
        if target is not None and driver is not None:
            instance = driver.turn.instances.get(target.lower())
            if instance is None or instance.done:
                raise GatewayError(Reason.AGENT_NOT_RUNNING, param="target_agent_id")
            target = instance.id
        payload = msgspec.json.encode(SteerCommand(text=text, target=target))
        if isinstance(await self._command(chat_id, turn_id, "steer", new_id("st"), payload), Closed):
            raise _no_turn()
        return turn_id

    async def submit_output(self, user_id: str, chat_id: str, call_id: str, output: str, is_error: bool) -> None:
        """The result of a client tool. Raises GatewayError: NOT_FOUND, CONFLICT (`tool_already_resolved`, …)."""
        payload = msgspec.json.encode(ClientToolOutput(output=output, is_error=is_error))
        await self._answer(user_id, chat_id, "tool_output", call_id, payload, _OUTPUT_REFUSALS)

    async def claim(self, user_id: str, chat_id: str, call_id: str, holder: str) -> None:
        """Reserve a client tool's call for one runner; repeating the same claim succeeds.

        Raises GatewayError: NOT_FOUND, CONFLICT (`tool_claimed`, `tool_already_resolved`, `tool_timed_out`).
        """
        await self._answer(user_id, chat_id, "claim", f"{call_id}:{holder}", b"", _CLAIM_REFUSALS, again=True)

    async def decide(self, user_id: str, chat_id: str, approval_id: str, approve: bool, reason: str) -> None:
        """Answer an approval. Raises GatewayError: NOT_FOUND, CONFLICT (`approval_already_resolved`, …)."""
        payload = msgspec.json.encode(ApprovalDecision(approve=approve, reason=reason))
        await self._answer(user_id, chat_id, "approval", approval_id, payload, _APPROVAL_REFUSALS)

    async def _answer(
        self,
        user_id: str,
        chat_id: str,
        kind: CommandKind,
        key: str,
        payload: bytes,
        refusals: dict[str, Reason],
        *,
        again: bool = False,
    ) -> None:
        await chats.find(self._control, user_id, chat_id)
        turn_id = (await self._sessions.bounds(chat_id)).turn
        if turn_id is None:
            raise GatewayError(refusals["unknown"])
        outcome = await self._command(chat_id, turn_id, kind, key, payload)
        if isinstance(outcome, Created) or (again and isinstance(outcome, Duplicate) and outcome.earlier.key == key):
            return
        reason = "duplicate" if isinstance(outcome, Duplicate) else outcome.reason
        if reason in ("unknown", "turn_closed"):
            raise GatewayError(refusals["unknown"])
        raise GatewayError(refusals[reason])

    async def _command(
        self, chat_id: str, turn_id: str, kind: CommandKind, key: str, payload: bytes
    ) -> Created | Duplicate | Closed:
        driver = self._supervisor.drivers.get(chat_id)
        at = now_ms() if driver is None else driver.now()
        outcome = await self._log.put_command(chat_id, kind, key, payload, at, turn=turn_id)
        driver = self._supervisor.drivers.get(chat_id)
        if driver is not None and isinstance(outcome, Created):
            await driver.read_commands()
        return outcome

    async def _turn_under_way(self, user_id: str, chat_id: str) -> str:
        await chats.find(self._control, user_id, chat_id)
        turn_id = (await self._sessions.bounds(chat_id)).turn
        if turn_id is None:
            raise _no_turn()
        return turn_id

    # --- a stream --------------------------------------------------------------------------------------------

    async def events(self, user_id: str, chat_id: str, after: int, epoch: str | None = None) -> Feed:
        """Raises GatewayError: NOT_FOUND, CONFLICT (`cursor_expired`)."""
        await chats.find(self._control, user_id, chat_id)
        bounds = await self._sessions.bounds(chat_id)
        check_cursor(bounds, after, epoch)
        return Feed(self._log, self._hub, chat_id, after, bounds)

    # --- a chat's context ------------------------------------------------------------------------------------

    async def fork(self, user_id: str, source_id: str, destination_id: str) -> None:
        """See `contexts.fork`."""
        await contexts.fork(self._supervisor, user_id, source_id, destination_id)

    async def restore(self, user_id: str, chat_id: str, items: Sequence[tuple[str, str]]) -> None:
        """See `contexts.restore`."""
        await contexts.restore(self._supervisor, user_id, chat_id, items)

    async def _chat_row(self, chat_id: str) -> Chat | None:
        return await self._control.database.read(lambda tx: chat_rows.find_any(tx, chat_id))


class Feed:
    """A chat's events from a cursor on, for one reader."""

    def __init__(self, log: Log, hub: Hub, chat_id: str, after: int, bounds: Bounds) -> None:
        self.bounds = bounds
        """What there was when it was opened."""
        self._log = log
        self._hub = hub
        self._chat_id = chat_id
        self._after = after

    async def run(
        self,
        version: Hashable,
        encode: Callable[[Row], bytes],
        ping: Callable[[], bytes],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """Write what there is and what comes; cancel to stop. See `log.follow`."""
        await follow(
            self._log,
            self._hub,
            self._chat_id,
            self._after,
            version=version,
            encode=encode,
            ping=ping,
            write=write,
        )

    def rows(self) -> AsyncGenerator[list[Row], None]:
        """What there is and what comes; close it to stop. An empty list: it has been quiet for long."""
        return follow_rows(self._log, self._hub, self._chat_id, self._after)

    async def rest(self) -> list[Row]:
        """Everything up to the head of this moment."""
        rows: list[Row] = []
        cursor = self._after
        while cursor < self.bounds.head:
            page = await self._log.read(self._chat_id, cursor, _PAGE)
            if not page:
                break
            rows += page
            cursor = page[-1].seq
        return [row for row in rows if row.seq <= self.bounds.head]


_OUTPUT_REFUSALS: Final = {
    "unknown": Reason.TOOL_CALL_MISSING,
    "resolved": Reason.TOOL_ALREADY_RESOLVED,
    "duplicate": Reason.TOOL_ALREADY_RESOLVED,
    "expired": Reason.TOOL_TIMED_OUT,
}
_CLAIM_REFUSALS: Final = _OUTPUT_REFUSALS | {"duplicate": Reason.TOOL_CLAIMED}
_APPROVAL_REFUSALS: Final = {
    "unknown": Reason.APPROVAL_MISSING,
    "resolved": Reason.APPROVAL_ALREADY_RESOLVED,
    "duplicate": Reason.APPROVAL_ALREADY_RESOLVED,
    "expired": Reason.APPROVAL_EXPIRED,
}


def _turn_id(chat_id: str, key: str | None, at: int) -> str:
    """Derived from the key, so that whoever meets the key again knows the turn that it opened."""
    return new_id("cmpl") if key is None else derive("cmpl", at, chat_id, key)


def _same_turn(chat_id: str, duplicate: Duplicate) -> str:
    if not duplicate.same:
        raise GatewayError(Reason.IDEMPOTENCY_CONFLICT)
    return _turn_id(chat_id, duplicate.earlier.key, duplicate.earlier.at)


def _no_turn() -> GatewayError:
    return GatewayError(Reason.NO_TURN_IN_PROGRESS)
