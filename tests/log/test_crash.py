"""`kill -9` at every point of a turn and at random moments: nothing is lost, doubled, or done twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crocevia.core.turn import entries as e
from crocevia.core.turn import hydrate
from crocevia.log import Hub, SqliteLog
from crocevia.storage.database import Database
from tests.aio import run

from .crash_child import CHAT


class Breeder:
    """Starts servers as forks of one process that has imported them."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        self.process = subprocess.Popen([sys.executable, "-m", "tests.log.crash_child"], stdin=theirs)
        theirs.close()

    def start(self, arguments: list[str], theirs: socket.socket) -> int:
        socket.send_fds(self.control, [json.dumps(["start", arguments]).encode()], [theirs.fileno()])
        return int(self.control.recv(100))

    def wait(self, pid: int) -> int:
        self.control.send(json.dumps(["wait", pid]).encode())
        return int(self.control.recv(100))

    def close(self) -> None:
        self.control.close()
        self.process.wait(10)


@pytest.fixture(scope="module")
def breeder() -> Iterator[Breeder]:
    breeder = Breeder()
    yield breeder
    breeder.close()


@pytest.fixture
def client(store: Path, tmp_path: Path, breeder: Breeder) -> Client:
    return Client(breeder, store, tmp_path)


class Client:
    """A subscriber with its own tool ledger, which survives while the server is killed and started again."""

    def __init__(self, breeder: Breeder, store: Path, tmp_path: Path) -> None:
        self.breeder = breeder
        self.store = store
        self.ledger = tmp_path / "ledger"
        self.ledger.touch()
        self.events: list[bytes] = []
        self.ran: list[str] = []
        self.turn_of: dict[str, str] = {}  # by message key
        self.unanswered: dict[int, list[str]] = {}
        self.numbers = 0
        self.kills = 0
        self.kill_when = ""
        self.busy = ""
        self.pid = 0

    # --- the server's life

    async def start(self, die: str = "") -> None:
        ours, theirs = socket.socketpair()
        arguments = [str(self.store), str(self.ledger), "--after", str(len(self.events)), "--die", die]
        self.pid = self.breeder.start(arguments, theirs)
        theirs.close()
        self.reader, self.writer = await asyncio.open_connection(sock=ours, limit=1 << 22)
        again, self.unanswered = self.unanswered, {}
        for request in again.values():
            self.send(*request)
        for entry in self.open_requests():
            self.answer(entry)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        self.writer.write_eof()
        await self.drain()

    async def drain(self) -> bool:
        """Read until the server is gone; whether it was killed."""
        while await self.step():
            pass
        self.writer.close()
        code = self.breeder.wait(self.pid)
        assert code in (0, -9)
        self.kills += code == -9
        return code == -9

    async def step(self) -> bool:
        try:
            data = await self.reader.readline()
        except ConnectionError:  # reset while reading, or a broken pipe of what was being written
            return False
        if not data.endswith(b"\n"):
            return False
        kind, _, rest = data[:-1].partition(b" ")
        if kind == b"E":
            self.hear(*rest.split(b" ", 1))
        elif kind == b"R":
            self.take_reply(*rest.decode().split(" ", 1))
        return True

    # --- what is said

    def send(self, *request: str) -> None:
        self.numbers += 1
        self.unanswered[self.numbers] = list(request)
        self.writer.write(json.dumps([self.numbers, *request]).encode() + b"\n")

    def take_reply(self, number: str, answer: str) -> None:
        operation, key, *_ = self.unanswered.pop(int(number))
        if operation == "message":
            assert self.turn_of.setdefault(key, answer) == answer, "a repeated message opens no second turn"
            self.busy = answer
        elif answer not in ("204",):
            assert answer.startswith(("closed", "409")), answer

    def hear(self, seq: bytes, body: bytes) -> None:
        assert int(seq) == len(self.events) + 1, "a gap or a duplicate"
        self.events.append(body)
        entry = e.decode(body)
        if isinstance(entry, e.TERMINAL):
            self.busy = ""
        if self.kill_when and e.type_of(entry) == self.kill_when:
            self.kill_when = ""
            self.kill()
            return
        self.answer(entry)

    def answer(self, entry: e.Entry) -> None:
        if isinstance(entry, e.ToolRequest):
            if entry.call_id not in self.ran:
                self.ran.append(entry.call_id)
            self.send("command", "claim", f"{entry.call_id}:me", "")
            self.send("command", "tool_output", entry.call_id, "sent")
        elif isinstance(entry, e.ApprovalRequest):
            self.send("command", "approval", entry.approval_id, "yes")

    def open_requests(self) -> list[e.Entry]:
        entries = [e.decode(body) for body in self.events]
        settled = {x.call_id for x in entries if isinstance(x, e.ToolResult)}
        settled |= {x.approval_id for x in entries if isinstance(x, e.ApprovalResponse | e.ApprovalExpired)}
        return [
            x
            for x in entries
            if (isinstance(x, e.ToolRequest) and x.call_id not in settled)
            or (isinstance(x, e.ApprovalRequest) and x.approval_id not in settled)
        ]

    # --- the verdict

    def types(self) -> list[str]:
        return [e.type_of(e.decode(body)) for body in self.events]

    async def judge(self, terminals: int) -> list[e.Entry]:
        log = SqliteLog(database := Database(self.store), Hub())
        try:
            rows = []
            while page := await log.read(CHAT, len(rows)):
                rows += page
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            assert [row.body for row in rows] == self.events, "live and replay differ"
            journal = await log.replay(CHAT)
            assert await log.open_turns() == []
        finally:
            await database.close()
        chat = hydrate(journal)
        assert (chat.active, chat.turns) == (None, terminals)
        ends = Counter(entry.turn for entry in journal if isinstance(entry, e.TERMINAL))
        assert len(ends) == terminals
        assert set(ends.values()) <= {1}
        started = Counter(x.agent.instance_id for x in journal if isinstance(x, e.AgentStarted))
        assert started == Counter(x.agent.instance_id for x in journal if isinstance(x, e.AgentDone))
        assert set(started.values()) <= {1}
        requests = Counter(x.call_id for x in journal if isinstance(x, e.ToolRequest))
        assert set(requests.values()) <= {1}
        assert set(self.ran) <= set(requests)
        ran = Counter(text for text in self.ledger.read_text().splitlines() if not text.startswith("read "))
        assert set(ran.values()) <= {1}, "a tool ran twice"
        return journal


