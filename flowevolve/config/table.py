"""A configuration as the table that its TOML file holds, before it is checked."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of


def load_table(path: Path | str, overrides: Sequence[str]) -> dict[str, object]:
    """Read a config file and apply ``key=value`` overrides, whose values are read as TOML or else as plain text.

    Raises:
        InputError: if the file can't be read, or an override does not have this form.
    """
    try:
        table: dict[str, object] = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such config file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {reason_of(error)}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    for each in overrides:
        override(table, each)
    return table


def override(table: dict[str, object], assignment: str) -> None:
    """Set one ``key=value`` in a table. The value is read as TOML or else as plain text; ``null`` removes the key.

    Raises:
        InputError: if ``assignment`` does not have this form, or the key treats a value as a section.
    """
    key, equals, text = assignment.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise InputError(f"--set {assignment}: give a setting and its value, such as --set budget.minutes=10")
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    inner = table
    for name in path[:-1]:
        following = inner.setdefault(name, {})
        if not isinstance(following, dict):
            raise InputError(f"--set {assignment}: {name!r} has a value, and is not a section of settings")
        inner = following
    if text.strip() == "null":
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value


def is_among(key: str, settings: Collection[str]) -> bool:
    """Whether a key, such as ``llm.concurrency``, is one of these settings, or in a section that is one of them."""
    return any(key == each or key.startswith(f"{each}.") for each in settings)
