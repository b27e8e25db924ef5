"""Client for the Envai API and the Agent Team Protocol: `EnvaiClient`, and `AsyncEnvaiClient`, its async equal."""

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from ._version import __version__
from .cancel import CancelToken
from .core import RawResponse
from .errors import (
    AccessDeniedError,
    AuthenticationError,
    CancelledError,
    CompatibilityError,
    ConflictError,
    CursorExpiredError,
    EnvaiError,
    FileError,
    InvalidEventError,
    InvalidFrameError,
    InvalidResponseError,
    NotFoundError,
    ProtocolError,
    ProviderError,
    RateLimitError,
    RedirectRefusedError,
    ReplayGapError,
    RequestTimeoutError,
    ServerError,
    SignatureError,
    StreamInterruptedError,
    StreamInUseError,
    ToolStateError,
    TransportError,
    UnsafePathError,
    UnsupportedVersionError,
    ValidationError,
)
from .events import (
    AgentDoneEvent,
    AgentFailedEvent,
    AgentRef,
    AgentStartedEvent,
    ApprovalExpireEvent,
    ApprovalRequestEvent,
    ApprovalResponseEvent,
    ArtifactEvent,
    CompactedEvent,
    CompactingEvent,
    DelegatedEvent,
    EscalateEvent,
    EscalationResultEvent,
    Event,
    PingEvent,
    PlanEvent,
    ReasoningDeltaEvent,
    ReasoningDoneEvent,
    TerminalEvent,
    TextDeltaEvent,
    TextDoneEvent,
    TextResetEvent,
    TitleUpdatedEvent,
    ToolCompleteEvent,
    ToolDeltaEvent,
    ToolRequestEvent,
    ToolResultEvent,
    ToolStartEvent,
    TurnCancelledEvent,
    TurnCompletedEvent,
    TurnFailedEvent,
    TurnStartedEvent,
    TurnSteeredEvent,
    UnknownEvent,
    parse_event,
)
from .helpers import ForkFailedError, ForkResult
from .ledger import Ledger, Record, SqliteLedger
from .options import ReconnectPolicy, RetryPolicy, Timeouts
from .tools import ClientToolRegistry, ToolContext, ToolOutcome, ToolOutput
from .turns import TurnAccumulator, TurnFailedError, TurnResult
from .webhooks import FileDeleted, FileProcessed, OperationEnded, WebhookEvent, receive_webhook

if TYPE_CHECKING:
    from .async_client import AsyncEnvaiClient
    from .client import EnvaiClient

CLIENTS = {"AsyncEnvaiClient": "async_client", "EnvaiClient": "client"}

__all__ = [
    "UNSET",
    "AccessDeniedError",
    "AgentDoneEvent",
    "AgentFailedEvent",
    "AgentRef",
    "AgentStartedEvent",
    "ApprovalExpireEvent",
    "ApprovalRequestEvent",
    "ApprovalResponseEvent",
    "ArtifactEvent",
    "AsyncEnvaiClient",
    "AuthenticationError",
    "CancelToken",
    "CancelledError",
    "ClientToolRegistry",
    "CompactedEvent",
    "CompactingEvent",
    "CompatibilityError",
    "ConflictError",
    "CursorExpiredError",
    "DelegatedEvent",
    "EnvaiClient",
    "EnvaiError",
    "EscalateEvent",
    "EscalationResultEvent",
    "Event",
    "FileDeleted",
    "FileError",
    "FileProcessed",
    "ForkFailedError",
    "ForkResult",
    "InvalidEventError",
    "InvalidFrameError",
    "InvalidResponseError",
    "Ledger",
    "NotFoundError",
    "OperationEnded",
    "PingEvent",
    "PlanEvent",
    "ProtocolError",
    "ProviderError",
    "RateLimitError",
    "RawResponse",
    "ReasoningDeltaEvent",
    "ReasoningDoneEvent",
    "ReconnectPolicy",
    "Record",
    "RedirectRefusedError",
    "ReplayGapError",
    "RequestTimeoutError",
    "RetryPolicy",
    "ServerError",
    "SignatureError",
    "SqliteLedger",
    "StreamInUseError",
    "StreamInterruptedError",
    "TerminalEvent",
    "TextDeltaEvent",
    "TextDoneEvent",
    "TextResetEvent",
    "Timeouts",
    "TitleUpdatedEvent",
    "ToolCompleteEvent",
    "ToolContext",
    "ToolDeltaEvent",
    "ToolOutcome",
    "ToolOutput",
    "ToolRequestEvent",
    "ToolResultEvent",
    "ToolStartEvent",
    "ToolStateError",
    "TransportError",
    "TurnAccumulator",
    "TurnCancelledEvent",
    "TurnCompletedEvent",
    "TurnFailedError",
    "TurnFailedEvent",
    "TurnResult",
    "TurnStartedEvent",
    "TurnSteeredEvent",
    "UnknownEvent",
    "UnsafePathError",
    "UnsetType",
    "UnsupportedVersionError",
    "ValidationError",
    "WebhookEvent",
    "__version__",
    "parse_event",
    "receive_webhook",
]


if not TYPE_CHECKING:  # a checker would take every misspelt name for one of these

    def __getattr__(name: str) -> object:
        """Load a client when it is asked for: a program uses one of the two and should not wait for both."""
        if name not in CLIENTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f".{CLIENTS[name]}", __name__), name)
        return value
