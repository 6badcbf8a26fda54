"""The charts of the benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.ablations.runs import MINUTES, Measured, Saturation
from bench.durability.soak import Sample

Runs = Mapping[str, Sequence[Measured]]


def draw(folder: Path, sections: Mapping[str, Runs], stream: Saturation, lockstep: Saturation) -> None:
    """Write one SVG per section, and the timeline of requests in flight."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "flowevolve", "font.size": 9}):
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
    _save(figure, path)


def bars(path: Path, runs: Runs, attribute: str, label: str) -> None:
    """Median over seeds of one figure, with its range."""
    figure, axes = _axes(f"{label} (simulated)", "")
    values = [[float(getattr(each, attribute)) for each in measured] for measured in runs.values()]
    middle = np.array([np.median(each) for each in values])
    low, high = (middle - [min(each) for each in values]), ([max(each) for each in values] - middle)
    axes.barh(list(runs), middle, xerr=[low, high], color="#7a9cc6", error_kw={"lw": 0.8})
    axes.invert_yaxis()
    _save(figure, path)


def timeline(path: Path, stream: Saturation, lockstep: Saturation) -> None:
    """Requests in flight over time, both modes."""
    figure, axes = _axes("minutes (simulated)", "requests in flight")
    for name, measured in (("stream", stream), ("lockstep", lockstep)):
        times, levels = zip(*measured.in_flight, strict=True)
        axes.step(np.array(times) / 60, levels, where="post", label=name, lw=0.9)
    axes.legend(frameon=False)
    _save(figure, path)


def draw_soak(path: Path, samples: Sequence[Sample]) -> None:
    """Four curves over time: memory, the journal, what is open, and what was made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hours = np.array([each.seconds for each in samples]) / 3600
    panels: Sequence[tuple[str, Mapping[str, Sequence[float]]]] = (
        ("MB in memory", {"": [each.rss / 1e6 for each in samples]}),
        ("MB of journal", {"": [each.journal / 1e6 for each in samples]}),
        ("open", {"file handles": [each.handles for each in samples], "tasks": [each.tasks for each in samples]}),
        (
            "candidates",
            {"proposed": [each.proposals for each in samples], "confirmed": [each.pool for each in samples]},
        ),
    )
    with mpl.rc_context({"svg.hashsalt": "flowevolve", "font.size": 9}):
        figure = Figure(figsize=(8.0, 4.8), layout="constrained")
        for axes, (label, lines) in zip(figure.subplots(2, 2).flat, panels, strict=True):
            for name, values in lines.items():
                axes.plot(hours, values, label=name)
            axes.set_xlabel("hours")
            axes.set_ylabel(label)
            axes.set_ylim(0, 1.1 * max(max(values) for values in lines.values()))
            if len(lines) > 1:
                axes.legend(frameon=False)
        _save(figure, path)


def draw_quality(path: Path, content: Mapping[str, Any]) -> None:
    """Median best validation score over time, a panel for each world."""
    path.parent.mkdir(parents=True, exist_ok=True)
    minutes, worlds = content["curves"]["minutes"], content["curves"]["worlds"]
    columns = 2 if len(worlds) > 1 else 1
    rows = -(-len(worlds) // columns)
    with mpl.rc_context({"svg.hashsalt": "flowevolve", "font.size": 9}):
        figure = Figure(figsize=(8.0, 2.2 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False).flat
        for axes, (world, lines) in zip(panels, worlds.items(), strict=False):
            for name, scores in lines.items():
                axes.plot(minutes, scores, label=name)
            axes.set_title(world, fontsize=9)
            axes.set_ylabel("best score")
        panels[0].legend(frameon=False, fontsize=7)
        figure.supxlabel("minutes (simulated)", fontsize=9)
        _save(figure, path)


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
