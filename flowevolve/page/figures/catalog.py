"""The figures by name, and writing them to files. matplotlib, an extra, is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.journal.files import writing
from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.reading.source import RunSource, distinct, run_name
from flowevolve.page.tables.memory import Tables

if TYPE_CHECKING:
    from flowevolve.page.figures.style import Drawing

FIGURES: Mapping[str, str] = {
    "timeline": "timeline:draw_timeline",
    "score": "score:draw_score",
    "score_tokens": "score:draw_score_over_tokens",
    "lineage": "lineage:draw_lineage",
    "heat_map": "heat_map:draw_heat_map",
    "staleness": "staleness:draw_staleness",
}
"""The function that draws each figure, by its module in this folder."""
ENDINGS = (".svg", ".pdf", ".png")


class Draw(Protocol):
    """Draws a figure.

    Raises:
        EmptyFigureError: if it would be empty.
    """

    def __call__(self, runs: Mapping[str, Tables]) -> Drawing: ...


@dataclass(frozen=True, slots=True)
class Written:
    """The files of figures, and why others were not drawn."""

    files: Sequence[Path]
    empty: Mapping[str, str]
    """Why there is no figure, by its name."""


def draw(directory: Path, name: str) -> Drawing:
    """Draw one figure of the run in a directory.

    Raises:
        EmptyFigureError: if it would be empty.
        InputError: if there is no such figure or no run, or matplotlib is not installed.
    """
    if name not in FIGURES:
        raise InputError(f"there is no figure {name!r}; {did_you_mean(name, tuple(FIGURES))}")
    function = _function(name)
    return function(_read([directory]))


def write_figures(directories: Sequence[Path], folder: Path) -> Written:
    """Draw all figures of a run as SVG, PDF and PNG into a folder.

    Further runs are drawn only in the figures of scores, beside the first.

    Raises:
        DamagedError: if a journal is damaged.
        InputError: if there is no run in a directory, a file can't be written, or matplotlib is not installed.
    """
    functions = {name: _function(name) for name in FIGURES}
    runs = _read(directories)
    files, empty = list[Path](), dict[str, str]()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, function in functions.items():
            try:
                drawing = function(runs)
            except EmptyFigureError as error:
                empty[name] = error.why
                continue
            drawing.lay_out()
            for ending in ENDINGS:
                file = folder / f"{name}{ending}"
                file.unlink(missing_ok=True)  # it may be a link to a file elsewhere
                drawing.savefig(file)
                files.append(file)
    return Written(files, empty)


def _read(directories: Sequence[Path]) -> Mapping[str, Tables]:
    """The tables of runs, by unique names."""
    runs = {}
    for name, directory in zip(distinct([run_name(each) for each in directories]), directories, strict=True):
        with RunSource(directory, name) as source:
            runs[name] = Tables(source.changes())
    return runs


def _function(name: str) -> Draw:
    """Raises: InputError if matplotlib is not installed."""
    try:
        function: Draw = resolve_name(f"flowevolve.page.figures.{FIGURES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise InputError("figures are drawn with matplotlib: pip install 'flowevolve[figures]'") from None
    return function
