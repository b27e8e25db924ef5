"""What can be set, with its default. Field names are those of the file, except the `gateway` tree, which keeps the
names of the protocol's specification (`maxBodyBytes`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from crocevia.core.limits import Quotas
from crocevia.core.mcp import McpServer

Origin: TypeAlias = Literal["default", "file", "env", "flag"]


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Snake case."""


class _Gateway(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The specification's own spelling."""


class ServerSettings(_Settings, frozen=True, kw_only=True):
    """The process itself."""

    host: str = "127.0.0.1"
    """The address that the server listens on."""
    port: int = 8111
    """The port; 0 takes any free one."""
    public_url: str | None = None
    """Where callers reach the server, if not at host and port; links and samples use it."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose forwarding headers are believed."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser, such as `https://app.example.org`; `*` stands for all. The
    panel is never among what they may call. Where the gateway asks for no secret, only origins named here get in.
    """
    max_body_bytes: int = 32 * 1024 * 1024
    """The largest request body of `/agent` and the classic API, in bytes."""
    bodies_in_flight_bytes: int = 256 * 1024 * 1024
    """What the bodies of all requests may have together while they are read, in bytes; more wait, then are refused with
    503. One key never has more than half.
    """


class LogSettings(_Settings, frozen=True, kw_only=True):
    """What the server writes to its standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least serious lines that are written."""
    format: Literal["console", "json"] = "console"
    """`json` writes one object a line."""


class Calls(_Settings, frozen=True, kw_only=True):
    """Time limits of model calls."""

    progress_seconds: float = 600
    """A call ends when its provider sends nothing for so long."""
    overall_seconds: float = 900
    """The longest that a whole call may take."""
    ping_seconds: float = 15
    """How often a silent stream sends a ping."""
    drain_seconds: float = 10
    """How long calls under way may go on when the server stops."""


class TurnsSettings(_Settings, frozen=True, kw_only=True):
    """Bounds of an agent's turn."""

    on_restart: Literal["resume", "fail"] = "resume"
    """What becomes of open turns when the server starts again."""
    rounds: int = 50
    """Model answers per agent."""
    depth: int = 2
    """Levels of delegation."""
    children: int = 16
    """Agents that one agent may have started."""
    parallel_tools: int = 8
    """Tools of one agent at the same time."""
    tool_seconds: float = 120
    """For one tool of the platform or of an MCP server."""
    wall_seconds: float | None = 3600
    """For a whole turn, from its start; none: no bound."""
    cost_usd: float | None = None
    """For a whole turn; none: no bound."""


class Search(_Settings, frozen=True, kw_only=True):
    """The classic API's web search."""

    url: str | None = None
    """A backend with SearXNG's interface; none: no search."""
    results: int = 5
    """How many the model is given, 1 to 20."""
    timeout_seconds: float = 10
    """For one search."""
    language: str = "auto"
    """Of the results, as the backend names it."""


class TrustedProxy(_Gateway, frozen=True, kw_only=True):
    """For mode `trusted-proxy`."""

    user_header: str | None = None
    """The header in which the proxy names the user."""
    required_headers: tuple[str, ...] = ()
    """Headers that every request must carry."""
    allow_users: tuple[str, ...] = ()
    """Users that may call; empty: all."""
    allow_loopback: bool = False
    """Whether a proxy on this machine is trusted."""


class RateLimit(_Gateway, frozen=True, kw_only=True):
    """Of attempts to sign in with a wrong secret."""

    max_attempts: int = 10
    """Wrong secrets of one address within the window."""
    window_ms: int = 60_000
    """The window, in milliseconds."""
    lockout_ms: int = 300_000
    """How long an address is refused after that, in milliseconds."""
    exempt_loopback: bool = True
    """Whether this machine is never locked out."""


class Auth(_Gateway, frozen=True, kw_only=True):
    """Who may call the Open Responses surface."""

    mode: Literal["token", "password", "trusted-proxy", "none"] = "token"
    """How callers prove that they are the operator."""
    token: str | None = None
    """For mode `token`; none: the operator's token that `crocevia init` printed."""
    password: str | None = None
    """For mode `password`."""
    trusted_proxy: TrustedProxy = TrustedProxy()
    rate_limit: RateLimit = RateLimit()

    def __repr__(self) -> str:
        return f"Auth(mode={self.mode!r})"


class Pdf(_Gateway, frozen=True, kw_only=True):
    """How documents become pictures for models that read none."""

    max_pages: int = 4
    """Pages of one document that are given as pictures."""
    max_pixels: int = 4_000_000
    """Of one page as a picture."""
    min_text_chars: int = 200
    """A document with less text is given as pictures of its pages."""


class Files(_Gateway, frozen=True, kw_only=True):
    """Files that callers of `/v1/responses` attach."""

    allow_url: bool = True
    """Whether files may be given by URL."""
    url_allowlist: tuple[str, ...] = ()
    """Hosts that they may come from; empty: any public one."""
    allowed_mimes: tuple[str, ...] = (
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/json",
        "application/pdf",
    )
    """Media types that are accepted."""
    max_bytes: int = 5 * 1024 * 1024
    """Of one file."""
    max_chars: int = 60_000
    """Of the text of one file; the rest is cut."""
    max_redirects: int = 3
    """How many are followed."""
    timeout_ms: int = 10_000
    """For fetching one, in milliseconds."""
    pdf: Pdf = Pdf()


class Images(_Gateway, frozen=True, kw_only=True):
    """Pictures that callers of `/v1/responses` attach."""

    allow_url: bool = True
    """Whether pictures may be given by URL."""
    url_allowlist: tuple[str, ...] = ()
    """Hosts that they may come from; empty: any public one."""
    allowed_mimes: tuple[str, ...] = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif")
    """Media types that are accepted."""
    max_bytes: int = 10 * 1024 * 1024
    """Of one picture."""
    max_redirects: int = 3
    """How many are followed."""
    timeout_ms: int = 10_000
    """For fetching one, in milliseconds."""


class ResponsesSettings(_Gateway, frozen=True, kw_only=True):
    """`/v1/responses`."""

    enabled: bool = False
    """Whether `/v1/responses` is served."""
    max_body_bytes: int = 20_000_000
    """The largest request body, in bytes."""
    max_url_parts: int = 8
    """Files and pictures by URL in one request."""
    store_days: int = 30
    """How long stored answers are kept."""
    files: Files = Files()
    images: Images = Images()


class ChatCompletions(_Gateway, frozen=True, kw_only=True):
    """`/v1/chat/completions`."""

    enabled: bool = False
    """Whether `/v1/chat/completions` is served."""
    max_body_bytes: int = 20_000_000
    """The largest request body, in bytes."""


class Endpoints(_Gateway, frozen=True, kw_only=True):
    """What the surface serves, each off by default."""

    responses: ResponsesSettings = ResponsesSettings()
    chat_completions: ChatCompletions = ChatCompletions()


class Models(_Gateway, frozen=True, kw_only=True):
    """expose_catalog: models answer by their own names too. prefix: what agents' names begin with."""

    expose_catalog: bool = False
    """Whether the catalogue's models answer by their own names too."""
    prefix: str = "openclaw"
    """What the names of agents begin with."""


class Http(_Gateway, frozen=True, kw_only=True):
    """The surface's HTTP side."""

    endpoints: Endpoints = Endpoints()
    models: Models = Models()


class GatewaySettings(_Gateway, frozen=True, kw_only=True):
    """The Open Responses surface as its specification groups it."""

    auth: Auth = Auth()
    http: Http = Http()
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies that mode `trusted-proxy` and forwarding headers may come from."""


class Settings(_Settings, frozen=True, kw_only=True):
    """Every setting."""

    server: ServerSettings = ServerSettings()
    """The process itself."""
    log: LogSettings = LogSettings()
    """What the process writes about itself."""
    calls: Calls = Calls()
    """Time limits of model calls."""
    turns: TurnsSettings = TurnsSettings()
    """Bounds of an agent's turn."""
    limits: Quotas = Quotas()
    """How much may be kept."""
    mcp: dict[str, McpServer] = {}
    """Servers of the Model Context Protocol, each under a name of its own."""
    search: Search = Search()
    """The classic API's web search."""
    gateway: GatewaySettings = GatewaySettings()
    """The Open Responses surface, in the spelling of its specification."""
    origins: dict[str, Origin] = {}

    def origin(self, path: str) -> Origin:
        """Where the value at `path` (`gateway.http.endpoints.responses.enabled`) came from."""
        return self.origins.get(path, "default")
