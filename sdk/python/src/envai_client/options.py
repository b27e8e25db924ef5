"""What a client is configured with. Values only; every limit is stated here and nowhere else."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from ._version import __version__
from .secrets import Secret

API_PREFIX = "/api/v1"
ContractVersion: TypeAlias = Literal["auto", 2, 3]


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. `stream_idle` bounds the silence on a stream, heartbeats included; `attach` the wait for the first."""

    connect: float = 10.0
    request: float = 30.0
    stream_connect: float = 10.0
    stream_idle: float = 45.0
    attach: float = 45.0


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """For GET only. A `Retry-After` beyond `max_retry_after` is not slept: the error is raised with its value."""

    max_retries: int = 2
    base_delay: float = 0.5
    max_delay: float = 8.0
    max_retry_after: float = 30.0


class ReconnectPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Failures in a row before a stream gives up; progress, or a connection that lived `healthy_after`, clears them."""

    max_reconnects: int = 5
    max_seconds: float | None = None
    base_delay: float = 0.25
    max_delay: float = 10.0
    max_retry_after: float = 60.0
    healthy_after: float = 30.0


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
    observer: Callable[[Any], None] | None = None


def read_options(
    *, api_key: str | None, base_url: str, jwks_url: str | None, sdk_name: str | None, **given: Any
) -> Options:
    """Check and complete what the application passed. Raises ValueError, naming the setting and never its value."""
    if api_key is not None and (not api_key.strip() or not api_key.isascii() or not api_key.isprintable()):
        raise ValueError("api_key must be a non-empty printable ASCII string")
    base = normalize_base_url(base_url)
    return Options(
        api_key=Secret(api_key) if api_key is not None else None,
        base_url=base,
        jwks_url=jwks_url or origin_of(base) + "/.well-known/jwks.json",
        webhook_jwks_url=origin_of(base) + "/.well-known/wiki-webhook-jwks.json",
        user_agent=user_agent(sdk_name),
        **given,
    )


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
