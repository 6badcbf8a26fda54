"""How the charts of all benches look and are written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def style() -> AbstractContextManager[None]:
    """The settings for drawing and saving charts. The salt is fixed, so that the same figures give the same file."""
    return mpl.rc_context({"svg.hashsalt": "flowevolve", "font.size": 9})


def save(figure: Figure, path: Path) -> None:
    """Write a chart without the date, so that the same figures give the same file. Creates its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
