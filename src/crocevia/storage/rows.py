"""Small things that every table's module needs."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Table, bindparam, insert


def inserting(table: Table, *names: str) -> Any:
    """An INSERT of these columns (none: of all), whose parameters have the columns' names."""
    return insert(table).values({name: bindparam(name) for name in names or table.c.keys()})


def packed(value: Any) -> str:
    """A value as the JSON text of its column."""
    return msgspec.json.encode(value).decode()


def unpacked(text: str) -> Any:
    """The value of a JSON column."""
    return msgspec.json.decode(text)
