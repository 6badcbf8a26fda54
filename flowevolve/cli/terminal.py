"""What the command line writes to."""

from __future__ import annotations

from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """A console that shows texts as they are: neither brackets nor ``:words:`` mean anything to it."""
    return Console(stderr=stderr, markup=False, emoji=False)


console = plain_console()
"""The standard output."""


def print_plain(line: str) -> None:
    """Print a line as it is, without wrapping or colouring it."""
    console.print(line, highlight=False, soft_wrap=True)
