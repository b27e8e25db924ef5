"""SQLAlchemy Core constructs as plain SQL for the sqlite3 driver: compiled once, then nothing but tuples.

Keep statements as module constants: the cache knows them by identity. Python-side column defaults are refused,
because nothing here would apply them: pass every value, or use `server_default`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler

Statement: TypeAlias = Executable
Row: TypeAlias = Any  # a named tuple: fields by attribute or by position, and `_asdict()`

CACHED: Final = 1024
_DIALECT: Final = SQLiteDialect_pysqlite(paramstyle="qmark")


class Compiled:
    """A statement's text, how to order its parameters, and how to shape its rows."""

    __slots__ = ("_fixed", "_into", "_names", "_out", "_pick", "_row", "sql")

    def __init__(self, statement: Statement, keys: tuple[str, ...]) -> None:
        compiled = statement.compile(  # type: ignore[attr-defined]  # every Core construct has it; Executable does not say so
            dialect=_DIALECT, column_keys=list(keys) or None, compile_kwargs={"render_postcompile": True}
        )
        assert isinstance(compiled, SQLCompiler)
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise TypeError("a column of this statement has a Python default: pass its value instead")
        self.sql: str = compiled.string
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())
        required = {name for name, bind in compiled.binds.items() if bind.required}
        self._fixed: dict[str, Any] = {
            name: value
            for name, value in compiled.construct_params(_check=False).items()
            if name in self._names and name not in keys and name not in required
        }
        processors: Mapping[str, Any] = compiled._bind_processors
        self._into: list[tuple[int, Callable[[Any], Any]]] = [
            (index, processors[name]) for index, name in enumerate(self._names) if name in processors
        ]
        self._pick = _picker(self._names)
        columns = compiled._result_columns
        self._row = _maker([column.keyname for column in columns])
        self._out: list[tuple[int, Callable[[Any], Any]]] = [
            (index, process)
            for index, column in enumerate(columns)
            if (process := column.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None)) is not None
        ]

    def values(self, params: Mapping[str, Any]) -> Sequence[Any]:
        """The parameters in the order of the placeholders. A missing one raises KeyError."""
        picked = self._pick({**self._fixed, **params} if self._fixed else params)
        if not self._into:
            return picked
        values = list(picked)
        for index, process in self._into:
            values[index] = process(values[index])
        return values

    def rows(self, found: Iterable[tuple[Any, ...]]) -> list[Row]:
        """The driver's tuples as named rows."""
        if not self._out:
            return list(map(self._row, found))
        return [self._row(self._shaped(row)) for row in found]

    def _shaped(self, row: tuple[Any, ...]) -> list[Any]:
        shaped = list(row)
        for index, process in self._out:
            shaped[index] = process(shaped[index])
        return shaped


def _maker(names: list[str]) -> Callable[[Iterable[Any]], Row]:
    named: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the fields are known only now
    return named._make


def _picker(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    if not names:
        return lambda params: ()
    if len(names) == 1:
        only = names[0]
        return lambda params: (params[only],)
    return itemgetter(*names)


class StatementCache:
    """Compiled statements by identity and parameter names. One per connection owner: no lock."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Statement, tuple[str, ...]], Compiled] = {}

    def get(self, statement: Statement, params: Mapping[str, Any]) -> Compiled:
        key = (statement, tuple(params))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= CACHED:  # somebody builds statements per call; stay bounded
                self._known.clear()
            found = self._known[key] = Compiled(statement, key[1])
        return found
