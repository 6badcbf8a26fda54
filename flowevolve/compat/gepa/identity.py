"""Identifies a run over an adapter when it is resumed: by its rows, its arguments, and the user's code."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from numbers import Real
from pathlib import PurePath
from typing import Protocol, runtime_checkable
from uuid import UUID

from gepa.core.data_loader import ListDataLoader
from pydantic import BaseModel

from flowevolve._util.digests import code_digest, text_digest
from flowevolve.compat.gepa.data import Examples
from flowevolve.compat.gepa.threads import Adapter
from flowevolve.tasks.identity import Adjustable

DEEPEST = 100
"""If data are nested more deeply than this in a row, only their types count."""
_NO_ATTRIBUTES: Mapping[str, object] = {}
_RANDOM_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[1467][0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE
)
"""A UUID of a version that is made from random numbers or the time."""
_NUMBERS = frozenset("?bBhHiIlLqQefd")
"""The formats of a buffer whose bytes are the values."""


@runtime_checkable
class _Array(Protocol):
    """An array of numpy or of another library."""

    def tolist(self) -> object: ...


def digests_of_rows(splits: Mapping[str, Examples]) -> dict[str, str]:
    """Digests of rows that were given as a list. A loader of the user's own is not asked for rows before it is used."""
    loaders = {name: examples.loader for name, examples in splits.items()}
    return {
        name: text_digest(map(_row_in_words, loader.items))
        for name, loader in loaders.items()
        if isinstance(loader, ListDataLoader)
    }


def digests_of_settings(given: Mapping[str, object]) -> dict[str, str]:
    """Digests of settings that may change when a run is resumed: plain values are distinguished by value, objects by
    type, and functions by their code.
    """
    digests = {}
    for name, value in given.items():
        digests[name] = text_digest([json.dumps(value, skipkeys=True, default=lambda value: type(value).__qualname__)])
        if callable(value) and (code := code_digest(value)) is not None:
            digests[f"the code of {name}"] = code
    return digests


def digests_of_adapter(adapter: Adapter) -> dict[str, str]:
    """Digests of an adapter's code, and those that it reports itself, as a task may (`Adjustable`)."""
    own = adapter.adjustable() if isinstance(adapter, Adjustable) else {}
    methods = {
        "adapter.evaluate": adapter.evaluate,
        "adapter.make_reflective_dataset": adapter.make_reflective_dataset,
    }
    return digests_of_settings(methods) | dict(own)


def _row_in_words(row: object) -> str:
    """The readable contents of a row as text that is the same in every process.

    Of an object of an unknown kind inside the row, such as a connection, only the type counts. Of a random UUID, which
    may be drawn anew in each process, only its presence counts.
    """
    return _in_words(row, (), _attributes(row))


def _in_words(value: object, within: tuple[int, ...], known: Mapping[str, object] = _NO_ATTRIBUTES) -> str:
    """A value as text. ``within`` are the ids of the objects that contain it, ``known`` its attributes to be read."""
    kind = type(value).__name__
    if id(value) in within or len(within) == DEEPEST:
        return kind
    inside = (*within, id(value))

    def words(part: object) -> str:
        return _in_words(part, inside)

    def pairs(of: Iterable[tuple[object, object]]) -> str:
        return f"{{{','.join(sorted(f'{words(key)}:{words(each)}' for key, each in of))}}}"

    match value:
        case None | bool():
            return repr(value)
        case int():
            return hex(value)
        case str():
            return "UUID" if _RANDOM_UUID.fullmatch(value) else json.dumps(value)
        case UUID():
            return words(str(value))
        case Enum():
            return f"{kind}.{value.name}"
        case Real():  # of numpy, too
            return repr(float(value))
        case date() | time() | Decimal() | PurePath():
            return json.dumps(str(value))
        case list() | tuple() | deque() | range():
            return f"[{','.join(map(words, value))}]"
        case AbstractSet():
            return f"{{{','.join(sorted(map(words, value)))}}}"
        case Mapping():
            return pairs(value.items())
        case BaseModel():
            return kind + pairs([*vars(value).items(), *(value.model_extra or {}).items()])
    if is_dataclass(value):
        return kind + pairs((each.name, getattr(value, each.name, None)) for each in fields(value))
    return _array_in_words(value, inside) or (kind + pairs(known.items()) if known else kind)


def _array_in_words(value: object, within: tuple[int, ...]) -> str | None:
    """The numbers and the shape of an array, or its other contents; None if the value is not an array."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]  # it checks
        if view.format in _NUMBERS:
            return f"{view.format}{view.shape}{blake2b(view.tobytes()).hexdigest()}"
    except (BufferError, TypeError, ValueError):  # not an array, or an array of times
        pass
    if isinstance(value, _Array):
        try:
            listed = value.tolist()
        except (RuntimeError, TypeError, ValueError):  # the library's own: sparse, or on another device
            return None
        if isinstance(listed, list | str | bool | int | float | date):
            return _in_words(listed, within)
    return None


def _attributes(row: object) -> dict[str, object]:
    """An object's own attributes, whether its class keeps them in a dict or in slots."""
    slots = [name for each in type(row).__mro__ for name in _names(each.__dict__.get("__slots__", ()))]
    return {name: getattr(row, name) for name in [*slots, *getattr(row, "__dict__", {})] if hasattr(row, name)}


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots
