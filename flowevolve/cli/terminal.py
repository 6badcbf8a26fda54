"""What the command line writes to."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from flowevolve._util.console import PlainConsole

LAST_PORT = 65535

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
    """Rows of cells as lines with straight columns, as wide as they are."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def show_logs(*, verbose: bool) -> None:
    """Records go to standard error only if somebody asked for them."""
    from flowevolve.telemetry.logs import configure_logs

    configure_logs(logging.INFO if verbose else logging.CRITICAL)
