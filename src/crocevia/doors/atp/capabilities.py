"""What this server can do, as both versions of the contract say it."""

from __future__ import annotations

from typing import Final

from crocevia.asgi.http import Response
from crocevia.doors.atp.caller import Request, Version
from crocevia.doors.atp.events import EVENT_TYPES
from crocevia.doors.atp.wire.execution import Capabilities, Capabilities3

TOOL_KINDS: Final = ("server", "client", "knowledge")
# Version 2 closes its lists, and its clients refuse whatever is not on them: titles, steering and approvals work
# there all the same.
FEATURES_2: Final = ("replay", "fork", "restore", "ping", "background_delegation", "client_tools")
FEATURES_3: Final = (
    *FEATURES_2,
    "chat_title",
    "steer",
    "approval",
    "durable_replay",
    "stream_epoch",
    "atomic_attach",
    "tool_claims",
    "chat_attachments",
    "chat_attachment_originals",
)

CAPABILITIES_2: Final = Capabilities(
    protocol_version=2,
    families=("turn", "agent"),
    event_types=EVENT_TYPES,
    tool_kinds=TOOL_KINDS,
    features=FEATURES_2,
)
CAPABILITIES_3: Final = Capabilities3(
    protocol_version=3,
    families=("turn", "agent", "chat"),
    event_types=EVENT_TYPES,
    tool_kinds=TOOL_KINDS,
    features=FEATURES_3,
    contract_version=3,
    supported_contract_versions=(2, 3),
    legacy_v2_mode="historical_reads_replay_only",
)


async def capabilities(request: Request) -> Response:
    """The same at all times, during a drain too."""
    return Response(200, CAPABILITIES_3 if request.caller.version is Version.THREE else CAPABILITIES_2)
