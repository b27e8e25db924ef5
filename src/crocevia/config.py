"""A server's own settings: a file in the home, the environment over it, command-line flags over both.

Field names in the file are the names here, except the `gateway` tree, which keeps the names of the protocol's
specification (`maxBodyBytes`). In the environment a path is spelled `CROCEVIA_SERVER__PORT`, without regard to case
or to single underscores.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec

from crocevia.core.declared import Problem, Refused, join, read, read_value, struct_of, unknown
from crocevia.core.errors import say
from crocevia.runtime.control.tables import DECLARED_TABLES
from crocevia.runtime.mcp import McpServer
from crocevia.storage.home import Home

Origin: TypeAlias = Literal["default", "file", "env", "flag"]

PREFIX: Final = "CROCEVIA_"
ALIASES: Final = {
    "OPENCLAW_GATEWAY_TOKEN": "gateway.auth.token",
    "OPENCLAW_GATEWAY_PASSWORD": "gateway.auth.password",
}
_LARGEST_FILE: Final = 1 << 20


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
    """Bounds of a turn. rounds: model answers per agent. depth, children: of delegation. None: no bound."""

    on_restart: Literal["resume", "fail"] = "resume"
    rounds: int = 50
    depth: int = 2
    children: int = 16
    parallel_tools: int = 8
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
    mcp: dict[str, McpServer] = {}
    search: Search = Search()
    gateway: Gateway = Gateway()
    origins: dict[str, Origin] = {}

    def origin(self, path: str) -> Origin:
        """Where the value at `path` (`gateway.http.endpoints.responses.enabled`) came from."""
        return self.origins.get(path, "default")


def load(
    home: Home | Path,
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of `home`. `flags`: dotted path to value, None for «not given».

    file: instead of HOME/crocevia.toml (or HOME/crocevia.json5), and then it must exist.
    Raises Refused with every problem found.
    """
    problems: list[Problem] = []
    tree = _read_file(file or _default_file(home), problems, needed=file is not None)
    refuse_declared(tree, problems)
    if tree.pop("origins", None) is not None:
        problems.append(Problem("origins", unknown("origins", ())))
    origins: dict[str, Origin] = dict.fromkeys(_leaves(tree, Settings), "file")
    for path, text, name in _overrides(environment, problems):
        wrong: list[Problem] = []
        value = _from_text(path, text, name, wrong)
        problems.extend(wrong)
        if not wrong:
            _put(tree, path, value)
            origins[path] = "env"
    for path, value in (flags or {}).items():
        if value is not None:
            _put(tree, path, value)
            origins[path] = "flag"
    settings = read(Settings, tree, "", problems)
    if settings is not None:
        _check(settings, problems)
    if problems or settings is None:
        raise Refused(problems)
    return msgspec.structs.replace(settings, origins=origins)


def refuse_declared(tree: dict[str, Any], problems: list[Problem]) -> None:
    """Take what belongs to `crocevia apply` out of `tree`, as problems with a hint."""
    for name in [name for name in tree if name in DECLARED_TABLES]:
        del tree[name]
        problems.append(Problem(name, say("table_of_apply")))


def _default_file(home: Home | Path) -> Path:
    path = home if isinstance(home, Path) else home.path
    json5 = path / "crocevia.json5"
    toml = path / "crocevia.toml"
    return json5 if json5.exists() and not toml.exists() else toml


def _read_file(path: Path, problems: list[Problem], *, needed: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as opened:
            text = opened.read(_LARGEST_FILE + 1).decode("utf-8")
        if len(text) > _LARGEST_FILE:
            raise ValueError("more than 1 MB")
        tree = _parse(path, text)
    except FileNotFoundError:
        if needed:
            problems.append(Problem(str(path), say("file_missing")))
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(path.name, say("file_malformed", reason=_reason(error))))
        return {}
    if not isinstance(tree, dict):
        problems.append(Problem(path.name, say("field_type", expected="table")))
        return {}
    return tree


def _parse(path: Path, text: str) -> Any:
    if path.suffix not in (".json", ".json5"):
        return tomllib.loads(text)
    import pyjson5

    return pyjson5.decode(text)


