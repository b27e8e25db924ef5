"""WebSocket on `/v1/responses`: the same answers, one at a time, on a connection that remembers its own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final

import msgspec

from crocevia.asgi.answers import reply
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import errors, head, plan
from crocevia.doors.responses.frames import Frame
from crocevia.doors.responses.head import Head
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.run import Run
from crocevia.runtime.answers_store import StoredResponse
from crocevia.runtime.control.operators import Operator
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

LONGEST_SECONDS: Final = 3600.0
REMEMBERED: Final = 64  # answers that a connection can go on from without a store
WAITING: Final = 32  # messages that may wait for their turn
_GOING_AWAY, _POLICY = 1001, 1008


async def serve(desk: Desk, scope: Scope, receive: Receive, send: Send) -> None:
    """One connection, from its handshake to its end."""
    asked = head.read(scope)
    await receive()
    try:
        operator = await desk.operators.authenticate(asked.approach)
        operator.grant.demand(plan.WRITE)
    except Exception as error:
        await _deny(scope, send, errors.expected(error))
        return
    await send({"type": "websocket.accept"})
    connection = _Connection(desk, operator, asked, send)
    reader = asyncio.create_task(connection.read(receive))
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            await connection.work()
    except TimeoutError:
        await connection.refuse(GatewayError(Reason.CONNECTION_OVER))
        await send({"type": "websocket.close", "code": _GOING_AWAY})
    finally:
        reader.cancel()


async def _deny(scope: Scope, send: Send, error: GatewayError) -> None:
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": _POLICY})
        return

    async def as_handshake(message: dict[str, Any]) -> None:
        await send({**message, "type": message["type"].replace("http.", "websocket.http.", 1)})

    await reply(as_handshake, errors.status(error), json.encode(errors.body(error)), [])


class _Connection:
    """`chains`: what the connection remembers, by the id of the last answer."""

    def __init__(self, desk: Desk, operator: Operator, asked: Head, send: Send) -> None:
        self._desk = desk
        self._operator = operator
        self._asked = asked
        self._send = send
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._call: Work | None = None
        self._gone = False
        self.chains: OrderedDict[str, list[StoredResponse]] = OrderedDict()

    async def read(self, receive: Receive) -> None:
        """Take messages in while answers are made; a client that leaves ends the one under way."""
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect" or self._queue.qsize() >= WAITING:
                break
            text = message.get("text")
            self._queue.put_nowait(text.encode() if text is not None else message.get("bytes") or b"")
        self._gone = True
        if self._call is not None:
            self._call.interrupt(Cut.CLIENT_GONE)
        self._queue.put_nowait(None)

    async def work(self) -> None:
        """Answer one message after the other."""
        while (message := await self._queue.get()) is not None:
            try:
                await self._answer(message)
            except Exception as error:
                await self.refuse(errors.expected(error))

    async def refuse(self, error: GatewayError) -> None:
        """Say what was wrong with a message; the connection goes on."""
        if self._gone:
            return
        failure = {"type": "error", "sequence_number": 0, "status": errors.status(error), **errors.body(error)}
        await self._send({"type": "websocket.send", "text": json.encode(failure).decode()})

    async def _answer(self, message: bytes) -> None:
        request = plan.read(message)
        if request.type != "response.create":
            raise GatewayError(Reason.MESSAGE_UNKNOWN, param="type")
        request = msgspec.structs.replace(request, stream=True, background=None, stream_options=None)
        previous = request.previous_response_id
        try:
            made = await plan.make(self._desk, self._operator, self._asked, request, len(message), local=self.chains)
            run = Run(self._desk, made)
            self._call = await run.open()
            if self._gone:
                self._call.interrupt(Cut.CLIENT_GONE)
            await run.drive(self._call, self._write, insists=lambda: False)
        except GatewayError:
            self._forget(previous)
            raise
        finally:
            self._call = None
        if run.error is not None:
            self._forget(previous)
        elif run.kept is not None:
            await self._remember(run.kept, previous, made)

    async def _write(self, frames: list[Frame]) -> None:
        # A client takes either of the two events of a failure for the end of its turn: one is enough.
        for kind, data in frames:
            if kind != "error":
                await self._send({"type": "websocket.send", "text": data.decode()})
        if self._call is not None:
            self._call.bytes_out += sum(len(data) for _, data in frames)

    async def _remember(self, kept: StoredResponse, previous: str | None, made: plan.Plan) -> None:
        before = self.chains.get(previous or "")
        if before is None and previous is not None:
            before = await self._desk.responses.chain(made.link, previous)
        self.chains[kept.id] = [*(before or []), kept]
        while len(self.chains) > REMEMBERED:
            self.chains.popitem(last=False)

    def _forget(self, previous: str | None) -> None:
        if previous is not None:
            self.chains.pop(previous, None)