async def finish(client: Client, key: str) -> None:
    """Let the turn of `key` come to its end, starting the server as often as it dies."""
    while key not in client.turn_of or client.busy:
        if not await client.step():
            assert await client.drain(), "the server ended by itself"
            await client.start()
    await client.stop()


POINTS = (
    "before_message_commit",
    "writing_turn.started",
    "committed_turn.started",
    "after_message_commit",
    "before_model.started",
    "after_model.started",
    "committed_agent.text.delta",
    "tokens_held_orchestrator",
    "tokens_held_member",
    "answer_received",
    "before_model.answered",
    "after_model.answered",
    "before_agent.tool.start",
    "committed_agent.tool.start",
    "before_side_effect",
    "after_side_effect",
    "before_agent.tool.complete",
    "before_agent.tool.request",
    "writing_agent.tool.request",
    "committed_agent.tool.request",
    "claim_accepted",
    "tool_output_accepted",
    "committed_agent.tool.result",
    "committed_agent.delegated",
    "before_agent.started",
    "committed_approval.request",
    "approval_accepted",
    "committed_approval.response",
    "writing_agent.text.delta",
    "writing_agent.tool.complete",
    "before_turn.closing",
    "writing_turn.completed",
    "committed_turn.completed",
)
SEEN = ("agent.tool.request", "approval.request", "agent.delegated", "agent.text.delta", "agent.done")


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_the_turn_goes_on_to_its_one_end(client: Client, point: str) -> None:
    async def scenario() -> None:
        await client.start(point)
        client.send("message", "k1")
        await finish(client, "k1")
        assert client.kills == 1, "it never came to this point"
        journal = await client.judge(1)
        assert client.types()[-1] == "turn.completed"
        names = [text.split()[0] for text in client.ledger.read_text().splitlines()]
        assert Counter(names)["danger"] <= 1
        unknown = [x for x in journal if isinstance(x, e.ToolComplete) and b"outcome_unknown" in bytes(x.result)]
        lost = point in ("committed_agent.tool.start", "before_side_effect", "after_side_effect")
        assert bool(unknown) >= lost

    run(scenario(), timeout=30)


