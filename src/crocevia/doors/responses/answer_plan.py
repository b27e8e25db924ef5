"""One answer to be made: who answers, with what, to what, and the row that it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from crocevia.core import json
from crocevia.doors.responses import options, wire
from crocevia.doors.responses.items import Sealed, with_blocks
from crocevia.doors.responses.options import Tools
from crocevia.runtime.answers_store import Link, StoredResponse
from crocevia.runtime.gateway import CallDraft
from crocevia.runtime.session_turns import SessionTurn
from crocevia.runtime.turns.run_service import RunSpec

ENCODE: Final = "responses"
_TICK: Final = 1e-4  # seconds


class AnswerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to be made."""

    user_id: str
    tools: Tools
    draft: CallDraft
    """The call of a model that it is."""
    model: str
    order: RunSpec | None
    """The run of an agent that it is instead of a call."""
    resource: wire.Resource
    link: Link
    session: str | None
    given: bytes
    """The items of this request alone, as JSON."""
    seal: Callable[[bytes], str] | None
    """How what the engine wants back leaves, if the caller asked for it."""
    stream: bool
    background: bool
    past: tuple[StoredResponse, ...] = ()
    """What it goes on from."""
    turn: SessionTurn | None = None
    """Its right to speak in its session."""

    @property
    def keep(self) -> bool:
        """Whether it is stored."""
        return self.resource.store or self.session is not None

    def stored(
        self,
        shown: wire.Resource,
        keep_seconds: float,
        events: bytes | None = None,
        chat: str | None = None,
        blocks: Sealed | None = None,
    ) -> StoredResponse:
        """The row of the answer as it is now. chat: the one in which it is a turn. blocks: how its engine gave it, for
        the conversation to go on with.
        """
        now = time.time()
        # Sessions are told in the order of time: a clock that was set back must not change it.
        earliest = self.past[-1].created_at + _TICK if self.past else 0.0
        return StoredResponse(
            id=shown.id,
            subject=self.link.subject,
            agent=self.link.agent,
            session=self.session,
            previous_id=shown.previous_response_id,
            status=shown.status,
            visible=self.resource.store,
            created_at=max(now, earliest),
            expires_at=now + keep_seconds,
            input=self.given,
            resource=json.encode(shown if blocks is None else with_blocks(shown, blocks)),
            events=events,
            chat=chat,
        )


def revived(stored: StoredResponse) -> AnswerPlan:
    """What is known of an answer that an earlier process began. Raises GatewayError, msgspec.MsgspecError."""
    shown = msgspec.json.decode(stored.resource, type=wire.Resource)
    given = [
        wire.Tool(
            type=tool.type,
            name=tool.name,
            description=tool.description,
            parameters=Raw(bytes(tool.parameters)),
            namespace=tool.namespace or None,
        )
        for tool in shown.tools
    ]
    choice = shown.tool_choice
    return AnswerPlan(
        user_id="",
        tools=options.tools(given, choice if isinstance(choice, str) else msgspec.convert(choice, wire.Choice)),
        draft=CallDraft(door="responses", encode=ENCODE, messages=()),
        model="",
        order=None,
        resource=msgspec.structs.replace(shown, status="in_progress"),
        link=Link(stored.subject, stored.agent, stored.session),
        session=stored.session,
        given=stored.input,
        seal=None,
        stream=True,
        background=shown.background,
    )


def turn_of(answer_id: str) -> str:
    """The turn that an answer is."""
    return "cmpl_" + answer_id.partition("_")[2]
