"""A real GPU."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from bench.report.text import Content, table

COLUMNS = ("proposals_per_min", "output_tokens_per_s", "mean_in_flight")


def section(content: Content) -> str:
    settings = content["settings"]
    return f"""\
## On a GPU

    python -m bench.gpu --json bench/results/gpu.json

Not simulated: {settings["engine"]} on one {content["machine"]["gpu"]}, {_model(settings)}, \
{settings["minutes"]:g} minutes a method after its seed was validated, at
most {settings["concurrency"]} requests in flight, {settings["repeats"]} time(s) each, in random order. Means.

{_table(content)}

{_ratios(content)}
"""


def _model(settings: Content) -> str:
    if settings["model"] is not None:
        return f"`{settings['model']}`, which says what it says, as long as it likes"
    return f"the shape `{settings['shape']}` with random weights and the simulated world's lengths and words"


def _table(content: Content) -> str:
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in content["rows"]:
        grouped.setdefault((row["workload"], row["method"]), []).append(row)
    header = ("", "proposals/min", "output tokens/s", "in flight", "GPU busy, %", "watts")
    rows = [
        (
            f"{workload}, {method}",
            *(f"{fmean(row[column] for row in each):.1f}" for column in COLUMNS),
            *(_gpu(each, name) for name in ("utilization_percent", "watts")),
        )
        for (workload, method), each in sorted(grouped.items())
    ]
    return table(header, rows)


def _gpu(rows: list[dict[str, Any]], name: str) -> str:
    told = [row["gpu"][name] for row in rows if row["gpu"] is not None]
    return f"{fmean(told):.0f}" if told else "–"


def _ratios(content: Content) -> str:
    said = ", ".join(
        f"{ratio:.1f} with `{name.removesuffix('_vs_gepa_sync')}`" for name, ratio in content["ratios"].items()
    )
    return f"Proposals per minute over those of synchronous gepa, mean over the workloads: {said or 'none'}."
