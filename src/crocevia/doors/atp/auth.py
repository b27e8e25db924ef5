"""The bearer of a request."""

from __future__ import annotations

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.api_keys import ApiKeys, Principal

_MAX_TOKEN = 4096


async def authenticate(keys: ApiKeys, values: list[bytes]) -> Principal:
    """Who asks, by the values of the Authorization header. Raises GatewayError(UNAUTHENTICATED)."""
    if len(values) == 1:
        scheme, _, token = values[0].partition(b" ")
        token = token.strip()
        if scheme.lower() == b"bearer" and token and len(token) <= _MAX_TOKEN and token.isascii():
            return await keys.authenticate(token.decode("ascii"))
    raise GatewayError(Reason.API_KEY_INVALID)
