"""Small things that every table's module needs."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Case, ColumnElement, Table, and_, bindparam, case, insert, not_


def inserting(table: Table, *names: str) -> Any:
    """An INSERT of these columns (none: of all), whose parameters have the columns' names."""
    return insert(table).values({name: bindparam(name) for name in names or table.c.keys()})


def setting(*names: str) -> dict[str, Any]:
    """What an UPDATE sets: these columns, from parameters of their names. Its conditions need other names."""
    return {name: bindparam(name) for name in names}


def plausible(column: ColumnElement[Any], most: float, least: float = 0) -> Case[Any]:
    """The column where it is a number from `least` to `most`, else NULL: unknown.

    A sum of these cannot overflow, whatever a row holds: text and bytes are above every number here.
    """
    return case((column.between(least, most), column))


def implausible(column: ColumnElement[Any], most: float) -> ColumnElement[bool]:
    """Whether the column holds something that is no number from 0 to `most`."""
    return and_(column.is_not(None), not_(column.between(0, most)))


def packed(value: Any) -> str:
    """A value as the JSON text of its column."""
    return msgspec.json.encode(value).decode()


def unpacked(text: str) -> Any:
    """The value of a JSON column."""
    return msgspec.json.decode(text)
