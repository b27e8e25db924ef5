"""Client for the Envai API and the Agent Team Protocol: `EnvaiClient`, and `AsyncEnvaiClient`, its async equal."""

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .cancel import CancelToken
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
from .events import AgentRef, Event, UnknownEvent
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
    "AccessDeniedError",
    "AgentRef",
    "AsyncEnvaiClient",
    "AuthenticationError",
    "CancelToken",
    "CancelledError",
    "ClientToolRegistry",
    "CompatibilityError",
    "ConflictError",
    "CursorExpiredError",
    "EnvaiClient",
    "EnvaiError",
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
    "ProtocolError",
    "ProviderError",
    "RateLimitError",
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
    "Timeouts",
    "ToolContext",
    "ToolOutcome",
    "ToolOutput",
    "ToolStateError",
    "TransportError",
    "TurnAccumulator",
    "TurnFailedError",
    "TurnResult",
    "UnknownEvent",
    "UnsafePathError",
    "UnsupportedVersionError",
    "ValidationError",
    "WebhookEvent",
    "__version__",
    "receive_webhook",
]


def __getattr__(name: str) -> Any:
    """Load a client when it is asked for: a program uses one of the two and should not wait for both."""
    if name not in CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{CLIENTS[name]}", __name__), name)
    return value
