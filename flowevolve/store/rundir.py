"""The run directory: everything one run leaves on disk.

``config.toml`` (resolved), ``journal.sqlite``, ``events.jsonl`` on request, and ``result.json`` once the run has ended.
A directory that already holds a run is never written over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import tomli_w

from flowevolve.errors import InputError
from flowevolve.events import Event
from flowevolve.store.journal import Journal

CONFIG, JOURNAL, EVENTS, RESULT = "config.toml", "journal.sqlite", "events.jsonl", "result.json"


class RunDirectory:
    """A new run's directory. Close it when the run has ended.

    Raises:
        InputError: if the directory holds a run already or can't be written.
    """

    def __init__(self, path: Path, config: Mapping[str, object], *, events: bool = False) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any((path / name).exists() for name in (CONFIG, JOURNAL, RESULT)):
                raise InputError(f"{path}: holds a run already; give another directory with --out, or remove it")
            (path / CONFIG).write_text(tomli_w.dumps(_without_none(config)), encoding="utf-8")
            self._events: TextIO | None = (path / EVENTS).open("w", encoding="utf-8") if events else None
        except OSError as error:
            raise InputError(f"{path}: can't be written: {error}") from error
        self.journal = Journal(path / JOURNAL)

    def event(self, event: Event) -> None:
        """An event sink: the journal, and ``events.jsonl`` if asked for."""
        self.journal.event(event)
        if self._events is not None:
            self._events.write(event.to_json() + "\n")

    def write_result(self, result: Mapping[str, object]) -> None:
        """Write ``result.json`` whole or not at all."""
        draft = self.path / (RESULT + ".part")
        draft.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(self.path / RESULT)

    def close(self) -> None:
        """Write what is left.

        Raises:
            StorageError: if something could not be written.
        """
        if self._events is not None:
            self._events.close()
        self.journal.close()


def read_result(path: Path) -> dict[str, object]:
    """The ``result.json`` of a run directory.

    Raises:
        InputError: if there is none or it is not one.
    """
    file = path / RESULT
    if not path.is_dir():
        raise InputError(f"{path}: no such run directory")
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{file}: not there; the run has not ended, or was killed before it could write one") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: can't be read: {error}") from error
    if not isinstance(result, dict) or result.get("schema") != 1:
        raise InputError(f"{file}: not a result of schema 1")
    return result


def _without_none(table: Mapping[str, object]) -> dict[str, object]:
    """TOML has no null: what is not set is left out."""
    return {key: _plain(value) for key, value in table.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return _without_none(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value
