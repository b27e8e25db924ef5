"""The scheme and host by which a caller reached us: what addresses that we give back to that caller begin with.

The caller's own word is enough: it is told to nobody else but the receiver that the same caller names, and no
signature depends on it.
"""

from __future__ import annotations

import re
from typing import Final

from crocevia.doors.atp.operation import Request

_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_SCHEMES: Final = (b"http", b"https")


def origin(request: Request) -> str:
    """Such as `https://example.org:8443`."""
    host = next(
        (value for name in (b"x-forwarded-host", b"host") if _HOST.fullmatch(value := request.header(name) or b"")),
        b"localhost",
    )
    forwarded = request.header(b"x-forwarded-proto")
    scheme = forwarded.decode() if forwarded in _SCHEMES and forwarded else request.scope.get("scheme", "http")
    return f"{scheme}://{host.decode()}"
