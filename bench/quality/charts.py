"""Best scores over time, in every world."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench._lib.charts import save, style


def draw_quality(path: Path, content: Mapping[str, Any]) -> None:
    """Median best validation score over time, a panel for each world."""
    minutes, worlds = content["curves"]["minutes"], content["curves"]["worlds"]
    columns = 2 if len(worlds) > 1 else 1
    rows = -(-len(worlds) // columns)
    with style():
        figure = Figure(figsize=(8.0, 2.2 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False).flat
        for axes, (world, lines) in zip(panels, worlds.items(), strict=False):
            for name, scores in lines.items():
                axes.plot(minutes, scores, label=name)
            axes.set_title(world, fontsize=9)
            axes.set_ylabel("best score")
        panels[0].legend(frameon=False, fontsize=7)
        figure.supxlabel("minutes (simulated)", fontsize=9)
        save(figure, path)
