"""Our own client, sync and async, works with a team on a real server: turns, cuts, kills, tools, approvals, forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from envai_client import (
    ClientToolRegistry,
    CursorExpiredError,
    NotFoundError,
    ReconnectPolicy,
    SignatureError,
    SqliteLedger,
    TurnFailedError,
)
from tests.live import clean_env

from .own_sdk import KINDS, NUMBERS, SLOW, Place, Proxy, each, now, opened, refused
from .turns_rig import Rig

SOON = ReconnectPolicy(base_delay=0.05, max_delay=0.3, max_reconnects=100)
both = pytest.mark.parametrize("kind", KINDS)
versions = pytest.mark.parametrize("version", [2, 3])


def registry(runs: list[Any]) -> ClientToolRegistry:
    tools = ClientToolRegistry()

    def add(a: float, b: float) -> dict[str, float]:
        runs.append((a, b))
        return {"sum": a + b}

    tools.register_tool("add", add, NUMBERS, timeout=60)
    return tools


async def history(client: Any, chat: str, until: int | None = None, **options: Any) -> list[Any]:
    """What there is: up to number `until`, or to the first ping."""
    async with opened(client.chats.events(chat, include_pings=True, timeout=20, **options)) as stream:
        events = []
        async for event in each(stream):
            if event.is_ping and until is None:
                return events
            events += [] if event.is_ping else [event]
            if event.seq == until:
                return events
    raise AssertionError("the stream ended")


async def during(client: Any, chat: str, act: Any, message: str = "slow", on: str = "agent.text.delta") -> Any:
    """Send, call `act` at the first event of the type `on`, and follow the turn to its end: its result, its events."""
    events: list[Any] = []
    async with opened(client.chats.send_and_stream(chat, message, timeout=20)) as turn:
        async for event in each(turn):
            if event.type == on and on not in {known.type for known in events}:
                await now(act(event))
            events.append(event)
        return turn.result(), events


@both
@versions
def test_a_turn_is_streamed_with_numbers_without_gaps_and_one_end(kind: str, version: int, place: Place) -> None:
    chat = place.chat()

    async def work(client: Any) -> None:
        result, events = await during(client, chat, lambda event: None, "hello")
        assert (result.text, result.completed, result.last_seq) == ("Hello.", True, events[-1].seq)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.is_terminal for event in events] == [False] * (len(events) - 1) + [True]
        assert {event.v for event in events} == {version} and result.epoch
        again = await history(client, chat, until=events[-1].seq)
        assert [event.raw for event in again] == [event.raw for event in events]
        answered = await now(client.chats.send_and_wait(chat, "hello again", timeout=20))
        assert answered.text == "Hello." and answered.last_seq > result.last_seq
        failed = await now(client.chats.send_and_wait(chat, "never", timeout=20))
        with pytest.raises(TurnFailedError):
            failed.raise_for_failure()

    place.play(kind, work, contract_version=version)


@both
def test_a_cut_connection_is_taken_up_where_it_was_lost(kind: str, place: Place) -> None:
    chat = place.chat()
    with Proxy(place.url) as proxy:

        async def work(client: Any) -> None:
            seen: list[Any] = []
            async with opened(client.chats.send_and_stream(chat, "slow", timeout=20)) as turn:
                async for event in each(turn):
                    seen.append(event)
                    if event.type == "agent.text.delta" and len(seen) % 3 == 0:
                        proxy.cut()
                assert turn.result().text == SLOW and turn.restarts == 0
            assert proxy.accepted >= 4
            assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
            middle = seen[len(seen) // 2].seq
            rest = await history(client, chat, until=seen[-1].seq, after=middle, epoch=seen[0].epoch)
            assert [event.seq for event in rest] == list(range(middle + 1, len(seen) + 1))

        place.play(kind, work, base_url=proxy.url, reconnect=SOON)


@both
def test_a_cursor_of_another_epoch_or_beyond_the_end_has_expired(kind: str, place: Place) -> None:
    chat = place.chat()

    async def work(client: Any) -> None:
        result = await now(client.chats.send_and_wait(chat, "hello", timeout=20))
        for cursor in ({"after": 2, "epoch": "of-another-time"}, {"after": result.last_seq + 1000}):
            error = await refused(CursorExpiredError, lambda cursor=cursor: history(client, chat, **cursor))
            assert error.last_seq == cursor["after"] and error.epoch == result.epoch
            events = await history(client, chat, until=result.last_seq, on_expired="restart", **cursor)
            assert [event.seq for event in events] == list(range(1, result.last_seq + 1))

    place.play(kind, work)


@both
@versions
def test_a_turn_is_cancelled_steered_approved_forked_and_restored(kind: str, version: int, place: Place) -> None:
    first, empty, other = place.chat(), place.chat(), place.chat()

    async def work(client: Any) -> None:
        chats = client.chats
        cancelled, _ = await during(client, first, lambda _: chats.cancel(first), "how long", "agent.started")
        assert cancelled.terminal_event.type == "turn.cancelled"
        steered, _ = await during(client, first, lambda _: chats.steer(first, "louder"))
        assert steered.completed and steered.text.endswith("LOUDER")

        def agree(event: Any) -> Any:
            return chats.submit_approval(first, event.data.approval_id, True, reason="go on")

        approved, events = await during(client, first, agree, "write it", "approval.request")
        assert approved.completed and approved.text.startswith("So: ")
        answer = next(event for event in events if event.type == "approval.response")
        assert (answer.data.approve, answer.data.reason) == (True, "go on")
        note = await now(client.files.read_or_list(place.workspace, "/note.txt"))
        assert note.content == "written"
        await now(client.files.delete(place.workspace, "/note.txt"))
        told = await now(chats.send_and_wait(first, "how many", timeout=20))
        forked = await now(chats.fork_chat(place.workspace, first, place.team))
        assert forked.source_chat_id == first
        counted = await now(chats.send_and_wait(forked.chat.id, "how many", timeout=20))
        assert int(counted.text.split()[1]) == int(told.text.split()[1]) + 1
        await now(chats.fork(first, empty))
        assert (await now(chats.send_and_wait(empty, "how many", timeout=20))).text == counted.text
        items = [{"kind": "compacted", "content": "before"}, {"kind": "assistant", "content": "yes"}]
        assert (await now(chats.restore(other, items))).status == "restored"
        assert (await now(chats.send_and_wait(other, "how many", timeout=20))).text == "answer 2"

    place.play(kind, work, contract_version=version)


@both
@versions
def test_a_signed_request_runs_its_handler_once_through_cuts(
    kind: str, version: int, place: Place, tmp_path: Path
) -> None:
    chat, runs, ledger = place.chat(), [], SqliteLedger(tmp_path / "ledger.db")
    with Proxy(place.url) as proxy:

        async def work(client: Any) -> None:
            async with opened(client.chats.send_and_stream(chat, "please add", timeout=20)) as turn:
                async for event in each(client.chats.run_client_tools(turn, registry(runs), ledger=ledger)):
                    if event.type in ("agent.tool.request", "agent.tool.result"):
                        proxy.cut()
                assert turn.result().text == 'It is {"sum":5}.'
            async with opened(client.chats.events(chat, timeout=20)) as stream:  # all of it again: nothing is run
                async for event in each(client.chats.run_client_tools(stream, registry(runs), ledger=ledger)):
                    if event.is_terminal:
                        break

        place.play(kind, work, base_url=proxy.url, reconnect=SOON, contract_version=version)
    assert runs == [(2, 3)] and ledger.unsettled() == []
    ledger.close()


DYING = """
import os, signal, sys
from pathlib import Path
from envai_client import ClientToolRegistry, EnvaiClient, SqliteLedger