@pytest.mark.parametrize("seen", SEEN)
def test_killed_when_the_client_has_seen_an_event_the_turn_goes_on(client: Client, seen: str) -> None:
    async def scenario() -> None:
        client.kill_when = seen
        await client.start()
        client.send("message", "k1")
        await finish(client, "k1")
        assert client.kills == 1
        await client.judge(1)
        assert client.types()[-1] == "turn.completed"

    run(scenario(), timeout=30)


@pytest.mark.parametrize("again", ["", "before_recovery_commit", "after_recovery_commit"])
def test_a_crash_during_recovery_is_recovered_from(client: Client, again: str) -> None:
    async def scenario() -> None:
        await client.start("after_side_effect")
        client.send("message", "k1")
        assert await client.drain()
        if again:
            await client.start(again)
            assert await client.drain()
        await client.start()
        await finish(client, "k1")
        assert client.kills == 1 + bool(again)
        await client.judge(1)

    run(scenario(), timeout=30)


@pytest.mark.parametrize(("kind", "key", "end"), [("cancel", "c", "turn.cancelled"), ("steer", "s", "turn.completed")])
def test_an_accepted_command_is_carried_out_once_after_a_crash(client: Client, kind: str, key: str, end: str) -> None:
    async def scenario() -> None:
        await client.start(f"{kind}_accepted")
        client.send("message", "k1")
        while "agent.text.delta" not in client.types():
            await client.step()
        client.send("command", kind, key, "to the left")
        await finish(client, "k1")
        assert client.kills == 1
        journal = await client.judge(1)
        assert client.types()[-1] == end
        fates = [x for x in journal if isinstance(x, e.SteerApplied | e.SteerDropped)]
        assert len(fates) == (kind == "steer")

    run(scenario(), timeout=30)


async def random_kills(client: Client, kills: int, seed: int) -> int:
    """Kill it at random moments of one turn after another; the number of turns."""
    rng = random.Random(seed)
    turns = 0
    await client.start()
    while client.kills < kills or client.busy or client.unanswered:
        if not client.busy and not client.unanswered and client.kills < kills:
            turns += 1
            client.send("message", f"k{turns}")
        if client.kills < kills:
            deadline = asyncio.get_running_loop().time() + rng.uniform(0, 0.35)
            while (left := deadline - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.wait_for(asyncio.shield(pending := asyncio.ensure_future(client.step())), left)
                except TimeoutError:
                    client.kill()
                    await pending
                    break
            else:
                client.kill()
            await client.drain()
            await client.start()
        else:
            await client.step()
    await client.stop()
    return turns


def test_killed_at_twenty_random_moments(client: Client) -> None:
    async def scenario() -> None:
        turns = await random_kills(client, 20, seed=20)
        assert client.kills == 20
        await client.judge(turns)

    run(scenario(), timeout=55)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.long if seed else pytest.mark.torture) for seed in range(5)]
)
def test_killed_at_sixty_random_moments(client: Client, seed: int) -> None:
    async def scenario() -> None:
        turns = await random_kills(client, 60, seed)
        await client.judge(turns)

    run(scenario(), timeout=880)
