"""The section of the page on this bench: a real GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.text import Content, table

COLUMNS = ("proposals_per_min", "output_tokens_per_s", "mean_in_flight")


def answer(content: Content) -> str:
    return _ratios(content)


def section(content: Content) -> str:
    settings = content["settings"]
    return f"""\
# On a GPU

    python -m bench.gpu --json bench/results/gpu.json

Nothing here is simulated: {settings["engine"]} runs on one {content["machine"]["gpu"]}, with {_model(settings)}. Each
method has {settings["minutes"]:g} minutes after its seed was validated, and at most {settings["concurrency"]} requests
in flight. It is run {settings["repeats"]} time(s), in random order. Figures are means.

{_table(content)}

{_ratios(content)}
"""


def _model(settings: Content) -> str:
    if settings["model"] is not None:
        return f"`{settings['model']}`, which answers as it likes, at any length"
    return f"the shape `{settings['shape']}` with random weights and the simulated world's lengths and words"


def _table(content: Content) -> str:
    header = ("", "proposals/min", "output tokens/s", "in flight", "GPU busy, %", "watts")
    rows = [
        (
            f"{row['workload']}, {row['method']}",
            *(f"{row[column]:.1f}" for column in COLUMNS),
            *(_gpu(row["gpu"], name) for name in ("utilization_percent", "watts")),
        )
        for row in content["rows"]
    ]
    return table(header, rows)


def _gpu(repeats: Sequence[Mapping[str, float] | None], name: str) -> str:
    told = [each[name] for each in repeats if each is not None]
    return f"{fmean(told):.0f}" if told else "–"


def _ratios(content: Content) -> str:
    known = {
        name.removesuffix("_gpu").replace("_", " "): ratio
        for name, ratio in content["ratios"].items()
        if ratio is not None
    }
    said = ", ".join(f"{name} {ratio:.2f}" for name, ratio in known.items())
    return f"""\
Ratios of proposals per minute (saturation: of output tokens), geometric means over the workloads: {said or "none"}."""
