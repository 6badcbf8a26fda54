"""How all figures look: sizes, letters, colours, and units of axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import IO, Final

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

COLUMN: Final = 3.4
"""The width of a column of a paper, in inches."""
PAGE: Final = 7.0
"""The width of both columns, in inches."""
SHOWN_DPI: Final = 100
"""Pixels per inch at which a notebook shows a figure; it is drawn with twice as many."""

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, RED, YELLOW, GREY = "#56b4e9", "#d55e00", "#f0e442", "#8a8f96"
"""Okabe and Ito's colours (2008), which colour-blind people can tell apart."""
PALE, DARK = "#e6e8eb", "#30353b"
LINES = ((BLUE, "-"), (RED, "--"), (GREEN, "-."), (PURPLE, ":"), (DARK, "-"))
"""Colour and dashes of lines that are drawn into one figure, in turn."""
_ROLES = {"task": BLUE, "reflection": ORANGE, "judge": GREEN, "curator": PURPLE, "embedding": SKY}
_OTHER_ROLES = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)

_SETTINGS: Mapping[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": DARK,
    "axes.labelcolor": DARK,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],  # the first comes with matplotlib
    "font.size": 7,
    "hatch.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.fontsize": 6.5,
    "legend.edgecolor": "none",
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # text stays text
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "flowevolve",
    "text.color": DARK,
    "text.parse_math": False,  # names may hold dollar signs
    "xtick.color": DARK,
    "xtick.labelsize": 6.5,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.color": DARK,
    "ytick.labelsize": 6.5,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}
_NO_DATES: Mapping[str, Mapping[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Drawing(Figure):
    """A figure that is always saved in its own style and without a date, and that notebooks show."""

    def savefig(
        self, fname: str | PathLike[str] | IO[bytes], *, transparent: bool | None = None, **options: object
    ) -> None:
        """Save it as a file, whose ending says the format, or into a buffer. The same run makes the same bytes."""
        ending = Path(fname).suffix[1:] if isinstance(fname, str | PathLike) else ""
        undated = _NO_DATES.get(str(options.get("format") or ending).lower())
        with in_style():
            super().savefig(fname, transparent=transparent, **{"metadata": undated, **options})

    def lay_out(self) -> None:
        """Fix the layout, once for all files."""
        with in_style():
            self.draw_without_rendering()
        self.set_layout_engine("none")

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """What notebooks show, with its size in pixels."""
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=2 * SHOWN_DPI)
        width, height = self.get_size_inches() * SHOWN_DPI
        return buffer.getvalue(), {"width": round(width), "height": round(height)}


def in_style() -> AbstractContextManager[None]:
    """The settings under which figures are drawn and saved, whatever the user's own are."""
    return style.context(["default", dict(_SETTINGS)])


def drawing(width: float, height: float) -> Drawing:
    """An empty figure of this size in inches."""
    return Drawing(figsize=(width, height), layout="constrained")


def role_colours(roles: Iterable[str]) -> dict[str, str]:
    """The colours of roles' requests in their order: the usual roles first, with the colours that they have on the
    page, and then others by name, with colours that are left.
    """
    names = set(roles)
    colours = {name: colour for name, colour in _ROLES.items() if name in names}
    free = cycle([colour for colour in _OTHER_ROLES if colour not in colours.values()] or _OTHER_ROLES)
    return {**colours, **{name: next(free) for name in sorted(names - colours.keys())}}


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit for times up to this many seconds: its name, and how many seconds it has."""
    if seconds < 180:
        return "s", 1.0
    return ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)


def token_unit(tokens: float) -> tuple[str, float]:
    """The unit for up to this many tokens: its name, and how many tokens it has."""
    if tokens < 10_000:
        return "tokens", 1.0
    return ("thousand tokens", 1e3) if tokens < 10_000_000 else ("million tokens", 1e6)


def whole_numbers(axes: Axes) -> None:
    """Put the ticks of the y axis at whole numbers from 0 on, with thousands separators."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def mark(marker: str, colour: str, label: str, *, filled: bool = True) -> Line2D:
    """An entry of a legend for points."""
    inside = colour if filled else "white"
    return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=3.5, label=label, mfc=inside)


def stroke(colour: str, label: str) -> Line2D:
    """An entry of a legend for lines."""
    return Line2D([], [], color=colour, label=label)
