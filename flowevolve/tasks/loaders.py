"""Reads data sets from JSON lines, JSON, CSV and TSV files, gzipped or not, and from the Hugging Face hub."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve.core.task import Dataset, Example

Row = Mapping[str, JSON]
Size = int | float
"""The size of a split: a number of rows, or below 1.0 a fraction of all rows."""

_SURPLUS = "more columns than the header"
_FORMATS = (".jsonl", ".json", ".csv", ".tsv")
SPLITS = ("train", "val", "test")


def load_rows(path: Path) -> list[Row]:
    """Read all rows of a file. Its extension says its format; ``.gz`` may follow.

    Raises:
        InputError: naming the file, the line and what is wrong with it.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    form = suffixes[-1].lower() if suffixes else ""
    if form not in _FORMATS:
        raise InputError(f"{path}: unknown kind of file; use one of {', '.join(_FORMATS)}, gzipped or not")
    text = _read(path)
    delimiter = {".csv": ",", ".tsv": "\t"}.get(form)
    rows = _json(text, form, path) if delimiter is None else _delimited(text, delimiter, path)
    if not rows:
        raise InputError(f"{path} holds no rows")
    return rows


def load_hf(name: str, split: str, config: str | None = None) -> list[Row]:
    """Load one split of a data set from the Hugging Face hub. ``config`` is one of its configurations.

    Raises:
        InputError: if the package ``datasets`` is not installed, or the data set can't be loaded.
    """
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise InputError("Hugging Face data sets need an extra: pip install 'flowevolve[hf]'") from None
    try:
        return [dict(row) for row in datasets.load_dataset(name, config, split=split)]
    except Exception as error:  # noqa: BLE001 - the package says in exceptions of many kinds what is wrong with a name
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(
            f"task.data.hf: {name!r} ({config or 'no hf_config'}, split {split!r}) can't be loaded: {reason}"
        ) from None


def require_fields(rows: Iterable[Row], fields: Sequence[str], source: str) -> None:
    """Check that every row has these fields.

    Raises:
        InputError: naming the first row that lacks one.
    """
    for number, row in enumerate(rows, 1):
        for field in fields:
            if field not in row:
                raise InputError(f"{source}: row {number} has no field {field!r}; it has {', '.join(row) or 'none'}")


def examples(rows: Sequence[Row], id_field: str | None, source: str) -> list[Example]:
    """Make examples from rows. Their ids are the values of ``id_field`` or, without one, the row numbers from 0.

    Raises:
        InputError: if the field is missing or two rows have the same id.
    """
    if id_field is None:
        return [Example(str(number), row) for number, row in enumerate(rows)]
    require_fields(rows, [id_field], source)
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        name = str(row[id_field])
        if name in seen:
            raise InputError(
                f"{source}: rows {seen[name]} and {number} have the same {id_field!r}, {name!r}, but ids have to differ"
            )
        seen[name] = number
    return [Example(str(row[id_field]), row) for row in rows]


def text_of(example: Example, field: str) -> str:
    """The text in a field of a row.

    Raises:
        InputError: if there is none, or it is empty.
    """
    value = example.data.get(field)
    if not isinstance(value, str) or not value:
        raise no_text(example, field)
    return value


def no_text(example: Example, *fields: str) -> InputError:
    """The error for a row that has a text in none of these fields."""
    asked, columns = " or ".join(map(repr, fields)), ", ".join(example.data) or "none"
    return InputError(f"row {example.id}: {asked} is missing or not a text; its columns are {columns}")


def split_rows(
    rows: Sequence[Row], sizes: Mapping[str, Size], seed: int, *, id_field: str | None = None, source: str = "data"
) -> Dataset:
    """Shuffle rows with this seed and split them into train, val and test.

    Raises:
        InputError: if the sizes ask for more rows than there are, or train or val would be empty.
    """
    unknown = set(sizes) - set(SPLITS)
    if unknown:
        raise InputError(f"{source}: unknown split {min(unknown)!r}; there are {', '.join(SPLITS)}")
    train, val, test = _ends(sizes, len(rows), source)
    for split, begin, end in (("train", 0, train), ("val", train, val)):
        if begin == end:
            raise InputError(f"{source}: the split {split!r} would be empty; give it a size")
    shuffled = examples(rows, id_field, source)
    random.Random(seed).shuffle(shuffled)
    return Dataset(shuffled[:train], shuffled[train:val], shuffled[val:test])


def _ends(sizes: Mapping[str, Size], total: int, source: str) -> list[int]:
    """Where each split ends. Fractions are added up before rounding, so that fractions with the sum 1 use every row."""
    ends: list[int] = []
    exact = 0.0
    for split in SPLITS:
        size = sizes.get(split, 0)
        if not size >= 0:
            raise InputError(f"{source}: the size of {split} is {size}, but can't be negative")
        if isinstance(size, float) and size >= 1:
            raise InputError(
                f"{source}: the size of {split} is {size}, but has to be a whole number of rows or a fraction below 1"
            )
        exact += size * total if isinstance(size, float) else size
        ends.append(round(exact))
    if ends[-1] > total:
        raise InputError(f"{source}: the sizes of the splits add up to {ends[-1]} rows, but the data has {total}")
    return ends


def no_such_file(path: Path) -> str:
    """What to say of a data file that is not there."""
    looked = "" if path.is_absolute() else f" in {Path.cwd()}, the folder that this was started in"
    return f"{path}: no such data file{looked}"


def _read(path: Path) -> str:
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(no_such_file(path)) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} can't be read, as it is not in UTF-8; save it in UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} can't be read: {reason_of(error)}") from None


def _delimited(text: str, delimiter: str, path: Path) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restkey=_SURPLUS)
    rows: list[Row] = []
    try:
        header = reader.fieldnames or ()
        if len(header) == 1 and ";" in header[0]:
            raise InputError(
                f"{path}: its columns are separated by semicolons; save it with commas, or as .tsv with tabs"
            )
        for row in reader:
            if _SURPLUS in row:
                between = "comma" if delimiter == "," else "tab"
                raise InputError(f"{path}: line {reader.line_num} has {_SURPLUS}; put what holds a {between} in quotes")
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num + 1} can't be read: {error}") from None
    return rows


def _json(text: str, form: str, path: Path) -> list[Row]:
    numbered: list[tuple[int, object]] = []
    counted = "row" if form == ".json" else "line"
    if form == ".json":
        whole = _parse(text, path, None)
        if not isinstance(whole, list):
            raise InputError(f"{path} has to hold a list of objects")
        numbered = list(enumerate(whole, 1))
    elif _is_array(text):
        raise InputError(f"{path} holds one JSON array; name it .json, or write each object in a line of its own")
    else:
        # splitlines() would also split at U+2028 and other characters that JSON texts may contain unescaped.
        numbered = [(n, _parse(line, path, n)) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows: list[Row] = []
    for number, row in numbered:
        if not isinstance(row, dict):
            raise InputError(f"{path}: {counted} {number} has to be an object, but is of type {type(row).__name__}")
        rows.append(row)
    return rows


def _is_array(text: str) -> bool:
    """Whether the whole text is an array of objects."""
    try:
        whole = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, list) and all(isinstance(row, dict) for row in whole)


def _parse(text: str, path: Path, line: int | None) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if line is None:
            raise InputError(f"{path}: not valid JSON: {error}") from None
        why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{path}: line {line}: not valid JSON: {why}") from None
