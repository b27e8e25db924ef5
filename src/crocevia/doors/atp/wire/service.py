"""What the service says of itself on the wire."""

from __future__ import annotations

from datetime import datetime

import msgspec

from crocevia.runtime.signing_keys import Jwk


class JwksDocument(msgspec.Struct, frozen=True, kw_only=True):
    keys: list[Jwk]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    timestamp: datetime
    app: str
    env: str
