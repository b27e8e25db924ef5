"""Random conversations through every door, with a model that repeats what it was shown.

Everything that was said in whole turns is shown to the model, in order and once; nothing that was deleted is shown,
whatever was interrupted, said at once, deleted, restarted or killed in between.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from websockets.asyncio.client import ClientConnection, connect

from tests.contract.responses.test_socket import served, turn
from tests.contract.responses.upstream import DONE, chunk
from tests.doors.responses.house import again, house, template
from tests.e2e.breeder import Breeder

WORD = re.compile(r"\b(?:re)?w\d+\b")
SETTINGS = """
[gateway.http.endpoints.responses]
enabled = true
[gateway.http.endpoints.chatCompletions]
enabled = true
"""
DECLARED = """
[[projects]]
name = "default"
model = "Pepper mini"
mode = "agent"

[[agents]]
name = "talker"
mode = "subagent"
model = "Pepper mini"
permissions = { "*" = "allow" }
"""
WAYS = ["whole", "stream", "background", "socket"]


class Repeater:
    """A provider that answers `re` and the newest word, and writes down the words of every request in their order.

    Of a message with `hold` the answer is begun and never ended; with `fail` it breaks off; with `slow` it ends when
    the word is `released`.
    """

    def __init__(self) -> None:
        self.shown: list[list[str]] = []
        self.released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Repeater]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        assert length is not None
        body = json.loads(await reader.readexactly(int(length[1])))
        said = [str(message["content"]) for message in body["messages"] if message["role"] != "system"]
        words = [word for text in said for word in WORD.findall(text)]
        self.shown.append(words)
        newest = said[-1].split("\n")[-1]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        if "slow" in newest:
            writer.write(chunk({"content": " "}))
            await self.released[words[-1]].wait()
        if "hold" in newest or "fail" in newest:
            writer.write(chunk({"content": "half"}))
            await writer.drain()
            if "hold" in newest:
                await reader.read(1)  # until the caller has gone
        else:
            writer.write(chunk({"content": f"re{words[-1]}"}) + chunk({}, "stop") + DONE)
            await writer.drain()
        return False


class Server(Protocol):
    """Something that serves one home. `restart` returns when it serves again."""

    url: str

    async def restart(self, *, kill: bool) -> None: ...


class InProcess:
    def __init__(self, folder: Path, everything: AsyncExitStack) -> None:
        self.folder = folder
        self._all = everything
        self._now = AsyncExitStack()
        self.url = ""

    async def start(self, provider: str) -> None:
        self._all.push_async_callback(lambda: self._now.aclose())
        home = await self._now.enter_async_context(made(self.folder, provider))
        self.url = http(await self._now.enter_async_context(served(home)))

    async def restart(self, *, kill: bool) -> None:
        assert not kill, "this process is the test's"
        await self._now.aclose()
        self._now = AsyncExitStack()
        home = await self._now.enter_async_context(again(self.folder))
        self.url = http(await self._now.enter_async_context(served(home)))


class OwnProcess:
    def __init__(self, folder: Path, everything: AsyncExitStack) -> None:
        self.folder = folder
        self._breeder = Breeder()
        everything.callback(self._breeder.close)
        everything.push_async_callback(self._stop, signal.SIGKILL)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}"
        self._process = 0

    async def start(self, provider: str) -> None:
        async with made(self.folder, provider):
            pass
        await self._begin()

    async def restart(self, *, kill: bool) -> None:
        await self._stop(signal.SIGKILL if kill else signal.SIGINT)
        await self._begin()

    async def _begin(self) -> None:
        arguments = ["serve", "--home", str(self.folder / "home"), "--port", str(self._port)]
        self._process = await asyncio.to_thread(self._breeder.start, arguments, self.folder / "log")
        async with httpx.AsyncClient() as client, asyncio.timeout(30):
            while True:
                with suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/up")).status_code == 200:
                        return
                await asyncio.sleep(0.02)

    async def _stop(self, how: signal.Signals) -> None:
        process, self._process = self._process, 0
        if process:
            os.kill(process, how)
            await asyncio.to_thread(self._breeder.wait, process)


def made(folder: Path, provider: str) -> Any:
    engine = {"kind": "openai-chat", "base_url": provider}
    return house(folder, engine=engine, model={"upstream": "up"}, settings=SETTINGS, declared=DECLARED)


def http(sockets: str) -> str:
    return sockets.replace("ws://", "http://").removesuffix("/v1/responses")


@dataclass
class Turn:
    """A whole turn: what was said, its answer's id, and the turn before it."""

    word: str
    id: str
    before: Turn | None = None
    deleted: bool = False


