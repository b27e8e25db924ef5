"""A request as a page handles it, and what a page may respond with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.forwarding import Network, client_of, origin_of
from crocevia.core.texts import Language
from crocevia.panel import i18n
from crocevia.panel.services import PanelServices
from crocevia.panel.state import PanelState
from crocevia.runtime.control.audit import Actor

Theme = Literal["auto", "light", "dark"]
LARGEST_FORM: Final = 3 << 20
LARGEST_OF_STRANGERS: Final = 16 << 10
_FIELDS: Final = 500


class Session(msgspec.Struct, frozen=True):
    """Who is signed in."""

    account: str
    digest: str
    """Of the session's cookie."""


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a page."""

    services: PanelServices
    state: PanelState
    http: Request
    language: Language
    theme: Theme
    address: str
    """The client's, behind trusted proxies."""
    session: Session | None = None
    """None: nobody is signed in."""
    waiting: int = 0
    """How many tool calls and approvals wait for an answer."""
    query: dict[str, str] = {}
    """The last value of every name."""
    form: dict[str, str] = {}
    """The last value of every name."""

    def t(self, key: str, **args: Any) -> str:
        """A text of the panel in the reader's language."""
        return i18n.translate(self.language, key, **args)

    @property
    def signed_in(self) -> Session:
        """The session. Raises GatewayError(UNAUTHENTICATED) without one."""
        if self.session is None:
            raise GatewayError(Reason.SIGN_IN_FIRST)
        return self.session

    @property
    def actor(self) -> Actor:
        """The account and address for the audit list."""
        return Actor(self.session.account if self.session else "", self.address)

    @property
    def origin(self) -> str:
        """The server's base URL for callers."""
        if self.services.public_url:
            return self.services.public_url.rstrip("/")
        return origin_of(self.http.url.scheme, _peer(self.http), _forwarding(self.http), self.services.trusted_proxies)

    @property
    def secure(self) -> bool:
        """Whether the browser came over TLS."""
        return self.origin.startswith("https:")


class Breadcrumb(msgspec.Struct, frozen=True):
    """A page above this one."""

    label: str
    href: str


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """A page to render."""

    template: str
    context: msgspec.Struct
    """What the template gets as `page`, and what the page's JSON view is."""
    title: str
    nav: str = ""
    """The entry of the navigation that is current."""
    breadcrumbs: tuple[Breadcrumb, ...] = ()
    status: int = 200
    headers: dict[str, str] = {}


class Redirect(msgspec.Struct, frozen=True):
    """A 303."""

    to: str
    cookies: tuple[tuple[str, str, int], ...] = ()
    """Name, value and lifetime in seconds of each."""


PageResponse: TypeAlias = PageView | Redirect | Response
Handler: TypeAlias = Callable[[PageRequest], Awaitable[PageResponse]]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page's path and handlers."""

    path: str
    get: Handler | None = None
    post: Handler | None = None
    public: bool = False
    """Whether it is shown without signing in."""
    has_json: bool = True
    """Whether the same path with `.json` gives the context as JSON."""


async def read_form(request: Request, most: int = LARGEST_FORM) -> list[tuple[str, str]]:
    """The fields of a posted form. Raises GatewayError INVALID_REQUEST or TOO_LARGE."""
    body = await read_body(request, most)
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise GatewayError(Reason.INVALID_REQUEST) from None


async def read_body(request: Request, most: int) -> bytes:
    """The body. Raises GatewayError TOO_LARGE, or INVALID_REQUEST if the client left."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise GatewayError(Reason.TOO_LARGE, limit=f"{most >> 20} MB" if most >> 20 else f"{most >> 10} KB")
    except ClientDisconnect:
        raise GatewayError(Reason.INVALID_REQUEST) from None
    return bytes(body)


def is_same_site(request: Request) -> bool:
    """Whether a write comes from a page of ours, by `Sec-Fetch-Site` or at least by `Origin`."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def client_address(http: Request, proxies: tuple[Network, ...]) -> str:
    """The client's address, empty if there is none: the peer's, or what trusted proxies say."""
    peer = _peer(http)
    found = client_of(peer, _forwarding(http), proxies)
    return str(found) if found is not None else peer or ""


def _peer(http: Request) -> str | None:
    return http.client.host if http.client else None


def _forwarding(http: Request) -> Callable[[str], str | None]:
    return lambda name: ",".join(http.headers.getlist(name)) or None


def local_path(path: str | None) -> str:
    """`path` if it is one of the panel's, else the panel's first page."""
    ours = path is not None and (path == "/panel" or path.startswith(("/panel/", "/panel?")))
    return path if path is not None and ours and "\\" not in path and path.isprintable() else "/panel"
