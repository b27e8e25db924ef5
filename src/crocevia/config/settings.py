"""What can be set, with its default. Field names are those of the file, except the `gateway` tree, which keeps the
names of the protocol's specification (`maxBodyBytes`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from crocevia.core.limits import Limits
from crocevia.core.mcp import McpServer

Origin: TypeAlias = Literal["default", "file", "env", "flag"]


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Snake case."""


class _Gateway(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The specification's own spelling."""


class Server(_Settings, frozen=True, kw_only=True):
    """public_url: where callers reach the server, if not at host:port. trusted_proxies: addresses or networks
    whose forwarding headers are believed.
    """

    host: str = "127.0.0.1"
    port: int = 8111
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: int = 32 * 1024 * 1024


class Log(_Settings, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Calls(_Settings, frozen=True, kw_only=True):
    """Seconds: without progress from a provider, for a whole call, between pings, and to finish when draining."""

    progress_seconds: float = 600
    overall_seconds: float = 900
    ping_seconds: float = 15
    drain_seconds: float = 10


class Turns(_Settings, frozen=True, kw_only=True):
    """Bounds of a turn. rounds: model answers per agent. depth, children: of delegation. tool_seconds: for one tool of
    the platform or of an MCP server. None: no bound.
    """

    on_restart: Literal["resume", "fail"] = "resume"
    rounds: int = 50
    depth: int = 2
    children: int = 16
    parallel_tools: int = 8
    tool_seconds: float = 120
    wall_seconds: float | None = 3600
    cost_usd: float | None = None


class Search(_Settings, frozen=True, kw_only=True):
    """The classic API's web search: a backend with SearXNG's interface. Without `url` there is no search.

    results: how many the model is given. language: of the results, as the backend names it.
    """

    url: str | None = None
    results: int = 5
    timeout_seconds: float = 10
    language: str = "auto"


class TrustedProxy(_Gateway, frozen=True, kw_only=True):
    user_header: str | None = None
    required_headers: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    allow_loopback: bool = False


class RateLimit(_Gateway, frozen=True, kw_only=True):
    max_attempts: int = 10
    window_ms: int = 60_000
    lockout_ms: int = 300_000
    exempt_loopback: bool = True


class Auth(_Gateway, frozen=True, kw_only=True):
    """Without `token`, mode `token` expects the operator's token that `crocevia init` printed."""

    mode: Literal["token", "password", "trusted-proxy", "none"] = "token"
    token: str | None = None
    password: str | None = None
    trusted_proxy: TrustedProxy = TrustedProxy()
    rate_limit: RateLimit = RateLimit()

    def __repr__(self) -> str:
        return f"Auth(mode={self.mode!r})"


class Pdf(_Gateway, frozen=True, kw_only=True):
    max_pages: int = 4
    max_pixels: int = 4_000_000
    min_text_chars: int = 200


class Files(_Gateway, frozen=True, kw_only=True):
    allow_url: bool = True
    url_allowlist: tuple[str, ...] = ()
    allowed_mimes: tuple[str, ...] = (
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/json",
        "application/pdf",
    )
    max_bytes: int = 5 * 1024 * 1024
    max_chars: int = 60_000
    max_redirects: int = 3
    timeout_ms: int = 10_000
    pdf: Pdf = Pdf()


class Images(_Gateway, frozen=True, kw_only=True):
    allow_url: bool = True
    url_allowlist: tuple[str, ...] = ()
    allowed_mimes: tuple[str, ...] = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif")
    max_bytes: int = 10 * 1024 * 1024
    max_redirects: int = 3
    timeout_ms: int = 10_000


class Responses(_Gateway, frozen=True, kw_only=True):
    enabled: bool = False
    max_body_bytes: int = 20_000_000
    max_url_parts: int = 8
    store_days: int = 30
    files: Files = Files()
    images: Images = Images()


class ChatCompletions(_Gateway, frozen=True, kw_only=True):
    enabled: bool = False
    max_body_bytes: int = 20_000_000


class Endpoints(_Gateway, frozen=True, kw_only=True):
    responses: Responses = Responses()
    chat_completions: ChatCompletions = ChatCompletions()


class Models(_Gateway, frozen=True, kw_only=True):
    """expose_catalog: models answer by their own names too. prefix: what agents' names begin with."""

    expose_catalog: bool = False
    prefix: str = "openclaw"


class Http(_Gateway, frozen=True, kw_only=True):
    endpoints: Endpoints = Endpoints()
    models: Models = Models()


class Gateway(_Gateway, frozen=True, kw_only=True):
    auth: Auth = Auth()
    http: Http = Http()
    trusted_proxies: tuple[str, ...] = ()


class Settings(_Settings, frozen=True, kw_only=True):
    """Every setting, and where each one that is not a default came from (`origins`, by dotted path)."""

    server: Server = Server()
    log: Log = Log()
    calls: Calls = Calls()
    turns: Turns = Turns()
    limits: Limits = Limits()
    mcp: dict[str, McpServer] = {}
    search: Search = Search()
    gateway: Gateway = Gateway()
    origins: dict[str, Origin] = {}

    def origin(self, path: str) -> Origin:
        """Where the value at `path` (`gateway.http.endpoints.responses.enabled`) came from."""
        return self.origins.get(path, "default")
