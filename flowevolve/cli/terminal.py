"""Printing and logging of the command line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from flowevolve._util.console import PlainConsole

console = PlainConsole()
"""The standard output."""


def print_plain(line: str) -> None:
    """Print a line as it is, without wrapping or colouring it."""
    console.print(line, highlight=False, soft_wrap=True)


def print_error(line: str) -> None:
    """Print a line on standard error, as it is."""
    PlainConsole(stderr=True).print(line, highlight=False, soft_wrap=True)


def print_json(value: Mapping[str, object] | Sequence[Mapping[str, object]]) -> None:
    """Print an object or a list of them as JSON, and nothing else."""
    print_plain(json.dumps(value, indent=2))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, with columns as wide as their widest cells."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def show_logs(*, verbose: bool) -> None:
    """Write log records to standard error: with ``verbose`` from level info on, otherwise only critical ones."""
    from flowevolve.telemetry.logs import configure_logs

    configure_logs(logging.INFO if verbose else logging.CRITICAL)
