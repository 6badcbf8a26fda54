"""Templates for what the model is shown of a row: texts with columns in braces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from flowevolve._util.errors import InputError

_BRACES = re.compile(r"(\{\{|\}\})|\{([^{}]+)\}|[{}]")
"""A doubled brace, a name in braces, or a brace that is neither."""
_SHOWN = 20
"""How many characters of a text an error message shows, from the wrong place on."""


class Template:
    """A text in which ``{column}`` stands for a row's value. ``{{`` and ``}}`` stand for braces.

    Raises:
        InputError: if a brace does not enclose a column, or the text names no column at all.
    """

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self.text = text
        listed = f"the columns are {', '.join(columns)}"
        for brace in _BRACES.finditer(text):
            doubled, name = brace.groups()
            if not doubled and name not in columns:
                raise InputError(f"input: {_wrong(text, brace)}; {listed}")
        self.names = tuple(dict.fromkeys(brace[2] for brace in _BRACES.finditer(text) if brace[2]))
        """The columns that the text names."""
        if not self.names:
            why = ", as doubled braces are shown as they are" if _BRACES.search(text) else ""
            raise InputError(f"input: {text!r} names no column in braces{why}; {listed}")

    def filled(self, row: Mapping[str, object]) -> str:
        """The text for a row."""
        return _BRACES.sub(lambda brace: brace[1][0] if brace[1] else str(row[brace[2]]), self.text)


def _wrong(text: str, brace: re.Match[str]) -> str:
    if brace[2] and re.fullmatch(r"[\w\s]+", brace[2]):  # it looks like the name of a column
        return f"there is no column {brace[2]!r}"
    rest = text[brace.start() :]
    near = rest if len(rest) <= _SHOWN else f"{rest[:_SHOWN]}…"
    return f"the brace at {near!r} is around no column; braces that the model is to see are doubled: {{{{ and }}}}"