url, key, chat, folder = sys.argv[1:]

class Dying(SqliteLedger):
    def finish(self, *args):
        super().finish(*args)
        os.kill(os.getpid(), signal.SIGKILL)

def add(a, b):
    with (Path(folder) / "runs").open("a") as file:
        file.write("ran\\n")
    return {"sum": a + b}

tools = ClientToolRegistry()
tools.register_tool("add", add, {"type": "object"}, timeout=60)
with EnvaiClient(api_key=key, base_url=url, ledger=Dying(Path(folder) / "ledger.db")) as client:
    client.chats.send_and_wait(chat, "please add", tools=tools, timeout=20)
"""


@both
def test_a_handler_of_a_killed_client_is_not_run_again_and_its_output_is_delivered(
    kind: str, place: Place, tmp_path: Path
) -> None:
    chat, runs = place.chat(), []
    command = [sys.executable, "-c", DYING, place.url, place.key, chat, str(tmp_path)]
    died = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=clean_env())
    assert died.returncode == -9, died.stderr
    ledger = SqliteLedger(tmp_path / "ledger.db")
    assert [record.state for record in ledger.unsettled(chat)] == ["finished"]

    async def work(client: Any) -> None:
        async with opened(client.chats.events(chat, timeout=20)) as stream:
            async for event in each(client.chats.run_client_tools(stream, registry(runs), ledger=ledger)):
                if event.type == "agent.text.done":
                    assert event.data.text == 'It is {"sum":5}.'
                if event.is_terminal:
                    assert event.type == "turn.completed"
                    return

    place.play(kind, work)
    assert runs == [] and (tmp_path / "runs").read_text() == "ran\n" and ledger.unsettled(chat) == []
    ledger.close()


class ForeignKeys(BaseHTTPRequestHandler):
    """Publishes another key under the id that the server signs with."""

    kid = ""

    def do_GET(self) -> None:
        raw = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        x = urlsafe_b64encode(raw).rstrip(b"=").decode()
        body = f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"{self.kid}","x":"{x}"}}]}}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


@both
def test_a_request_that_the_published_keys_do_not_verify_is_not_run(kind: str, place: Place, tmp_path: Path) -> None:
    chat, runs, ledger = place.chat(), [], SqliteLedger(tmp_path / "ledger.db")
    server = ThreadingHTTPServer(("127.0.0.1", 0), ForeignKeys)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    async def work(client: Any) -> None:
        (key,) = (await now(place_client.infrastructure.jwks())).keys
        ForeignKeys.kid = key.kid
        await refused(
            SignatureError,
            lambda: client.chats.send_and_wait(chat, "please add", tools=registry(runs), ledger=ledger, timeout=20),
        )
        assert runs == [] and ledger.unsettled() == []
        await now(client.chats.cancel(chat))
        await now(place_client.aclose() if kind == "async" else place_client.close())

    place_client = place.client(kind)
    try:
        place.play(kind, work, jwks_url=f"http://127.0.0.1:{server.server_address[1]}/keys.json")
    finally:
        server.shutdown()
        server.server_close()
        ledger.close()


@both
def test_a_server_killed_in_the_middle_of_a_turn_is_found_again(
    kind: str, place: Place, own_rig: Rig, tmp_path: Path
) -> None:
    chat, runs, ledger = place.chat(), [], SqliteLedger(tmp_path / "ledger.db")
    starts = own_rig.starts

    def again(_: Any) -> None:
        own_rig.kill()
        own_rig.start()

    async def work(client: Any) -> None:
        result, events = await during(client, chat, again)
        assert result.completed and result.text == SLOW and own_rig.starts == starts + 1
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        added = await now(client.chats.send_and_wait(chat, "please add", tools=registry(runs), timeout=20))
        assert added.text == 'It is {"sum":5}.' and runs == [(2, 3)]
        gone = chat[:-4] + "0000"
        await refused(NotFoundError, lambda: client.chats.send_and_wait(gone, "hello", timeout=5))

    place.play(kind, work, reconnect=SOON, ledger=ledger)
    ledger.close()


@both
@pytest.mark.parametrize("trouble", ["killed", "stopped"])
def test_an_output_arrives_after_the_server_was_away_while_its_handler_ran(
    kind: str, trouble: str, place: Place, own_rig: Rig, tmp_path: Path
) -> None:
    chat, runs, ledger = place.chat(), [], SqliteLedger(tmp_path / "ledger.db")
    tools, back = ClientToolRegistry(), threading.Event()

    def again() -> None:
        if trouble == "killed":
            own_rig.start()
        else:
            os.kill(own_rig._pid, signal.SIGCONT)
        back.set()

    def add(a: float, b: float) -> dict[str, float]:
        runs.append((a, b))
        if trouble == "killed":
            own_rig.kill()
        else:
            os.kill(own_rig._pid, signal.SIGSTOP)
        threading.Timer(3, again).start()  # what is tested is that it is away for a while
        return {"sum": a + b}

    tools.register_tool("add", add, NUMBERS, timeout=60)

    async def work(client: Any) -> None:
        result = await now(client.chats.send_and_wait(chat, "please add", tools=tools, timeout=40))
        assert result.completed and result.text == 'It is {"sum":5}.'
        (outcome,) = result.tool_outcomes
        assert outcome.is_delivered or outcome.outcome == "tool_already_resolved"

    try:
        place.play(kind, work, reconnect=SOON, ledger=ledger)
    finally:
        assert back.wait(10)
    assert runs == [(2, 3)] and ledger.unsettled(chat) == []
    ledger.close()


def test_two_runners_with_two_ledgers_run_a_call_once(place: Place, tmp_path: Path) -> None:
    chat, runs, outcomes = place.chat(), [], []
    lock = threading.Lock()

    def follow(number: int) -> None:
        ledger = SqliteLedger(tmp_path / f"{number}.db")
        with place.client("sync", ledger=ledger) as client, client.chats.events(chat, timeout=20) as stream:
            run = client.chats.run_client_tools(stream, registry(runs))
            for event in run:
                if event.is_terminal:
                    break
            run.close()
            with lock:
                outcomes.extend(item.outcome for item in run.outcomes)
        ledger.close()

    threads = [threading.Thread(target=follow, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    with place.client("sync") as client:
        result = client.chats.send_and_wait(chat, "please add", timeout=20)
    for thread in threads:
        thread.join(20)
    assert result.text == 'It is {"sum":5}.' and runs == [(2, 3)]
    assert "delivered" in outcomes and len(outcomes) == 2
