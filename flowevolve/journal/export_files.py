"""Files that take one row after another: JSON lines, and Parquet through pyarrow, an extra."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from flowevolve._util.errors import InputError
from flowevolve.journal.files import open_text
from flowevolve.journal.texts import is_unicode

Row = Mapping[str, Any]
"""Plain data, as JSON has it."""
ROWS = 1000
"""How many rows are written to a Parquet file at a time."""


class Table(Protocol):
    """An open file; `close` it to have all of it written."""

    rows: int
    """How many rows were written so far."""

    def write(self, row: Row) -> None: ...
    def close(self) -> None: ...


class JsonLines:
    """One JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self._file = open_text(path, "w")

    def write(self, row: Row) -> None:
        self.rows += 1
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._file.close()


class Parquet:
    """A Parquet file. ``columns`` says what each column holds: one of the names below, of which ``json`` stands for any
    value, stored as JSON text.

    Raises:
        InputError: if pyarrow is not installed.
    """

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415  an extra
            from pyarrow import parquet  # noqa: PLC0415
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install 'flowevolve[parquet]', or export as jsonl") from None
        text, number = pa.string(), pa.float64()
        types = {
            "text": text,
            "texts": pa.list_(text),
            "texts by name": pa.map_(text, text),
            "integer": pa.int64(),
            "number": number,
            "numbers by name": pa.map_(text, number),
            "json": text,
            "messages": pa.list_(pa.struct([("role", text), ("content", text)])),
            "yes or no": pa.bool_(),
        }
        self.rows = 0
        self._columns = columns
        self._schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
        self._batch_of = pa.RecordBatch.from_pylist
        self._waiting: list[dict[str, object]] = []
        self._file = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, row: Row) -> None:
        self.rows += 1
        cells = ((name, json.dumps(row[name]) if kind == "json" else row[name]) for name, kind in self._columns.items())
        self._waiting.append({name: _cell(value) for name, value in cells})
        if len(self._waiting) >= ROWS:
            self._write_waiting()

    def close(self) -> None:
        self._write_waiting()
        self._file.close()

    def _write_waiting(self) -> None:
        if self._waiting:
            self._file.write_batch(self._batch_of(self._waiting, schema=self._schema))
            self._waiting = []


def _cell(value: object) -> object:
    """A value in a form that pyarrow accepts. Lone surrogates, which Parquet can't hold, become U+FFFD."""
    match value:
        case str() if not is_unicode(value):
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        case dict():
            return [(_cell(name), _cell(each)) for name, each in value.items()]
        case list():
            return [_cell(each) for each in value]
    return value
