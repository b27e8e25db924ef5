"""What a client is configured with. Values only; every limit is stated here and nowhere else."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from ._version import __version__
from .secrets import Secret
from .signals import Signal

API_PREFIX = "/api/v1"
ContractVersion: TypeAlias = Literal["auto", 2, 3]


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. `stream_idle` bounds the silence on a stream, heartbeats included; `attach` the wait for the first."""

    connect: float = 10.0
    request: float = 30.0
    stream_connect: float = 10.0
    stream_idle: float = 45.0
    attach: float = 45.0

    def __post_init__(self) -> None:
        check_numbers(self)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """For GET only. A `Retry-After` beyond `max_retry_after` is not slept: the error is raised with its value."""

    max_retries: int = 2
    base_delay: float = 0.5
    max_delay: float = 8.0
    max_retry_after: float = 30.0

    def __post_init__(self) -> None:
        check_numbers(self)


class ReconnectPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Failures in a row before a stream gives up; progress, or a connection that lived `healthy_after`, clears them."""

    max_reconnects: int = 5
    max_seconds: float | None = None
    base_delay: float = 0.25
    max_delay: float = 10.0
    max_retry_after: float = 60.0
    healthy_after: float = 30.0

    def __post_init__(self) -> None:
        check_numbers(self)


def check_numbers(policy: msgspec.Struct) -> None:
    """Raises TypeError or ValueError for a field that is no number from 0 on (or None where that is the default)."""
    for field in msgspec.structs.fields(policy):
        value = getattr(policy, field.name)
        if value is None and field.default is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if field.type == "int" else (int, float)):
            raise TypeError(f"{type(policy).__name__}.{field.name} must be a number, not {type(value).__name__}")
        if not value >= 0:
            raise ValueError(f"{type(policy).__name__}.{field.name} must not be negative")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the transport. `trace_headers` is asked for each request and only tracing names pass."""

    api_key: Secret | None
    base_url: str
    jwks_url: str
    webhook_jwks_url: str
    user_agent: str
    contract_version: ContractVersion = "auto"
    timeouts: Timeouts = Timeouts()
    retry: RetryPolicy = RetryPolicy()
    reconnect: ReconnectPolicy = ReconnectPolicy()
    jwks_ttl: float = 300.0
    max_frame_bytes: int = 16 * 1024 * 1024
    trace_headers: Callable[[], Mapping[str, str]] | None = None
    observer: Callable[[Signal], None] | None = None


KINDS: dict[str, type | tuple[type, ...]] = {
    "timeouts": Timeouts,
    "retry": RetryPolicy,
    "reconnect": ReconnectPolicy,
    "jwks_ttl": (int, float),
    "max_frame_bytes": int,
}


def read_options(
    *, api_key: str | None, base_url: str | None, jwks_url: str | None, sdk_name: str | None, **given: Any
) -> Options:
    """Check and complete what the application passed. Raises TypeError and ValueError, naming the setting alone.

    The key and the base URL come from ENVAI_API_KEY and ENVAI_BASE_URL where they are not passed.
    """
    api_key = api_key if api_key is not None else os.environ.get("ENVAI_API_KEY") or None
    base_url = base_url if base_url is not None else os.environ.get("ENVAI_BASE_URL") or None
    if base_url is None:
        raise ValueError("base_url is missing: pass it, or set ENVAI_BASE_URL")
    if api_key is not None and (not api_key.strip() or not api_key.isascii() or not api_key.isprintable()):
        raise ValueError("api_key must be a non-empty printable ASCII string")
    check_kinds(given)
    base = normalize_base_url(base_url)
    return Options(
        api_key=Secret(api_key) if api_key is not None else None,
        base_url=base,
        jwks_url=jwks_url or origin_of(base) + "/.well-known/jwks.json",
        webhook_jwks_url=origin_of(base) + "/.well-known/wiki-webhook-jwks.json",
        user_agent=user_agent(sdk_name),
        **given,
    )


def check_kinds(given: dict[str, Any]) -> None:
    for name, value in given.items():
        wanted = KINDS.get(name)
        if wanted is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
            called = "a number" if isinstance(wanted, tuple) else wanted.__name__
            raise TypeError(f"{name} must be {called}, not {type(value).__name__}")
        if name in ("observer", "trace_headers") and value is not None and not callable(value):
            raise TypeError(f"{name} must be callable, not {type(value).__name__}")
        if name == "contract_version" and value not in ("auto", 2, 3):
            raise ValueError('contract_version must be 2, 3 or "auto"')


def user_agent(sdk_name: str | None) -> str:
    runtime = f"({platform.python_implementation().lower()}/{platform.python_version()})"
    return f"{sdk_name or f'envai-python/{__version__}'} {runtime}"


def normalize_base_url(url: str) -> str:
    """`url` ending in `/api/v1` exactly once, without a trailing slash."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must be an absolute http or https URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("base_url must carry no credentials, query or fragment")
    path = parts.path.rstrip("/")
    path = path if path.endswith(API_PREFIX) else path + API_PREFIX
    return f"{parts.scheme}://{parts.netloc}{path}"


def origin_of(url: str) -> str:
    """Scheme, host and explicit or default port, lower-cased: what two URLs must share to share credentials."""
    parts = urlsplit(url)
    port = parts.port
    default = {"http": 80, "https": 443}.get(parts.scheme)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port and port != default else "")
