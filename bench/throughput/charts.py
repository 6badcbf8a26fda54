"""Charts of what the server was doing, with a synchronous method above a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench._lib.charts import save, style
from bench._lib.methods.recording import Role, Span
from bench._lib.methods.runs import Run
from bench.throughput.kept import DRAWN_SECONDS

SHOWN = {"gepa_sync": "gepa, synchronous", "gepa_pxn_4x4": "gepa, PxN 4x4", "stream": "flowevolve, defaults"}
COLOURS: Mapping[Role, str] = {"rollout": "#7a9cc6", "reflection": "#d1495b", "judge": "#edae49", "group": "#66a182"}


def draw(folder: Path, server: str, runs: Mapping[tuple[str, str], Run]) -> None:
    """Write an SVG for each workload, all of the same period. Every request is a bar in the lowest free lane."""
    for workload in dict.fromkeys(workload for workload, _ in runs):
        shown = {label: runs[workload, method] for method, label in SHOWN.items() if (workload, method) in runs}
        if shown:
            with style():
                _timeline(folder / f"timeline_{server}_{workload}.svg", shown)


def _timeline(path: Path, runs: Mapping[str, Run]) -> None:
    figure = Figure(figsize=(8.0, 1.6 * len(runs) + 0.6), dpi=150, layout="constrained")
    panels = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (label, run) in zip(panels, runs.items(), strict=True):
        _lanes(axes, run.spans, run.start)
        axes.set_title(label, loc="left", fontsize=9)
        axes.set_ylabel("in flight")
    panels[-1].set_xlabel("seconds of the server's time")
    panels[-1].set_xlim(0, DRAWN_SECONDS)
    panels[0].set_ylim(bottom=0)
    occur = {span.role for run in runs.values() for span in run.spans}
    patches = [Patch(color=colour, label=f"{role}s") for role, colour in COLOURS.items() if role in occur]
    above = (1.0, 1.0)  # so that it covers no request
    panels[0].legend(handles=patches, frameon=False, ncols=4, loc="lower right", bbox_to_anchor=above, fontsize=7)
    save(figure, path)


def _lanes(axes: Axes, spans: Sequence[Span], start: float) -> None:
    bars: dict[Role, list[tuple[int, float, float]]] = {role: [] for role in COLOURS}
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = 0
    for span in sorted(spans, key=lambda each: each.begun):
        while busy and busy[0][0] <= span.begun:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, lanes)
            lanes += 1
        lane = heappop(free)
        heappush(busy, (span.ended, lane))
        if span.ended > start and span.begun < start + DRAWN_SECONDS:
            bars[span.role].append((lane, span.begun - start, span.ended - span.begun))
    for role, each in bars.items():
        places, lefts, widths = zip(*each, strict=True) if each else ((), (), ())
        axes.barh(
            places, widths, left=lefts, height=0.9, align="edge", color=COLOURS[role], linewidth=0, rasterized=True
        )
