"""A server reduced to its log, the turn machine and a scripted world, made to be killed.

Reads one JSON command per line from stdin, writes what one subscriber would see (`E <seq> <body>`) and the answers
to commands (`R <command id> <answer>`) to stdout. `--die POINT` kills it with signal 9 when it gets there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from crocevia.core.messages import ToolCall
from crocevia.core.turn import (
    AgentCard,
    ChatState,
    Plan,
    ToolCard,
    Turn,
    advance,
    hydrate,
    interrupted,
    open_turn,
    recover,
    request_client,
    wants_of,
)
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.ids import derive
from crocevia.core.usage import Usage
from crocevia.log import (
    Coalescer,
    Command,
    Created,
    Duplicate,
    Effect,
    Hub,
    Repeated,
    Row,
    SqliteLog,
    Unread,
    follow,
    once,
)
from crocevia.storage.database import Database

CHAT = "cht_1"
NAMES = ("read", "write", "danger", "email")
PLAN = Plan(
    agents=tuple(
        AgentCard(name=name, model="m", free=True, tools=NAMES, permissions={"danger": "ask"})
        for name in ("main", "researcher", "writer")
    ),
    tools=(
        ToolCard(name="read", kind="knowledge", idempotent=True),
        ToolCard(name="write", kind="server"),
        ToolCard(name="danger", kind="server"),
        ToolCard(name="email", kind="client"),
    ),
)
Script = tuple[str, tuple[tuple[str, dict[str, Any]], ...]]
SCRIPT: dict[str, tuple[Script, ...]] = {
    "main": (
        ("Let me look at this. ", (("write", {"n": 1}), ("email", {"to": "a@b"}), ("read", {}))),
        (
            "",
            (
                ("delegate_task", {"agent": "writer", "task": "write", "mode": "background"}),
                ("delegate_task", {"agent": "researcher", "task": "find"}),
            ),
        ),
        ("Now the risky part. ", (("danger", {"n": 2}),)),
        ("This is the whole answer, word by word. ", ()),
    ),
    "researcher": (("Searching high and low. ", (("write", {"n": 3}),)), ("It was found at last. ", ())),
    "writer": (("A long and winding text that takes its time to be written down. ", ()),),
}


def now() -> int:
    return time.time_ns() // 1_000_000


class Server:
    def __init__(self, log: SqliteLog, ledger: Path, die: Callable[[str], None]) -> None:
        self.log = log
        self.ledger = ledger
        self.die = die
        self.inbox: asyncio.Queue[e.Entry | None] = asyncio.Queue()
        self.begun: dict[w.Want, asyncio.Task[None]] = {}
        self.stopping: set[asyncio.Task[None]] = set()
        self.chat = ChatState()
        self.turn: Turn | None = None
        self.seen = 0
        self.driving: asyncio.Task[None] | None = None

    # --- the driver

    async def start(self) -> None:
        await self.log.create(CHAT)
        fence = await self.log.acquire(CHAT, "local", 60_000, now())
        assert fence is not None
        self.fence = fence
        await self.hydrate()
        if self.turn is not None:
            self.driving = asyncio.ensure_future(self.drive())

    async def hydrate(self) -> None:
        self.chat = hydrate(await self.log.replay(CHAT))
        self.turn, self.seen, self.inbox = self.chat.active, 0, asyncio.Queue()
        if self.turn is None:
            return
        self.die("before_recovery_commit")
        await self.append(recover(self.turn, now()))
        self.die("after_recovery_commit")
        await self.read_commands()

    async def append(self, entries: list[e.Entry]) -> None:
        if not entries:
            return
        for entry in entries:
            self.die("before_" + e.type_of(entry))
        await self.log.append(self.fence, entries, [self.dying_inside(entries)], read_upto=self.seen)
        for entry in entries:
            self.chat.adopt(entry)
            self.die("after_" + e.type_of(entry))

    def dying_inside(self, entries: list[e.Entry]) -> Effect:
        """Dies after the rows are written and before they are committed."""

        def effect(tx: object, done: object) -> None:
            for entry in entries:
                self.die("writing_" + e.type_of(entry))

        return effect

    async def drive(self) -> None:
        while (turn := self.turn) is not None and not turn.ended:
            self.begin_and_stop(turn)
            facts = [await self.inbox.get()]
            while not self.inbox.empty():
                facts.append(self.inbox.get_nowait())
            entries: list[e.Entry] = []
            for fact in facts:
                entries += advance(turn, fact, now())
            try:
                await self.append(entries)
            except Unread:
                for task in self.begun.values():
                    task.cancel()
                self.begun.clear()
                await self.hydrate()

    def begin_and_stop(self, turn: Turn) -> None:
        wants = wants_of(turn)
        for want in [want for want in self.begun if want not in wants]:
            task = self.begun.pop(want)
            task.cancel()
            self.stopping.add(task)
            task.add_done_callback(self.stopping.discard)
        for want in wants:
            if want not in self.begun and (work := getattr(self, type(want).__name__, None)) is not None:
                self.begun[want] = asyncio.ensure_future(work(turn, want))

    def tell(self, fact: e.Entry) -> None:
        self.inbox.put_nowait(fact)

    async def report(self, fact: e.Entry, until: Callable[[], bool]) -> None:
        """Tell, and wait until it is in the journal."""
        self.tell(fact)
        while not until():
            await asyncio.sleep(0.001)

    # --- the world

    def base(self, turn: Turn) -> dict[str, Any]:
        return {"turn": turn.id, "at": now()}

    async def CallModel(self, turn: Turn, want: w.CallModel) -> None:
        instance = turn.instances[want.instance]
        here = {"instance": want.instance, "step": want.step, "attempt": want.attempt}
        await self.report(e.ModelStarted(**self.base(turn), **here), lambda: instance.inflight)
        steps = SCRIPT[instance.agent.name]
        text, calls = steps[min(want.step, len(steps) - 1)]
        try:
            await self.stream(turn, instance.agent, want.separator if text else "", text)
        except asyncio.CancelledError:
            self.tell(interrupted(turn, instance, now()))
            raise
        tools = tuple(
            ToolCall(id=f"p{i}", name=name, arguments=msgspec.Raw(msgspec.json.encode(args)))
            for i, (name, args) in enumerate(calls)
        )
        self.die("answer_received")
        usage = Usage(input_tokens=10, output_tokens=len(text))
        self.tell(e.ModelAnswered(**self.base(turn), **here, text=text, calls=tools, usage=usage, cost_usd=0.0))

    async def stream(self, turn: Turn, agent: e.Speaker, lead: str, text: str) -> None:
        coalescer = Coalescer()
        pieces = []
        for index in range(0, len(text), 3):
            pieces = coalescer.add("text", (lead if index == 0 else "") + text[index : index + 3], time.monotonic())
            for piece in pieces:
                self.tell(e.AgentTextDelta(**self.base(turn), agent=agent, delta=piece.text))
            if not pieces and index > 6:
                self.die(f"tokens_held_{agent.role}")
            await asyncio.sleep(0.004)
        for piece in coalescer.flush():
            self.tell(e.AgentTextDelta(**self.base(turn), agent=agent, delta=piece.text))

    async def RunTool(self, turn: Turn, want: w.RunTool) -> None:
        call = turn.calls[want.call_id]
        self.die("before_side_effect")
        with self.ledger.open("a") as file:
            file.write(f"{call.tool.name} {call.id}\n")
        self.die("after_side_effect")
        await asyncio.sleep(0.005)
        agent = turn.instances[call.instance].agent
        self.tell(e.ToolComplete(**self.base(turn), agent=agent, call_id=call.id, result=msgspec.Raw(b'"done"')))

    async def AskClient(self, turn: Turn, want: w.AskClient) -> None:
        if turn.calls[want.call_id].deadline is None:
            self.tell(request_client(turn, want.call_id, e.Signature("k", "s"), now()))

    async def StartChild(self, turn: Turn, want: w.StartChild) -> None:
        self.tell(e.AgentStarted(**self.base(turn), agent=turn.instances[want.instance].agent))

    async def End(self, turn: Turn, want: w.End) -> None:
        if self.stopping:
            await asyncio.wait(set(self.stopping), timeout=1)
        self.tell(e.TurnClosing(**self.base(turn)))

    # --- requests

    async def read_commands(self) -> None:
        for command in await self.log.commands(CHAT, self.seen):
            self.seen = command.id
            if self.turn is not None and command.turn == self.turn.id:
                self.tell(self.fact_of(self.turn, command))

    def fact_of(self, turn: Turn, command: Command) -> e.Entry:
        here: dict[str, Any] = {"turn": turn.id, "at": command.at}
        text = command.payload.decode()
        if command.kind == "steer":
            return e.TurnSteered(**here, steer_id=f"st_{command.id}", text=text)
        if command.kind == "approval":
            return e.ApprovalResponse(**here, approval_id=command.key, approve=text == "yes")
        if command.kind == "claim":
            call_id, _, holder = command.key.rpartition(":")
            return e.ToolClaimed(**here, call_id=call_id, holder=holder)
        if command.kind == "tool_output":
            agent = turn.instances[turn.calls[command.key].instance].agent
            return e.ToolResult(**here, agent=agent, call_id=command.key, output=text)
        return e.CancelAsked(**here)

    async def message(self, key: str) -> str:
        turn_id = derive("cmpl", now(), CHAT, key, os.getpid())
        self.die("before_message_commit")
        if self.turn is not None and not self.turn.ended:
            found = [c for c in await self.log.commands(CHAT) if (c.kind, c.key) == ("message", key)]
            return found[0].payload.decode() if found else "409"
        turn = self.chat.open()
        entries = open_turn(turn, turn_id, PLAN, f"question {key}", now(), before=self.chat.totals)
        key_used = once(CHAT, "message", key, turn_id.encode(), now())
        try:
            # The turn's own id is the payload, so a repetition is recognised by its key alone.
            await self.log.append(self.fence, entries, [key_used, self.dying_inside(entries)])
        except Repeated as repeated:
            await self.hydrate()
            return repeated.duplicate.earlier.payload.decode()
        self.turn = turn
        self.die("after_message_commit")
        self.driving = asyncio.ensure_future(self.drive())
        return turn_id

    async def command(self, kind: Any, key: str, payload: str) -> str:
        turn_id = self.turn.id if self.turn is not None else "none"
        done = await self.log.put_command(CHAT, kind, key, payload.encode(), now(), turn=turn_id)
        self.die(f"{kind}_accepted")
        await self.read_commands()
        if isinstance(done, Created):
            return "204"
        return ("204" if done.same else "409") if isinstance(done, Duplicate) else f"closed {done.reason}"


def dying(point: str) -> Callable[[str], None]:
    def die(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


class DyingHub(Hub):
    """Dies between a commit and its publication."""

    def __init__(self, die: Callable[[str], None]) -> None:
        super().__init__()
        self._die = die

    def publish(self, chat: str, rows: Any, *, urgent: bool = False) -> None:
        for row in rows:
            self._die("committed_" + e.type_of(e.decode(row.body)))
        super().publish(chat, rows, urgent=urgent)


def line(*parts: str) -> None:
    os.write(1, (" ".join(parts) + "\n").encode())


async def serve(arguments: argparse.Namespace) -> None:
    die = dying(arguments.die)
    hub = DyingHub(die)
    log = SqliteLog(Database(arguments.store), hub)
    server = Server(log, arguments.ledger, die)
    await server.start()

    async def write(data: bytes) -> None:
        os.write(1, data)

    def encode(row: Row) -> bytes:
        return b"E %d %s\n" % (row.seq, row.body)

    reading = asyncio.ensure_future(
        follow(log, hub, CHAT, arguments.after, version=1, encode=encode, ping=lambda: b"P\n", write=write)
    )
    stdin = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(0), "rb", 0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), pipe)
    operations: dict[str, Callable[..., Awaitable[str]]] = {"message": server.message, "command": server.command}
    while request := await stdin.readline():
        number, operation, *rest = msgspec.json.decode(request)
        line("R", str(number), await operations[operation](*rest))
    reading.cancel()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--die", default="")
    asyncio.run(serve(parser.parse_args(arguments)))


def breed() -> None:
    """Fork a server per request on the socket that is stdin: importing everything again costs more than the test."""
    control = socket.socket(fileno=os.dup(0))
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 65_536, 1)
        if not request:
            return
        kind, argument = msgspec.json.decode(request)
        if kind == "wait":
            control.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(argument, 0)[1]))
            continue
        pid = os.fork()
        if pid:
            os.close(descriptors[0])
            control.send(b"%d" % pid)
            continue
        control.close()
        for target in (0, 1):
            os.dup2(descriptors[0], target)
        os.close(descriptors[0])
        try:
            main(argument)
        finally:
            os._exit(0)


if __name__ == "__main__":
    breed()
