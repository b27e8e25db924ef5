"""Who asks, and which version of the contract is spoken."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from crocevia.asgi import http
from crocevia.runtime.control.api_keys import Principal
from crocevia.runtime.control.context import Control


class VersionRule(Enum):
    """Which versions of the contract an operation speaks (negotiation.py has the table)."""

    PLAIN = "plain"  # the header means nothing here
    CONTRACT_3 = "contract 3"  # /atp/v3, attachments, wiki
    LIVE_2 = "live 2"  # mutations below /chats
    READ_2 = "read 2"  # reads below /chats, /capabilities
    BOTH = "both"  # completions


class Version(Enum):
    """What was agreed upon. HISTORICAL: version 2, what is stored and nothing live."""

    LIVE = 2
    HISTORICAL = -2
    THREE = 3

    @property
    def number(self) -> int:
        """As the acknowledgement says it."""
        return abs(self.value)


class UserCaller(msgspec.Struct, frozen=True):
    """Whoever sent a request, and what is done for them."""

    control: Control
    principal: Principal | None = None
    """None: the operation is public."""
    version: Version | None = None
    """None: the operation is not negotiated."""

    @property
    def user_id(self) -> str:
        """Who asks; only where the operation is not public."""
        assert self.principal is not None
        return self.principal.user_id


Request: TypeAlias = http.Request[UserCaller]
