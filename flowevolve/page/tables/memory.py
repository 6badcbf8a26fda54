"""The rows of the tables in memory, by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.row import Row, Value

AnyRow = TypeVar("AnyRow", bound=Row)


class Tables:
    """The newest row of each key."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str, dict[tuple[Value, ...], Row]] = {name: {} for name in TABLES}
        self.update(rows)

    def update(self, rows: Iterable[Row]) -> None:
        """Take in rows; later ones replace earlier ones with the same key."""
        for row in rows:
            self._rows[row.table][row.identity()] = row

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return len(self._rows[table])

    def drop_oldest(self, table: str, number: int) -> Sequence[tuple[Value, ...]]:
        """Drop this many rows of a table, those whose keys came first; returns their keys."""
        rows = self._rows[table]
        keys = list(islice(rows, number))
        for key in keys:
            del rows[key]
        return keys

    def copy(self) -> Tables:
        """The rows as they are now, for another thread."""
        copied = Tables()
        copied._rows = {name: dict(rows) for name, rows in self._rows.items()}
        return copied

    def of(self, table: type[AnyRow]) -> Iterator[AnyRow]:
        """The rows of a table, in the order in which their keys first came."""
        for row in self._rows[table.table].values():
            assert isinstance(row, table)
            yield row

    def get(self, table: type[AnyRow], *key: Value) -> AnyRow | None:
        """The row with this key; None if there is none."""
        row = self._rows[table.table].get(key)
        assert row is None or isinstance(row, table)
        return row

    def row(self, table: str, key: tuple[Value, ...]) -> Row:
        """The row of a table with this key, which must be there."""
        return self._rows[table][key]
