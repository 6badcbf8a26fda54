"""The configuration in a run's directory, which somebody may have edited since the run began."""

from __future__ import annotations

import tomllib
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of


def read_config(path: Path, recorded: dict[str, object] | None) -> dict[str, object]:
    """The table in a file; if that is gone, the configuration that the journal has recorded, if it has.

    Raises:
        InputError: if the file can't be read, or is empty.
    """
    hint = "" if recorded is None else ". If you delete it, the configuration is taken from the journal instead"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if recorded is not None and isinstance(error, FileNotFoundError):
            return recorded
        raise InputError(f"{path} can't be read: {reason_of(error)}{hint}") from error
    if recorded and not table:
        raise InputError(f"{path} is empty{hint}")
    return table
