"""Reads which file of a program is meant by what a reply writes above an edit or a block."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_WORD = re.compile(r"[\w./-]+")
_MOST_WORDS = 3
"""The most other words in a heading that names a file."""
_NEAR = 3
"""How many lines with text above an edit or a block may name its file."""


def file_named(line: str, known: Collection[str]) -> str | None:
    """The one known file that a line names, if it is as short as a heading or a label, or ends with a colon."""
    words: list[str] = [word.removeprefix("./").rstrip(".") for word in _WORD.findall(line)]
    named = {word for word in words if word in known}
    others = [word for word in words if word not in known and any(map(str.isalnum, word))]
    if len(named) != 1 or (len(others) > _MOST_WORDS and not line.rstrip(" *_`").endswith(":")):
        return None
    return next(iter(named))


def file_named_above(lines: Sequence[str], known: Collection[str]) -> str | None:
    """The known file that the nearest of the last ``lines`` names that names one."""
    near = [line for line in reversed(lines) if line.strip()][:_NEAR]
    return next((name for line in near if (name := file_named(line, known)) is not None), None)
