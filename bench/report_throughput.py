"""The throughput section of the benchmarks page, from its result file.

python -m bench.report_throughput FILE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import tomli_w

from bench.presets import PRESETS

LABELS = {
    "gepa_sync": "gepa 0.1.4, synchronous",
    "gepa_pxn_2x2": "gepa, PxN 2x2",
    "gepa_pxn_4x4": "gepa, PxN 4x4",
    "gepa_pxn_8x8": "gepa, PxN 8x8",
    "agentdescent": "agentdescent 0.7.0, asynchronous",
    "sync": "ours, lockstep",
    "stream_plain": "ours, `stream_plain`",
    "stream": "ours, `stream`",
    "stream_careful": "ours, `stream_careful`",
    "ceiling": "load without end",
}
COLUMNS = {
    "proposals_per_min": ("proposals/min", "{:.2f}"),
    "validations_per_min": ("validations/min", "{:.2f}"),
    "accepted_per_min": ("accepted/min", "{:.2f}"),
    "output_tokens_per_s": ("output tokens/s", "{:.0f}"),
    "mean_in_flight": ("in flight, mean", "{:.1f}"),
    "median_in_flight": ("median", "{:.0f}"),
    "idle_share": ("time with <= 1", "{:.0%}"),
    "tokens_per_accepted": ("tokens per accepted", "{:,.0f}"),
    "best_score": ("best score", "{:.2f}"),
    "client_cpu_s": ("client CPU s", "{:.1f}"),
}
RATIOS = {
    "stream_vs_gepa_sync": "`stream` over synchronous gepa, proposals/min",
    "stream_plain_vs_gepa_sync": "`stream_plain` over synchronous gepa",
    "stream_vs_gepa_pxn": "`stream` over gepa's best PxN width",
    "stream_careful_vs_gepa_sync": "`stream_careful` over synchronous gepa",
    "stream_careful_vs_gepa_pxn": "`stream_careful` over gepa's best PxN width",
    "stream_vs_agentdescent": "`stream` over agentdescent",
    "stream_vs_combee": "`stream` over Combee",
    "sync_vs_gepa_sync": "our lockstep over synchronous gepa",
    "saturation": "`stream`: output tokens/s over those of load without end",
    "saturation_plain": "`stream_plain`: the same",
}
Row = Mapping[str, object]
_ABOUT = ("settings", "machine", "versions")


def section(content: Mapping[str, object]) -> str:
    """Markdown from what `bench.throughput` wrote."""
    by_place: dict[tuple[str, str], list[Row]] = {}
    for row in cast("Sequence[Row]", content["rows"]):
        by_place.setdefault((str(row["server"]), str(row["workload"])), []).append(row)
    tables = [_table(server, workload, rows) for (server, workload), rows in by_place.items()]
    parts = ["## Throughput", _measured(content), _workloads(content), _ratios(content), *tables, _presets()]
    return "\n\n".join(parts) + "\n"


def _measured(content: Mapping[str, object]) -> str:
    settings, machine, versions = (cast("Mapping[str, object]", content[name]) for name in _ABOUT)
    simulated = bool(content["simulated"])
    where = "*Simulated* servers, over HTTP, at many times their speed" if simulated else "A real server"
    shares = [cast(float, row["server_cpu_share"]) for row in cast("Sequence[Row]", content["rows"])]
    runs = f"{settings['repeats']} x {settings['seconds']} s of real time each"
    return f"""    python -m bench.throughput{" --quick" if settings["quick"] else ""}

{where}.
Every method has the same task, prompts, answer lengths and validation examples, minibatches of 3, and at most
{settings["concurrency"]} calls in flight. Each runs in a process of its own, in random order, {runs}, of which the
first fifth is left out of rates. The server records every request: in flight, tokens and proposals (answered
reflections) are its count. Peers get a client that costs less CPU time than their own or ours. Of one core the server
took {max(shares):.0%} at most. A server that is sped up multiplies what clients add to a call, for all alike.

Measured {content["date"]} at commit {content["commit"]} on {machine["processor"]} with {machine["cores"]} cores, Python
{machine["python"]}; {", ".join(f"{name} {number}" for name, number in versions.items())}."""


def _workloads(content: Mapping[str, object]) -> str:
    lines = ["| workload | calls per example | text per prompt | answers | validation | source |", _rule(6)]
    for name, each in cast("Mapping[str, Mapping[str, object]]", content["workloads"]).items():
        outputs = cast("Mapping[str, float]", each["output_tokens_median"])
        lines.append(
            f"| {name} | {each['calls']} | {each['prompt_tokens_median']:.0f} | "
            f"{', '.join(f'{tokens:.0f} ({profile})' for profile, tokens in outputs.items())} | {each['validation']} | "
            f"{each['source']} |"
        )
    return "Tokens are medians.\n\n" + "\n".join(lines)


def _ratios(content: Mapping[str, object]) -> str:
    ratios = cast("Mapping[str, float | None]", content["ratios"])
    intervals = cast("Mapping[str, Mapping[str, object]]", content["intervals"])
    suffixes = list(dict.fromkeys(name.removeprefix("saturation_") for name in ratios if _is_saturation(name)))
    lines = [f"| mean over workloads (95 % interval) | {' | '.join(suffixes)} |", _rule(1 + len(suffixes))]
    for stem, label in RATIOS.items():
        cells = [_interval(intervals.get(f"{stem}_{suffix}")) for suffix in suffixes]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _is_saturation(name: str) -> bool:
    return name.startswith("saturation_") and not name.startswith("saturation_plain_")


def _interval(found: Mapping[str, object] | None) -> str:
    return "-" if found is None else f"{found['mean']:.2f} ({found['low']:.2f}-{found['high']:.2f})"


def _table(server: str, workload: str, rows: Sequence[Row]) -> str:
    lines = [f"| {server}, {workload} | {' | '.join(name for name, _ in COLUMNS.values())} |"]
    lines.append(_rule(1 + len(COLUMNS)))
    by_method = {str(row["method"]): row for row in rows}
    for method, label in LABELS.items():
        if method in by_method:
            cells = [_cell(by_method[method][name], form) for name, (_, form) in COLUMNS.items()]
            lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rule(columns: int) -> str:
    return "| --- " * columns + "|"


def _cell(value: object, form: str) -> str:
    return "-" if value is None else form.format(value)


def _presets() -> str:
    shown = "\n\n".join(f"`{name}`:\n\n```toml\n{tomli_w.dumps(PRESETS[name]).strip()}\n```" for name in PRESETS)
    return f"Our settings, to be taken as they are:\n\n{shown}"


if __name__ == "__main__":
    print(section(json.loads(Path(sys.argv[1]).read_text())))
