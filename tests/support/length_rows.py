"""Rows and a metric for runs of a script."""

from __future__ import annotations

from flowevolve.tasks.rows import GivenRow

ROWS = [{"question": f"Say {n}.", "answer": str(n)} for n in range(12)]


def length(row: GivenRow, output: str) -> float:
    return min(1.0, len(output) / 2000)