def _reason(error: Exception) -> str:
    if isinstance(error, tomllib.TOMLDecodeError):
        return str(error)
    return (
        type(error).__name__ if isinstance(error, OSError | UnicodeDecodeError) else str(error).partition("\n")[0][:120]
    )


def _overrides(environment: Mapping[str, str], problems: list[Problem]) -> list[tuple[str, str, str]]:
    """(path, text, variable) of every variable that sets something; aliases first, so that our own names win."""
    found = [(path, environment[name], name) for name, path in ALIASES.items() if environment.get(name)]
    known = {_flat(path): path for path in _paths(Settings)}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        path = known.get(_flat(name.removeprefix(PREFIX).replace("__", ".")))
        if path is None:
            spelled = {PREFIX + path.upper().replace(".", "__") for path in known.values()}
            problems.append(Problem(name, unknown(name, spelled)))
        else:
            found.append((path, environment[name], name))
    return found


def _flat(path: str) -> str:
    return path.replace("_", "").lower()


def _from_text(path: str, text: str, name: str, problems: list[Problem]) -> Any:
    expected = _type_at(path)
    value: Any = text
    if get_origin(expected) is tuple:
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif bool in (get_args(expected) or (expected,)):
        value = {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(text.lower(), text)
    return read_value(expected, value, name, problems, strict=False)


def _type_at(path: str) -> Any:
    kind: Any = Settings
    for part in path.split("."):
        struct = struct_of(kind)
        assert struct is not None
        kind = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}[part]
    return kind


def _paths(kind: type[msgspec.Struct], place: str = "") -> list[str]:
    found: list[str] = []
    for field in msgspec.structs.fields(kind):
        path = join(place, field.encode_name)
        nested = struct_of(field.type)
        if nested is not None:
            found.extend(_paths(nested, path))
        elif path != "origins":
            found.append(path)
    return found


def _leaves(tree: Any, kind: type[msgspec.Struct]) -> list[str]:
    """Paths of the settings that `tree` gives a value to."""
    return [path for path in _paths(kind) if _has(tree, path)]


def _has(tree: Any, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return True


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        below = tree.setdefault(part, {})
        if not isinstance(below, dict):  # the file is wrong there, and `read` will say so
            return
        tree = below
    tree[last] = value


_WEAK: Final = frozenset({"undefined", "null", "none", "changeme", "password", "secret", "token"})


def _check(settings: Settings, problems: list[Problem]) -> None:
    if not 0 <= settings.server.port <= 65535:
        problems.append(Problem("server.port", say("number_between", least=0, most=65535)))
    for path in ("server.max_body_bytes", *(f"calls.{name}" for name in Calls.__struct_fields__)):
        table, _, name = path.partition(".")
        if not 0 < getattr(getattr(settings, table), name) < 1e12:
            problems.append(Problem(path, say("number_positive")))
    _check_search(settings.search, problems)
    for name in ("token", "password"):
        secret = getattr(settings.gateway.auth, name)
        if secret is not None and (not secret.strip() or secret.strip().lower() in _WEAK):
            problems.append(Problem(f"gateway.auth.{name}", say("secret_weak")))
    _check_mode(settings.gateway.auth, problems)


def _check_search(search: Search, problems: list[Problem]) -> None:
    if search.url is not None and not search.url.startswith(("http://", "https://")):
        problems.append(Problem("search.url", say("cli_bad_url")))
    if not 1 <= search.results <= 20:
        problems.append(Problem("search.results", say("number_between", least=1, most=20)))
    if not 0 < search.timeout_seconds < 1e6:
        problems.append(Problem("search.timeout_seconds", say("number_positive")))


def _check_mode(auth: Auth, problems: list[Problem]) -> None:
    if auth.mode == "password" and auth.password is None:
        problems.append(Problem("gateway.auth.password", say("field_missing")))
    if auth.mode == "trusted-proxy":
        if auth.token is not None:
            problems.append(Problem("gateway.auth.token", say("token_beside_proxy")))
        if not auth.trusted_proxy.user_header:
            problems.append(Problem("gateway.auth.trustedProxy.userHeader", say("field_missing")))
