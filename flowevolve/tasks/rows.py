"""Reads rows in the forms in which users have them: lists of mappings, data frames, data sets and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, time
from math import isnan
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from typing_extensions import TypeVar

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve.tasks.loaders import Row, load_rows, no_such_file

GivenRow = Mapping[str, object]
RowType = TypeVar("RowType", bound=Mapping[str, Any], default=Mapping[str, Any])
"""The type of a row for type checkers. Where it is unknown, as for rows of a file, values are of type ``Any``."""


@runtime_checkable
class PolarsFrame(Protocol):
    """What is used of a polars data frame."""

    def to_dicts(self) -> list[dict[str, object]]: ...


@runtime_checkable
class PandasFrame(Protocol):
    """What is used of a pandas data frame. A series has a method of the same name and no columns."""

    @property
    def columns(self) -> object: ...

    def to_dict(self, orient: str) -> list[dict[str, object]]: ...


@runtime_checkable
class Scalar(Protocol):
    """A numpy scalar, or a value of another library that wraps a Python value."""

    def item(self) -> object: ...


def unwrapped(value: object) -> object:
    """The Python value that a scalar of numpy, or an array or tensor of one number, wraps; any other value as it is."""
    if isinstance(value, Scalar):
        with suppress(RuntimeError, ValueError):  # an array or a tensor of several numbers
            return value.item()
    return value


Rows = Iterable[RowType] | PandasFrame | PolarsFrame | str | Path
"""Mappings, a pandas or polars data frame, a ``datasets.Dataset``, or the path of a file."""


def given_rows(rows: Rows[Any], what: str) -> list[GivenRow]:
    """Return a list of the rows. ``what`` names them in messages.

    Raises:
        InputError: if they are of an unknown kind, there are none, or one of them is not a mapping with named columns.
    """
    found = _listed(rows, what)
    if not found:
        raise InputError(f"{what} holds no rows; give at least one")
    for number, row in enumerate(found):
        if not isinstance(row, Mapping):
            raise InputError(
                f"{what}: row {number} is of type {type(row).__name__}, but a row has columns; give mappings, such as "
                '{"question": "…", "answer": "…"}, or a data frame'
            )
        if not row:
            raise InputError(f"{what}: row {number} has no columns")
        for name in row:
            if not isinstance(name, str):
                raise InputError(
                    f"{what}: row {number} has a column named {name!r}, but the names of columns have to be texts"
                )
    return found


def _listed(rows: Rows[Any], what: str) -> list[GivenRow]:
    if isinstance(rows, str | Path):
        return list(_from_file(Path(rows), what))
    if isinstance(rows, Mapping):
        raise InputError(f"{what} is a single mapping; give a list of rows, each a mapping of its columns")
    if isinstance(rows, PolarsFrame):
        return list(rows.to_dicts())
    if isinstance(rows, PandasFrame):
        return list(rows.to_dict("records"))
    if isinstance(rows, Iterable):
        return list(rows)
    raise InputError(
        f"{what} is of type {type(rows).__name__}; give a list of mappings, a data frame, a data set or the path of a "
        "file"
    )


def _from_file(path: Path, what: str) -> Sequence[Row]:
    if path.suffix.lower() != ".parquet":
        try:
            return load_rows(path)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(f"{what}: {path}: parquet files need an extra: pip install 'flowevolve[parquet]'") from None
    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except FileNotFoundError:
        raise InputError(f"{what}: {no_such_file(path)}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{what}: {path} can't be read: {reason_of(error)}") from None
    return rows


def plain_row(row: GivenRow, where: str) -> Row:
    """A row as plain data, which can be shown to models and written to a journal.

    Raises:
        InputError: if a value can't be converted to plain data.
    """
    return {name: _plain(value, f"{where}, column {name!r}") for name, value in row.items()}


def _plain(value: object, where: str) -> JSON:
    if isinstance(value, float):
        return None if isnan(value) else float(value)  # in data frames, NaN marks a missing value
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each, where) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each, where) for each in value]
    if isinstance(value, date | time | Path):
        return str(value)
    if hasattr(value, "tolist"):  # an array
        return _plain(value.tolist(), where)
    if isinstance(value, Scalar):
        return _plain(value.item(), where)
    raise InputError(f"{where} is of type {type(value).__name__}; give texts, numbers, lists and mappings")
