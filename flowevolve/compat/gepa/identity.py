"""What a run over an adapter is known by when it goes on: its rows, its arguments, and the code that the user gave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from numbers import Real
from pathlib import PurePath
from uuid import UUID

from gepa.core.data_loader import ListDataLoader
from pydantic import BaseModel

from flowevolve._util.digests import code_digest, text_digest
from flowevolve.compat.gepa.data import Examples
from flowevolve.compat.gepa.threads import Adapter
from flowevolve.tasks.identity import Adjustable


def digests_of_rows(splits: Mapping[str, Examples]) -> dict[str, str]:
    """Of the rows that were given as a list: a loader of the user's own is asked for none before it is used."""
    loaders = {name: examples.loader for name, examples in splits.items()}
    return {
        name: text_digest(map(_row_in_words, loader.items))
        for name, loader in loaders.items()
        if isinstance(loader, ListDataLoader)
    }


def digests_of_settings(given: Mapping[str, object]) -> dict[str, str]:
    """Of what decides how a run goes on and may be another then: plain values are told apart by what they are, objects
    by their types, and functions by their code.
    """
    digests = {}
    for name, value in given.items():
        digests[name] = text_digest([json.dumps(value, skipkeys=True, default=lambda value: type(value).__qualname__)])
        if callable(value) and (code := code_digest(value)) is not None:
            digests[f"the code of {name}"] = code
    return digests


def digests_of_adapter(adapter: Adapter) -> dict[str, str]:
    """Of its code, and of what it says of itself as a task may (`Adjustable`)."""
    own = adapter.adjustable() if isinstance(adapter, Adjustable) else {}
    methods = {
        "adapter.evaluate": adapter.evaluate,
        "adapter.make_reflective_dataset": adapter.make_reflective_dataset,
    }
    return digests_of_settings(methods) | dict(own)


def _row_in_words(row: object) -> str:
    """What is in a row, the same in every process. Of what is no data, as a connection is, its type alone."""

    def data(value: object) -> object:
        match value:
            case set() | frozenset():
                return sorted(map(words, value))
            case bytes():
                return value.hex()
            case Real():  # of numpy
                return float(value)
            case date() | time() | Decimal() | PurePath() | UUID():
                return str(value)
        kind = type(value).__name__
        if is_dataclass(value):
            return [kind, {each.name: getattr(value, each.name, None) for each in fields(value)}]
        if (value is row or isinstance(value, BaseModel)) and hasattr(value, "__dict__"):
            return [kind, vars(value)]
        return kind

    def words(value: object) -> str:
        return json.dumps(value, skipkeys=True, sort_keys=True, default=data)

    try:
        return words(row)
    except (TypeError, ValueError, RecursionError):  # keys that can't be sorted, or data within itself
        return type(row).__name__
