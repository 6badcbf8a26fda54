"""The charts of the ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench._lib.charts import save, style
from bench.ablations.runs import MINUTES, Measured
from bench.ablations.saturation import Saturation

Runs = Mapping[str, Sequence[Measured]]


def draw(folder: Path, sections: Mapping[str, Runs], stream: Saturation, lockstep: Saturation) -> None:
    """Write an SVG for each question, and the timeline of requests in flight."""
    with style():
        curves(folder / "staleness.svg", sections["staleness"])
        bars(folder / "speculation.svg", sections["speculation"], "validations", "validations per minute")
        bars(folder / "version_gap.svg", sections["scheduling"], "mean_gap", "mean version gap at update")
        for name, runs in sections.items():
            if name.startswith("allocation"):
                bars(folder / f"{name.replace(' ', '_')}.svg", runs, "accepted", "accepted per minute")
        timeline(folder / "in_flight.svg", stream, lockstep)


def curves(path: Path, runs: Runs) -> None:
    """Median best validation score over time."""
    times = np.linspace(0, MINUTES * 60, 181)
    figure, axes = _axes("minutes (simulated)", "best validation score")
    for name, measured in runs.items():
        scores = np.median([[each.at(time) for time in times] for each in measured], axis=0)
        axes.plot(times / 60, scores, label=name)
    axes.legend(frameon=False, fontsize=7)
    save(figure, path)


def bars(path: Path, runs: Runs, attribute: str, label: str) -> None:
    """Draw the median of one figure over the seeds, with its range."""
    figure, axes = _axes(f"{label} (simulated)", "")
    values = [[float(getattr(each, attribute)) for each in measured] for measured in runs.values()]
    middle = np.array([np.median(each) for each in values])
    low, high = (middle - [min(each) for each in values]), ([max(each) for each in values] - middle)
    axes.barh(list(runs), middle, xerr=[low, high], color="#7a9cc6", error_kw={"lw": 0.8})
    axes.invert_yaxis()
    save(figure, path)


def timeline(path: Path, stream: Saturation, lockstep: Saturation) -> None:
    """Requests in flight over time, both modes."""
    figure, axes = _axes("minutes (simulated)", "requests in flight")
    for name, measured in (("stream", stream), ("lockstep", lockstep)):
        times, levels = zip(*measured.in_flight, strict=True)
        axes.step(np.array(times) / 60, levels, where="post", label=name, lw=0.9)
    axes.legend(frameon=False)
    save(figure, path)


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes
