"""Consoles that show models' texts, which may contain anything, to a reader who may go away."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from flowevolve._util.outputs import LastingOutput

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
"""Maps characters that would control a terminal to pictures of them."""
_KEPT = "\t\n\u200c\u200d"
"""Characters that are kept although Python calls them unprintable: line breaks, tabs, and the joiners in words and
emojis.
"""
UNKNOWN = "\ufffd"


class PlainConsole(Console):
    """A console that shows texts as they are: neither brackets nor ``:words:`` have a special meaning.

    No text can control the terminal: control characters are replaced by their pictures, such as ␛. When the reader goes
    away, as in ``flowevolve list | head -1``, the rest of the output is dropped, and the work goes on to its end.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    @property
    def file(self) -> IO[str]:
        return LastingOutput(super().file)  # type: ignore[return-value]  # rich asks no more of it

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        if isinstance(renderable, str):
            renderable = shown(renderable)
        elif isinstance(renderable, Text):
            plain = shown(renderable.plain)
            if plain != renderable.plain:
                renderable = renderable.copy()
                renderable.plain = plain
        yield from super().render(renderable, options)


def shown(text: str) -> str:
    """A text of the same length in which nothing controls a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text.translate(_PICTURES)))


def _shown(character: str) -> str:
    kept = character.isprintable() or character in _KEPT or unicodedata.category(character) == "Zs"
    return character if kept else UNKNOWN
