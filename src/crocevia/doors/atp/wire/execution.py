"""The execution plane on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.wire.common import Body

MAX_OUTPUT = 131_072  # bytes of a client tool's output

ULID = "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}"
Text = Annotated[str, Meta(min_length=1)]


class ChatMessageRequest(Body, frozen=True, kw_only=True):
    message: Text
    attachment_ids: Annotated[list[str], Meta(max_length=10)] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if len(set(self.attachment_ids)) != len(self.attachment_ids):
            raise FieldError("attachment_ids", Reason.GIVEN_TWICE_INSIDE)


class ChatMessageAccepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: Literal["accepted"]
    turn_id: str
    attachment_ids: list[str] | UnsetType = UNSET


class TurnAccepted(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: str


class SteerRequest(Body, frozen=True, kw_only=True):
    text: Text
    target_agent_id: Annotated[str, Meta(pattern=f"^ag_{ULID}$")] | None = None


class ToolOutputRequest(Body, frozen=True, kw_only=True):
    call_id: Annotated[str, Meta(min_length=1, max_length=64)]
    output: Annotated[str, Meta(max_length=MAX_OUTPUT)]
    is_error: bool = False

    def __post_init__(self) -> None:
        if not self.output or len(self.output.encode()) > MAX_OUTPUT:
            raise FieldError("output", Reason.OUTPUT_SIZE)


class ToolClaimRequest(Body, frozen=True, kw_only=True):
    """holder: a name that the runner draws for itself and keeps."""

    call_id: Annotated[str, Meta(min_length=1, max_length=64)]
    holder: Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9._-]+$")]


class ApprovalRequest(Body, frozen=True, kw_only=True):
    approval_id: Annotated[str, Meta(min_length=1, max_length=64)]
    approve: bool
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class ForkChatRequest(Body, frozen=True, kw_only=True):
    destination_chat_id: Annotated[str, Meta(max_length=64)]


class ChatForked(msgspec.Struct, frozen=True, kw_only=True):
    source_chat_id: str
    destination_chat_id: str


class ContextItem(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    content: str
    turn_id: str | None = None


class RestoreChatRequest(Body, frozen=True, kw_only=True):
    orchestrator_context: list[ContextItem]


class RestoreChatAccepted(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["restored"]
    turn_id: None


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    protocol_version: int
    families: tuple[str, ...]
    event_types: tuple[str, ...]
    tool_kinds: tuple[str, ...]
    features: tuple[str, ...]


class Capabilities3(Capabilities, frozen=True, kw_only=True):
    contract_version: int
    supported_contract_versions: tuple[int, ...]
    legacy_v2_mode: str
