"""What the chat kit posts to the panel's playground, and the events it reads. Its wire names are Italian."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from crocevia.core import json


class KitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the kit posts. Fields that the playground has no use for are ignored."""

    kind: Literal["messaggio", "conferma", "nuova", "riprendi", "ferma"] = msgspec.field(name="tipo")
    """A message, an answer to a confirmation, a new chat, a resumed stream, or a stop."""
    conversation: str = msgspec.field(name="conversazione")
    """The kit's id of the chat on the page."""
    message_id: str = msgspec.field(name="turno", default="")
    """The kit's id of a message and of the answer to it."""
    after: int = msgspec.field(name="dopo", default=0)
    """How many events of the answer the page has already."""
    project: str | None = msgspec.field(name="progetto", default=None)
    """None: the page names none."""
    text: str = msgspec.field(name="testo", default="")
    attachments: list[dict[str, Any]] = msgspec.field(name="allegati", default_factory=list)
    """Content blocks as the agent call takes them."""
    action: str = msgspec.field(name="azione", default="")
    """The id of the action that a confirmation is about."""
    outcome: Literal["approvata", "negata"] = msgspec.field(name="esito", default="negata")

    @property
    def approved(self) -> bool:
        """Whether the person allowed the action."""
        return self.outcome == "approvata"


def event(name: str, data: Any) -> bytes:
    """One server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.encode(data))
