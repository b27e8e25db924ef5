"""The parameters of addresses, as the document tells them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """starting_after: the number of the last event that the caller has; it counts with `stream` only."""

    stream: bool | None = None
    starting_after: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """after: the id of an item of the page before."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
