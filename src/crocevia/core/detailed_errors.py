"""Errors with details that a program reads too: doors make headers and fields of them."""

from __future__ import annotations

from crocevia.core.errors import GatewayError, Reason


class MethodNotAllowed(GatewayError):
    """allowed: the methods of this address, as the `Allow` header lists them."""

    def __init__(self, allowed: str) -> None:
        super().__init__(Reason.METHOD_NOT_ALLOWED, allowed=allowed)
        self.allowed = allowed


class ScopeMissing(GatewayError):
    """scope: what the credentials would need."""

    def __init__(self, scope: str) -> None:
        super().__init__(Reason.SCOPE_MISSING, scope=scope)
        self.scope = scope


class CursorExpired(GatewayError):
    """No stream can resume there. why: `epoch_changed`, `trimmed` or `ahead`; the rest is what the log holds."""

    def __init__(self, why: str, *, epoch: str, first_seq: int, last_seq: int) -> None:
        super().__init__(
            Reason.CURSOR_EXPIRED, param="after", reason=why, epoch=epoch, first_seq=first_seq, last_seq=last_seq
        )
        self.why = why
        self.epoch = epoch
        self.first_seq = first_seq
        self.last_seq = last_seq


class TurnInProgress(GatewayError):
    """turn_id: of the one under way. waiting_for: `approval`, `client_tool` or `nothing`."""

    def __init__(self, turn_id: str, waiting_for: str) -> None:
        super().__init__(Reason.TURN_IN_PROGRESS)
        self.turn_id = turn_id
        self.waiting_for = waiting_for
