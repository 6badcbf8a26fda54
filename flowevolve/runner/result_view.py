"""A result in a line, and in a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from flowevolve._util.intervals import Interval, in_brackets, score_said


def scores(seed: float | None, best: float | None, interval: Interval | None) -> str:
    """The seed's score, and the best one after an arrow."""
    return f"{score_said(seed)} → {score_said(best)}{in_brackets(interval)}"


def html(rows: Sequence[tuple[str, str]], texts: Mapping[str, str]) -> str:
    """A table of two columns, and below it texts that can be unfolded. All values are escaped."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    unfolded = "".join(
        f"<details><summary>best {escape(name)}</summary><pre>{escape(text)}</pre></details>"
        for name, text in texts.items()
    )
    return f"<table>{cells}</table>{unfolded}"
