"""WebSocket on `/v1/responses`: the same answers, one at a time, on a connection that remembers its own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import Final

import msgspec

from crocevia.asgi.answers import expected
from crocevia.asgi.http import Socket
from crocevia.asgi.types import Receive, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import errors, plan
from crocevia.doors.responses.answer_plan import AnswerPlan
from crocevia.doors.responses.caller import OperatorCaller, Request
from crocevia.doors.responses.frames import Frame
from crocevia.doors.responses.run import Run
from crocevia.doors.responses.services import Services
from crocevia.runtime.answers_store import StoredResponse
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

LONGEST_SECONDS: Final = 3600.0
REMEMBERED: Final = 64  # answers that a connection can go on from without a store
WAITING: Final = 32  # messages that may wait for their turn
_GOING_AWAY: Final = 1001
_TRY_AGAIN: Final = 1013


async def serve(services: Services, request: Request) -> Socket:
    """One connection, from its handshake to its end. Raises GatewayError when nothing is admitted now."""
    services.gateway.check_open()
    return Socket(partial(_run, services, request.caller))


async def _run(services: Services, caller: OperatorCaller, receive: Receive, send: Send) -> None:
    connection = _Connection(services, caller, send)
    reader = asyncio.create_task(connection.read(receive))
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            await connection.work()
        if connection.flooded:
            await connection.close(GatewayError(Reason.CONNECTION_FLOODED, limit=WAITING), _TRY_AGAIN)
    except TimeoutError:
        await connection.close(GatewayError(Reason.CONNECTION_OVER), _GOING_AWAY)
    finally:
        reader.cancel()


class _Connection:
    """`chains`: what the connection remembers, by the id of the last answer."""

    def __init__(self, services: Services, caller: OperatorCaller, send: Send) -> None:
        self._services = services
        self._caller = caller
        self._send = send
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answering: asyncio.Task[None] | None = None
        self._call: Work | None = None
        """What makes the answer, once it is open."""
        self._gone = False
        self.flooded = False
        self.chains: OrderedDict[str, list[StoredResponse]] = OrderedDict()

    async def read(self, receive: Receive) -> None:
        """Take messages in while answers are made; a client that leaves or sends too much ends the one under way."""
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self._gone = True
                break
            if self._queue.qsize() >= WAITING:
                self.flooded = True
                break
            text = message.get("text")
            self._queue.put_nowait(text.encode() if text is not None else message.get("bytes") or b"")
        if self._call is not None:
            self._call.interrupt(Cut.CLIENT_GONE)
        elif self._answering is not None:  # it waits for its session, or for a slot
            self._answering.cancel()
        self._queue.put_nowait(None)

    async def work(self) -> None:
        """Answer one message after the other."""
        while (message := await self._queue.get()) is not None and not self._ending:
            self._answering = asyncio.create_task(self._answer(message))
            try:
                await self._answering
            except asyncio.CancelledError:
                if not self._ending:
                    raise
            except Exception as error:
                await self.refuse(expected(error, "responses"))

    @property
    def _ending(self) -> bool:
        """Nobody waits for more answers."""
        return self._gone or self.flooded

    async def close(self, error: GatewayError, code: int) -> None:
        """Say why, and end the connection."""
        await self.refuse(error)
        if not self._gone:
            await self._send({"type": "websocket.close", "code": code})

    async def refuse(self, error: GatewayError) -> None:
        """Say what was wrong with a message; the connection goes on."""
        if self._gone:
            return
        told = errors.failure(error)
        failure = {
            "type": "error",
            "sequence_number": 0,
            "status": errors.status(error),
            "error": {**told, "code": told.get("code") or told["type"]},  # clients tell failures apart by it
        }
        await self._send({"type": "websocket.send", "text": json.encode(failure).decode()})

    async def _answer(self, message: bytes) -> None:
        request = plan.read(message)
        if request.type != "response.create":
            raise GatewayError(Reason.MESSAGE_UNKNOWN, param="type")
        request = msgspec.structs.replace(request, stream=True, background=None, stream_options=None)
        previous = request.previous_response_id
        try:
            made = await plan.make(self._services, self._caller, request, len(message), local=self.chains)
            run = Run(self._services, made)
            self._call = await run.open()
            await run.drive(self._call, self._write, must_stream=lambda: False)
        except GatewayError:
            self._forget(previous)
            raise
        finally:
            self._call = None
        if run.error is not None:
            self._forget(previous)
        elif run.kept is not None:
            self._remember(run.kept, made)

    async def _write(self, frames: list[Frame]) -> None:
        # A client takes either of the two events of a failure for the end of its turn: one is enough.
        for kind, data in frames:
            if kind != "error":
                await self._send({"type": "websocket.send", "text": data.decode()})
        if self._call is not None:
            self._call.bytes_out += sum(len(data) for _, data in frames)

    def _remember(self, kept: StoredResponse, made: AnswerPlan) -> None:
        self.chains[kept.id] = [*made.past, kept]
        while len(self.chains) > REMEMBERED:
            self.chains.popitem(last=False)

    def _forget(self, previous: str | None) -> None:
        if previous is not None:
            self.chains.pop(previous, None)
