"""The execution plane: messages, streams, and what is said to a turn under way, for both versions of the contract."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Raw

from crocevia.asgi.http import NO_CONTENT, EventResponse, Handler, Operation, Response
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Headers
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.turn import Totals, Unreadable
from crocevia.doors.atp import encode_v2, encode_v3
from crocevia.doors.atp.caller import Request, Version, VersionRule
from crocevia.doors.atp.capabilities import capabilities
from crocevia.doors.atp.events import Encoder
from crocevia.doors.atp.resources.attachments import manifest
from crocevia.doors.atp.wire import execution as wire
from crocevia.runtime.control import chat_attachments
from crocevia.runtime.control.context import Control
from crocevia.runtime.turns import Feed, Row, Turns

_KEY: Final = re.compile(rb"[!-~]{1,255}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Execution:
    """The handlers over `turns`."""

    def __init__(self, turns: Turns, clock: Callable[[], float]) -> None:
        self._turns = turns
        self._clock = clock

    async def message(self, request: Request) -> Response:
        body: wire.ChatMessageRequest = request.body
        key = _idempotency_key(request)
        if body.attachment_ids and key is None:
            raise GatewayError(Reason.IDEMPOTENCY_KEY_NEEDED, param="Idempotency-Key")
        ids = body.attachment_ids
        turn_id = await self._turns.send(
            request.caller.user_id,
            request.params["chat_id"],
            body.message,
            key=key,
            wire=_wire(request),
            attachment_ids=ids,
            load_manifests=partial(_carried, request.caller.control, request.params["chat_id"], ids) if ids else None,
        )
        return Response(
            202, wire.ChatMessageAccepted(status="accepted", turn_id=turn_id, attachment_ids=ids if ids else UNSET)
        )

    async def cancel(self, request: Request) -> Response:
        return _accepted(await self._turns.cancel(request.caller.user_id, request.params["chat_id"]))

    async def steer(self, request: Request) -> Response:
        body: wire.SteerRequest = request.body
        turn = self._turns.steer(request.caller.user_id, request.params["chat_id"], body.text, body.target_agent_id)
        return _accepted(await turn)

    async def tool_output(self, request: Request) -> Response:
        body: wire.ToolOutputRequest = request.body
        await self._turns.submit_output(
            request.caller.user_id, request.params["chat_id"], body.call_id, body.output, body.is_error
        )
        return NO_CONTENT

    async def tool_claim(self, request: Request) -> Response:
        body: wire.ToolClaimRequest = request.body
        await self._turns.claim(request.caller.user_id, request.params["chat_id"], body.call_id, body.holder)
        return NO_CONTENT

    async def approval(self, request: Request) -> Response:
        body: wire.ApprovalRequest = request.body
        await self._turns.decide(
            request.caller.user_id, request.params["chat_id"], body.approval_id, body.approve, body.reason or ""
        )
        return NO_CONTENT

    async def fork(self, request: Request) -> Response:
        body: wire.ForkChatRequest = request.body
        source = request.params["chat_id"]
        await self._turns.fork(request.caller.user_id, source, body.destination_chat_id)
        return Response(200, wire.ChatForked(source_chat_id=source, destination_chat_id=body.destination_chat_id))

    async def restore(self, request: Request) -> Response:
        body: wire.RestoreChatRequest = request.body
        items = [(item.kind, item.content) for item in body.orchestrator_context]
        await self._turns.restore(request.caller.user_id, request.params["chat_id"], items)
        return Response(200, wire.RestoreChatAccepted(status="restored", turn_id=None))

    async def events(self, request: Request) -> EventResponse:
        after, epoch = _cursor(request)
        chat_id = request.params["chat_id"]
        feed = await self._turns.events(request.caller.user_id, chat_id, after, epoch)
        encoder = encode_v3.encoder if request.caller.version is Version.THREE else encode_v2.encoder
        frames = _frames(encoder, chat_id, feed)
        if request.caller.version is Version.HISTORICAL:
            return _historical(_whole(frames, await feed.rest()), _headers(feed), self._turns)

        async def run(stream: EventStream) -> None:
            def ping() -> bytes:
                return encoder.ping(chat_id, int(self._clock() * 1000))

            await feed.run(encoder.version, frames, ping, stream.write)

        return EventResponse(run, headers=_headers(feed), over=self._turns.closed)


async def _carried(control: Control, chat_id: str, ids: list[str]) -> list[Raw]:
    """What a message carries, as the journal keeps it."""
    found = await chat_attachments.attach(control, chat_id, ids)
    return [Raw(json.encode(manifest(one))) for one in found]


def _historical(body: bytes, headers: Headers, turns: Turns) -> EventResponse:
    async def run(stream: EventStream) -> None:
        await stream.write(body)

    return EventResponse(run, headers=headers, over=turns.closed)


def _whole(frames: Callable[[Row], bytes], rows: list[Row]) -> bytes:
    """What is stored, whole or not at all: version 2 has no word for an unknown cost."""
    try:
        body = b"".join(map(frames, rows))
    except Unreadable:
        raise GatewayError(Reason.CONTEXT_UNAVAILABLE) from None
    if any(_has_unknown_cost(row) for row in rows):
        raise GatewayError(Reason.CONTRACT_UPGRADE_REQUIRED)
    return body


def _has_unknown_cost(row: Row) -> bool:
    # The fields, not the bytes: arguments and results of tools hold whatever they like.
    spent = (getattr(row.entry, name, None) for name in ("usage", "chat_usage"))
    return any(isinstance(one, Totals) and one.cost_usd is None for one in spent)


def _frames(encoder: Encoder, chat_id: str, feed: Feed) -> Callable[[Row], bytes]:
    epoch = feed.bounds.epoch
    return lambda row: encoder.frame(chat_id, epoch, row.seq, row.entry)


def _headers(feed: Feed) -> Headers:
    bounds = feed.bounds
    return (
        (b"x-envai-stream-epoch", bounds.epoch.encode()),
        (b"x-envai-stream-first-seq", b"%d" % bounds.first),
        (b"x-envai-stream-last-seq", b"%d" % bounds.head),
    )


def _cursor(request: Request) -> tuple[int, str | None]:
    """Where to begin: `after`, or what a browser remembers of the last event if that is later, in the same epoch.

    A browser repeats the address, `after` and all, each time that it comes back.
    """
    values, epochs = request.query.get("after"), request.query.get("epoch")
    epoch = epochs[0] if epochs else None
    if values is not None and (len(values) != 1 or not _NUMBER.fullmatch(values[0])):
        raise GatewayError(Reason.AFTER_INVALID, param="after")
    after = 0 if values is None else int(values[0])
    last = (request.header(b"last-event-id") or b"").decode("latin-1").strip()
    said, mark, number = last.rpartition(":")
    if last and values is None and not _NUMBER.fullmatch(number):  # everything again is not what was asked for
        raise GatewayError(Reason.AFTER_INVALID, param="Last-Event-ID")
    if not _NUMBER.fullmatch(number) or (values is not None and int(number) <= after):
        return after, epoch
    if mark and epoch is not None and said != epoch:
        return after, epoch
    return int(number), epoch or (said if mark else None)


def _idempotency_key(request: Request) -> str | None:
    values = request.headers(b"idempotency-key")
    if not values:
        return None
    if len(values) != 1 or not _KEY.fullmatch(values[0]):
        raise GatewayError(Reason.IDEMPOTENCY_KEY_SHAPE, param="Idempotency-Key")
    return values[0].decode("ascii")


def _wire(request: Request) -> int:
    return 2 if request.caller.version is None else request.caller.version.number


def _accepted(turn_id: str) -> Response:
    return Response(202, wire.TurnAccepted(turn_id=turn_id))


def operations(turns: Turns, clock: Callable[[], float]) -> tuple[Operation, ...]:
    """The rows of the door's table, each at both of its addresses."""
    run = Execution(turns, clock)
    posts: tuple[tuple[str, str, Handler, str, Any, Any, int], ...] = (
        (
            "sendChatMessage",
            "messages",
            run.message,
            "Open a turn with a message; one at a time per chat. The same Idempotency-Key and body give the same turn.",
            wire.ChatMessageRequest,
            wire.ChatMessageAccepted,
            202,
        ),
        (
            "cancelChatTurn",
            "cancel",
            run.cancel,
            "Stop the turn under way, its members and tools with it; it ends in turn.cancelled.",
            None,
            wire.TurnAccepted,
            202,
        ),
        (
            "steerChatTurn",
            "steer",
            run.steer,
            "Say something to an agent at work; it is read before its model is called next.",
            wire.SteerRequest,
            wire.TurnAccepted,
            202,
        ),
        (
            "resolveChatTool",
            "tool-output",
            run.tool_output,
            "The output of a client tool, once per call.",
            wire.ToolOutputRequest,
            None,
            204,
        ),
        (
            "claimChatTool",
            "tool-claim",
            run.tool_claim,
            "Reserve a call of a client tool for one runner: all others get a conflict.",
            wire.ToolClaimRequest,
            None,
            204,
        ),
        (
            "resolveChatApproval",
            "approval",
            run.approval,
            "Answer an approval, once.",
            wire.ApprovalRequest,
            None,
            204,
        ),
        (
            "forkChat",
            "fork",
            run.fork,
            "Copy the whole context of an idle chat into an empty one.",
            wire.ForkChatRequest,
            wire.ChatForked,
            200,
        ),
        (
            "restoreChat",
            "restore",
            run.restore,
            "Replace the context of an idle chat.",
            wire.RestoreChatRequest,
            wire.RestoreChatAccepted,
            200,
        ),
    )
    table = []
    for prefix, suffix, rule in (
        ("/atp/v3/chats/", "", VersionRule.CONTRACT_3),
        ("/chats/", "Legacy", VersionRule.LIVE_2),
    ):
        table += [
            Operation(
                f"{name}{suffix}",
                "POST",
                f"{prefix}{{chat_id}}/{path}",
                handler,
                about,
                body=body,
                result=result,
                status=status,
                rule=rule,
                refuses=(409,),
            )
            for name, path, handler, about, body, result, status in posts
        ]
    return (*table, *_reads(run))


def _reads(run: Execution) -> tuple[Operation, ...]:
    stream = "The chat's events after a cursor, as server-sent events; the stream stays open across turns."
    can = "What this server can do."
    return (
        Operation(
            "streamChatEvents",
            "GET",
            "/atp/v3/chats/{chat_id}/events",
            run.events,
            stream,
            rule=VersionRule.CONTRACT_3,
            produces="text/event-stream",
            refuses=(409,),
        ),
        Operation(
            "streamChatEventsLegacy",
            "GET",
            "/chats/{chat_id}/events",
            run.events,
            stream,
            rule=VersionRule.READ_2,
            produces="text/event-stream",
            refuses=(409,),
        ),
        Operation(
            "getCapabilities",
            "GET",
            "/atp/v3/capabilities",
            capabilities,
            can,
            result=wire.Capabilities3,
            rule=VersionRule.CONTRACT_3,
        ),
        Operation(
            "getCapabilitiesLegacy",
            "GET",
            "/capabilities",
            capabilities,
            can,
            result=wire.Capabilities,
            rule=VersionRule.READ_2,
        ),
    )
