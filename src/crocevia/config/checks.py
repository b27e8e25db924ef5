"""What types alone cannot say of settings."""

from __future__ import annotations

from typing import Final

from crocevia.config.settings import Auth, Calls, Search, Settings
from crocevia.core.declared import Problem
from crocevia.core.errors import Reason, say
from crocevia.core.limits import Quotas

_WEAK: Final = frozenset({"undefined", "null", "none", "changeme", "password", "secret", "token"})


def check(settings: Settings, problems: list[Problem]) -> None:
    """Add what no shape says: values that are out of their range or do not go together."""
    if not 0 <= settings.server.port <= 65535:
        problems.append(Problem("server.port", say(Reason.NUMBER_BETWEEN, least=0, most=65535)))
    named = {"calls": Calls, "limits": Quotas}
    named_sizes = ("server.max_body_bytes", "server.bodies_in_flight_bytes")
    for path in (*named_sizes, *(f"{at}.{name}" for at in named for name in named[at].__struct_fields__)):
        table, _, name = path.partition(".")
        if not 0 < getattr(getattr(settings, table), name) < 1e12:
            problems.append(Problem(path, say(Reason.NUMBER_POSITIVE)))
    _check_search(settings.search, problems)
    for name in ("token", "password"):
        secret = getattr(settings.gateway.auth, name)
        if secret is not None and (not secret.strip() or secret.strip().lower() in _WEAK):
            problems.append(Problem(f"gateway.auth.{name}", say(Reason.SECRET_WEAK)))
    _check_mode(settings.gateway.auth, problems)


def _check_search(search: Search, problems: list[Problem]) -> None:
    if search.url is not None and not search.url.startswith(("http://", "https://")):
        problems.append(Problem("search.url", say(Reason.CLI_BAD_URL)))
    if not 1 <= search.results <= 20:
        problems.append(Problem("search.results", say(Reason.NUMBER_BETWEEN, least=1, most=20)))
    if not 0 < search.timeout_seconds < 1e6:
        problems.append(Problem("search.timeout_seconds", say(Reason.NUMBER_POSITIVE)))


def _check_mode(auth: Auth, problems: list[Problem]) -> None:
    if auth.mode == "password" and auth.password is None:
        problems.append(Problem("gateway.auth.password", say(Reason.FIELD_MISSING)))
    if auth.mode == "trusted-proxy":
        if auth.token is not None:
            problems.append(Problem("gateway.auth.token", say(Reason.TOKEN_BESIDE_PROXY)))
        if not auth.trusted_proxy.user_header:
            problems.append(Problem("gateway.auth.trustedProxy.userHeader", say(Reason.FIELD_MISSING)))