@dataclass
class Session:
    """`loose`: words of turns that did not end: they may be shown, and need not."""

    fields: dict[str, Any]
    headers: dict[str, str]
    head: Turn | None = None
    loose: set[str] = field(default_factory=set)

    @property
    def is_stored(self) -> bool:
        return self.fields.get("store") is not False

    @property
    def turns(self) -> list[Turn]:
        return line_of(self.head)


def line_of(turn: Turn | None) -> list[Turn]:
    found: list[Turn] = []
    while turn is not None:
        found.insert(0, turn)
        turn = turn.before
    return found


def said_in(turns: list[Turn]) -> list[str]:
    return [one for turn in turns if not turn.deleted for one in (turn.word, f"re{turn.word}")]


class World:
    """One server, one provider and one event loop, which stands still between the steps."""

    def __init__(self, folder: Path, kind: type[InProcess | OwnProcess]) -> None:
        self.runner = asyncio.Runner()
        self.all = AsyncExitStack()
        self.numbers = count(1)
        self.kills = kind is OwnProcess
        self.secrets = template()[1]
        self.do(self._open(folder, kind))

    async def _open(self, folder: Path, kind: type[InProcess | OwnProcess]) -> None:
        self.provider = await self.all.enter_async_context(Repeater().serving())
        server = kind(folder, self.all)
        await server.start(self.provider.url)
        self.server: Server = server
        self.client = await self.all.enter_async_context(httpx.AsyncClient(timeout=40))

    def close(self) -> None:
        self.do(self.all.aclose())
        self.runner.close()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(60):
                return await work

        return self.runner.run(bounded())

    @property
    def operator(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.secrets.operator_token}"}

    def stream(self, path: str, body: Any, headers: dict[str, str]) -> Any:
        return self.client.stream("POST", self.server.url + path, json=body, headers=headers)

    async def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        named = self.operator | (headers or {})
        return await self.client.request(method, self.server.url + path, json=body, headers=named)

    def socket(self, headers: dict[str, str] | None = None) -> Any:
        url = self.server.url.replace("http://", "ws://") + "/v1/responses"
        return connect(url, additional_headers=self.operator | (headers or {}), proxy=None)


