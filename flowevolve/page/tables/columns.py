"""Tables as columns of plain JSON, which is smaller than rows, and quicker to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import get_args, get_type_hints

from flowevolve._util.json_types import JSON
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row, Seconds, Value

DIGITS_OF_SECONDS = 4
"""The decimals that times are rounded to, which make up half of a report. All other numbers are as they are."""


def in_columns(tables: Tables) -> dict[str, JSON]:
    """Each table with its key, the names of its columns, and their values.

    A column is a list of values; null if it has none; a table with its distinct ``values`` and, for each row, the place
    of its value among these in ``places``; or a table with the whole number ``first``, from which it counts up.
    """
    return {name: _table(table, list(tables.of(table))) for name, table in TABLES.items()}


def in_rows(rows: Sequence[Row]) -> list[JSON]:
    """Rows of one table, each as a list of the values of its columns."""
    return [list(in_object(row).values()) for row in rows]


def in_object(row: Row) -> dict[str, JSON]:
    """A row as a table from the names of its columns to their values."""
    digits = _DIGITS[row.table]
    return {name: _plain(value, digits[name]) for name, value in zip(row.columns(), row.values(), strict=True)}


def _plain(value: Value, digits: int | None) -> JSON:
    """A value as JSON can hold it: NaN and infinite numbers become null."""
    if isinstance(value, float):
        return None if not isfinite(value) else value if digits is None else round(value, digits)
    if isinstance(value, tuple):
        return [_plain(each, digits) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain_json(each) for name, each in value.items()}
    return value


def _plain_json(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_plain_json(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain_json(each) for name, each in value.items()}
    return _plain(value, None)


def _table(table: type[Row], rows: list[Row]) -> JSON:
    columns = zip(*(row.values() for row in rows), strict=True) if rows else [()] * len(table.columns())
    digits = _DIGITS[table.table]
    return {
        "key": list(table.key),
        "rows": len(rows),
        "columns": {name: _column(values, digits[name]) for name, values in zip(table.columns(), columns, strict=True)},
    }


def _column(values: Sequence[Value], digits: int | None) -> JSON:
    if all(value is None for value in values):
        return None
    first = values[0]
    if (
        isinstance(first, int)
        and not isinstance(first, bool)
        and list(values) == list(range(first, first + len(values)))
    ):
        return {"first": first}
    if all(value is None or isinstance(value, str) for value in values):
        distinct = list(dict.fromkeys(values))
        if len(distinct) * 2 < len(values):
            places = {value: place for place, value in enumerate(distinct)}
            return {
                "values": [_plain(each, digits) for each in distinct],
                "places": [places[value] for value in values],
            }
    return [_plain(value, digits) for value in values]


def _digits(table: type[Row]) -> Mapping[str, int | None]:
    """How many decimals the numbers in each column are rounded to; None if they are not."""
    hints = get_type_hints(table, include_extras=True)
    return {
        name: DIGITS_OF_SECONDS if Seconds in (hints[name], *get_args(hints[name])) else None
        for name in table.columns()
    }


_DIGITS = {name: _digits(table) for name, table in TABLES.items()}
"""The decimals by column, by table."""
