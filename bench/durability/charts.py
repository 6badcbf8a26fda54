"""The charts of the soaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bench._lib.charts import save, style
from bench.durability.soak import Sample


def draw_soak(path: Path, samples: Sequence[Sample]) -> None:
    """Draw four panels over time: memory, the journal's size, open file handles and tasks, and candidates."""
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
    with style():
        figure = Figure(figsize=(8.0, 4.8), layout="constrained")
        for axes, (label, lines) in zip(figure.subplots(2, 2).flat, panels, strict=True):
            for name, values in lines.items():
                axes.plot(hours, values, label=name)
            axes.set_xlabel("hours")
            axes.set_ylabel(label)
            axes.set_ylim(0, 1.1 * max(max(values) for values in lines.values()))
            if len(lines) > 1:
                axes.legend(frameon=False)
        save(figure, path)