def events(body: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


class Conversations(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        run = next(self.world.numbers)
        self.sessions = {
            "user": Session({"user": f"ann{run}"}, {}),
            "key": Session({"store": False}, {"x-openclaw-session-key": f"desk{run}"}),
            "agent": Session({"user": f"ann{run}", "model": "openclaw/talker"}, {}),
        }
        self.chains: list[Turn] = []
        self.histories: dict[str, list[dict[str, Any]]] = {"/agent": [], "/v1/chat/completions": []}
        self.connection: ClientConnection | None = None
        self.remembered: list[Turn] = []
        """Unstored answers of the open connection."""
        self.forgotten: list[Turn] = []
        """Those of connections that are gone."""

    def teardown(self) -> None:
        self.do(self.hang_up_the_socket())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.do(work)

    def word(self) -> str:
        return f"w{next(self.world.numbers)}"

    async def hang_up_the_socket(self) -> None:
        if self.connection is not None:
            await self.connection.close()
        self.connection = None
        self.forgotten += self.remembered
        self.remembered = []

    # what the model must have been shown

    def check(self, expected: list[str], word: str, loose: set[str] | None = None) -> None:
        """Before it was told `word`."""
        asked = [shown for shown in self.world.provider.shown if shown and shown[-1] == word]
        assert len(asked) == 1, f"{word} was told {len(asked)} times"
        (shown,) = asked
        assert len(set(shown)) == len(shown), f"said twice: {shown}"
        bare = [one for one in shown if one.removeprefix("re") not in (loose or ())]
        assert bare == [*expected, word], f"shown {shown}, expected {expected} and {word}"

    # ways of asking

    async def say(self, session: Session, text: str, way: str, **more: Any) -> str:
        """The id of a whole answer."""
        fields, headers = session.fields, session.headers
        body = {"model": "openclaw", **fields, **more, "input": text}
        if way == "socket":
            async with self.world.socket(headers) as connection:
                return await self.say_on(connection, body)
        if way == "background" and session.is_stored:
            path = await self.begin(session, text, **more)
            return str((await self.ended(path))["id"])
        answer = await self.world.ask("POST", "/v1/responses", {**body, "stream": way == "stream"}, headers)
        assert answer.status_code == 200, answer.text
        told = events(answer.text)[-1]["response"] if way == "stream" else answer.json()
        assert told["status"] == "completed", told
        return str(told["id"])

    async def say_on(self, connection: ClientConnection, body: dict[str, Any]) -> str:
        await connection.send(json.dumps({"type": "response.create", **body}))
        told = (await turn(connection))[-1]
        assert told["type"] == "response.completed", told
        return str(told["response"]["id"])

    async def begin(self, session: Session, text: str, **more: Any) -> str:
        """The address of an answer in the background."""
        body = {"model": "openclaw", **session.fields, **more, "input": text, "background": True}
        answer = await self.world.ask("POST", "/v1/responses", body, session.headers)
        assert answer.status_code == 200, answer.text
        return f"/v1/responses/{answer.json()['id']}"

    async def ended(self, path: str, before: tuple[str, ...] = ("queued", "in_progress")) -> dict[str, Any]:
        while True:
            found = await self.world.ask("GET", path)
            assert found.status_code == 200, (path, found.text)
            now: dict[str, Any] = found.json()
            if now["status"] not in before:
                return now
            await asyncio.sleep(0.005)

    # sessions

    @rule(name=st.sampled_from(["user", "key", "agent"]), way=st.sampled_from(WAYS))
    def say_in_a_session(self, name: str, way: str) -> None:
        session, word = self.sessions[name], self.word()
        made = self.do(self.say(session, word, way))
        self.check(said_in(session.turns), word, session.loose)
        session.head = Turn(word, made, session.head)

    @rule(name=st.sampled_from(["user", "key", "agent"]), ways=st.lists(st.sampled_from(WAYS), min_size=2, max_size=4))
    def say_at_once(self, name: str, ways: list[str]) -> None:
        session, words = self.sessions[name], [self.word() for _ in ways]

        async def work() -> list[str]:
            return await asyncio.gather(*(self.say(session, *said) for said in zip(words, ways, strict=True)))

        ids = dict(zip(words, self.do(work()), strict=True))
        order = [shown[-1] for shown in self.world.provider.shown if shown and shown[-1] in ids]
        assert sorted(order) == sorted(words)
        for word in order:
            self.check(said_in(session.turns), word, session.loose)
            session.head = Turn(word, ids[word], session.head)

    @rule(
        name=st.sampled_from(["user", "key", "agent"]),
        how=st.sampled_from(["hang up", "hang up the socket", "cancel", "fail"]),
        way=st.sampled_from([None, *WAYS]),
    )
    def interrupt(self, name: str, how: str, way: str | None) -> None:
        """way: somebody says something meanwhile."""
        session, word, next_word = self.sessions[name], self.word(), self.word()
        session.loose.add(word)

        async def meanwhile() -> asyncio.Task[str] | None:
            return None if way is None else asyncio.create_task(self.say(session, next_word, way))

        async def work() -> str | None:
            following = await self.interrupted(session, word, how, meanwhile)
            return None if following is None else await following

        made = self.do(work())
        if made is not None:
            self.check(said_in(session.turns), next_word, session.loose)
            session.head = Turn(next_word, made, session.head)

    async def interrupted(self, session: Session, word: str, how: str, meanwhile: Any) -> Any:
        body = {"model": "openclaw", **session.fields, "input": f"{word} {'fail' if how == 'fail' else 'hold'}"}
        if how == "cancel" and session.is_stored:
            path = await self.begin(session, f"{word} hold")
            await self.ended(path, ("queued",))
            following = await meanwhile()
            cancelled = (await self.world.ask("POST", f"{path}/cancel")).json()
            assert cancelled["status"] == "cancelled", cancelled
            return following
        if how == "hang up the socket":
            async with self.world.socket(session.headers) as connection:
                await connection.send(json.dumps({"type": "response.create", **body}))
                while "half" not in str(await connection.recv()):
                    pass
                return await meanwhile()
        headers = self.world.operator | session.headers
        async with self.world.stream("/v1/responses", {**body, "stream": True}, headers) as answer:
            following = None
            async for line in answer.aiter_lines():
                if "half" in line and following is None:
                    following = await meanwhile()
                    if how != "fail":
                        return following
            return following

    @precondition(lambda self: self.deletable)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(self.deletable))
        answer = self.do(self.world.ask("DELETE", f"/v1/responses/{turn.id}"))
        assert answer.status_code == 200, answer.text
        turn.deleted = True

    @property
    def deletable(self) -> list[Turn]:
        stored = [turn for session in self.sessions.values() if session.is_stored for turn in session.turns]
        return [turn for turn in (*stored, *self.chains) if not turn.deleted]

    @precondition(lambda self: self.sessions["user"].turns)
    @rule(data=st.data(), name=st.sampled_from(["user", "agent"]), way=st.sampled_from(WAYS))
    def go_back_in_a_session(self, data: st.DataObject, name: str, way: str) -> None:
        """What is said after an earlier answer is where the session goes on."""
        session = self.sessions[name]
        if not session.turns:
            return
        before, word = data.draw(st.sampled_from(session.turns)), self.word()
        made = self.do(self.go_on(session, before, word, way))
        if made is not None:
            self.check(said_in(line_of(before)), word, session.loose)
            session.head = Turn(word, made, before)

    async def go_on(self, session: Session, before: Turn | None, word: str, way: str) -> str | None:
        """After one answer; None where that must be, and was, refused."""
        more = {} if before is None else {"previous_response_id": before.id}
        if not any(turn.deleted for turn in line_of(before)):
            return await self.say(session, word, way, **more)
        body = {"model": "openclaw", **session.fields, "input": word, **more}
        refused = await self.world.ask("POST", "/v1/responses", body, session.headers)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["code"] == "previous_response_not_found"
        return None

    # chains of previous_response_id

    @rule(data=st.data(), way=st.sampled_from(WAYS))
    def go_on_from(self, data: st.DataObject, way: str) -> None:
        before, word = data.draw(st.sampled_from([None, *self.chains])), self.word()
        made = self.do(self.go_on(Session({}, {}), before, word, way))
        if made is not None:
            self.check(said_in(line_of(before)), word)
            self.chains.append(Turn(word, made, before))

    @rule(data=st.data())
    def go_on_unstored(self, data: st.DataObject) -> None:
        """On one connection, which remembers its own."""
        before, word = data.draw(st.sampled_from([None, *self.remembered])), self.word()
        more = {} if before is None else {"previous_response_id": before.id}

        async def work() -> str:
            if self.connection is None:
                self.connection = await self.world.socket()
            return await self.say_on(self.connection, {"model": "openclaw", "store": False, "input": word, **more})

        made = self.do(work())
        self.check(said_in(line_of(before)), word)
        self.remembered.append(Turn(word, made, before))

    @precondition(lambda self: self.forgotten)
    @rule(data=st.data())
    def go_on_from_what_was_not_stored(self, data: st.DataObject) -> None:
        before = data.draw(st.sampled_from(self.forgotten))
        body = {"model": "openclaw", "input": self.word(), "previous_response_id": before.id}
        refused = self.do(self.world.ask("POST", "/v1/responses", body))
        assert refused.status_code == 400, refused.text

    @rule()
    def hang_up(self) -> None:
        self.do(self.hang_up_the_socket())

    # histories that callers hold

    @rule(path=st.sampled_from(["/agent", "/v1/chat/completions"]), stream=st.booleans())
    def say_with_the_whole_history(self, path: str, stream: bool) -> None:
        history, word = self.histories[path], self.word()
        said = {"role": "user", "content": word}
        message = self.do(self.answered(path, [*history, said], stream))
        assert message["content"] == f"re{word}"
        self.check([one for told in history for one in WORD.findall(told["content"])], word)
        history += [said, message]

    async def answered(self, path: str, messages: list[dict[str, Any]], stream: bool) -> dict[str, Any]:
        """The message that its caller adds to the history."""
        answer = await self.world.ask("POST", path, *self.spelled(path, messages, stream))
        assert answer.status_code == 200, answer.text
        if not stream:
            told = answer.json()
            if path != "/agent":
                return {"role": "assistant", "content": told["choices"][0]["message"]["content"]}
            return {"role": "assistant", "content": told["content"], "blocchi": told["blocchi"]}
        heard = events(answer.text)
        if path != "/agent":
            pieces = [choice["delta"].get("content") or "" for one in heard for choice in one["choices"]]
            return {"role": "assistant", "content": "".join(pieces)}
        text = "".join(one.get("testo", one.get("text", "")) for one in heard)
        return {"role": "assistant", "content": text, "blocchi": heard[-1]["blocchi"]}

    def spelled(self, path: str, messages: list[dict[str, Any]], stream: bool) -> tuple[dict[str, Any], dict[str, str]]:
        if path != "/agent":
            return {"model": "openclaw", "messages": messages, "stream": stream}, {}
        secrets = self.world.secrets
        keyed = {"x-pepper-key": secrets.project_key, "x-pepper-project": secrets.project}
        return {"messages": messages, "stream": stream}, keyed

    @rule(path=st.sampled_from(["/agent", "/v1/chat/completions"]))
    def interrupt_with_the_whole_history(self, path: str) -> None:
        """Its caller keeps nothing of it."""
        said = {"role": "user", "content": f"{self.word()} hold"}

        async def work() -> None:
            body, headers = self.spelled(path, [*self.histories[path], said], True)
            async with self.world.stream(path, body, self.world.operator | headers) as answer:
                async for line in answer.aiter_lines():
                    if "half" in line:
                        return

        self.do(work())

    @precondition(lambda self: any(self.histories.values()))
    @rule(data=st.data())
    def take_out_of_a_history(self, data: st.DataObject) -> None:
        history = data.draw(st.sampled_from([one for one in self.histories.values() if one]))
        at = data.draw(st.integers(0, len(history) // 2 - 1))
        del history[2 * at : 2 * at + 2]

    # the server

    @rule(often=st.integers(0, 3), kill=st.booleans())
    def restart(self, often: int, kill: bool) -> None:
        async def work() -> None:
            await self.hang_up_the_socket()
            await self.world.server.restart(kill=kill and self.world.kills)

        if not often:  # it is slow
            self.do(work())

    @precondition(lambda self: self.world.kills)
    @rule(name=st.sampled_from(["user", "key", "agent"]), way=st.sampled_from(["stream", "background"]))
    def kill_in_a_turn(self, name: str, way: str) -> None:
        """What is a turn of a chat may go on in the next life, and end."""
        session, word = self.sessions[name], self.word()
        session.loose.add(word)

        async def work() -> dict[str, Any] | None:
            if way == "background" and session.is_stored:
                path = await self.begin(session, f"{word} slow")
                await self.ended(path, ("queued",))
                await self.hang_up_the_socket()
                await self.world.server.restart(kill=True)
            else:
                path = ""
                body = {"model": "openclaw", **session.fields, "input": f"{word} slow", "stream": True}
                with suppress(httpx.TransportError):
                    async with self.world.stream("/v1/responses", body, self.world.operator | session.headers) as told:
                        async for line in told.aiter_lines():
                            if line.startswith("data: ") and not path:
                                path = f"/v1/responses/{json.loads(line[6:])['response']['id']}"
                                await self.hang_up_the_socket()
                                await self.world.server.restart(kill=True)
            self.world.provider.released[word].set()
            return await self.ended(path) if session.is_stored else None

        told = self.do(work())
        if told is not None and told["status"] == "completed":
            session.loose.discard(word)
            session.head = Turn(word, told["id"], session.head)


def walk(folder: Path, kind: type[InProcess | OwnProcess], examples: int, steps: int) -> None:
    world = World(folder, kind)
    machine = type("Walk", (Conversations,), {"world": world})
    checks = list(HealthCheck)
    chosen = settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks)
    try:
        run_state_machine_as_test(machine, settings=chosen)
    finally:
        world.close()


def test_whole_turns_are_always_shown_and_nothing_that_was_deleted_is(tmp_path: Path) -> None:
    walk(tmp_path, InProcess, 6, 20)


@pytest.mark.torture
def test_whole_turns_are_always_shown_although_the_server_is_killed(tmp_path: Path) -> None:
    walk(tmp_path, OwnProcess, 15, 40)
