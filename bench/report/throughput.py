"""Throughput: gepa, agentdescent and ours on one server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tomli_w

from bench.presets import PRESETS
from bench.report.text import Content, percent, ranged, table

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
    "combee_10": "ours, Combee, 10 reflections a proposal",
    "combee_40": "ours, Combee, 40 reflections a proposal",
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
Row = Content


def section(content: Content) -> str:
    by_place: dict[tuple[str, str], list[Row]] = {}
    for row in content["rows"]:
        by_place.setdefault((row["server"], row["workload"]), []).append(row)
    tables = [_methods(server, workload, rows) for (server, workload), rows in by_place.items()]
    title = "Throughput" if content["simulated"] else f"Throughput on a real server ({content['rows'][0]['server']})"
    return "\n\n".join(
        (f"## {title}", _measured(content), _workloads(content), figures(content), *tables, *_presets(content))
    )


def _measured(content: Content) -> str:
    settings = content["settings"]
    where = "*Simulated* servers, over HTTP, at many times their speed" if content["simulated"] else "A real server"
    runs = f"{settings['repeats']} x {settings['seconds']:g} s of real time each"
    busiest = max(row["server_cpu_share"] for row in content["rows"])
    process = "server's process" if content["simulated"] else "process that records requests"
    after = _SPED_UP if content["simulated"] else _room(content)
    return f"""\
    {content["command"]}

{where}.
Every method has the same task, prompts, answer lengths and validation examples, minibatches of 3, and at most
{settings["concurrency"]} calls in flight. Each runs in a process of its own, in random order, {runs},
of which the first fifth is left out of rates. The server records every request: in flight, tokens and proposals
(answered reflections; Combee's are made of many, and counted where they are made) are its count. Peers get a client
that costs less CPU time than their own or ours. Of one core the {process} took {percent(busiest)} at most.{after}

*Accepted* is what entered the pool, which is not the same everywhere: gepa, agentdescent, our lockstep and
`stream_plain` validate whatever was better on its minibatch and keep all of it; `stream_careful` keeps what does
best on some validation example, `stream` only what raises the mean score, and stops validating the rest early.
So it makes more proposals of the same tokens and keeps fewer. Runs are short: a few gepa iterations, and in PxN 8x8
hardly one round, so that its proposals come in lumps (0: none ended in the time counted).{_combee(content)}"""


_SPED_UP = " A\nserver that is sped up multiplies what clients add to a call, for all alike."


def _room(content: Content) -> str:
    """What limits all methods on a server that has less room than clients."""
    by_method = {(row["workload"], row["method"]): row for row in content["rows"]}
    rates = [
        each["output_tokens_per_s"] / by_method[workload, "gepa_sync"]["output_tokens_per_s"]
        for (workload, method), each in by_method.items()
        if method == "ceiling" and (workload, "gepa_sync") in by_method
    ]
    if not rates:
        return ""
    return f"""

This server has little room: load without end gets {min(rates):.1f} to {max(rates):.1f} times the output tokens/s
of synchronous gepa. Streams keep it full all the time (in flight, mean), so they can't be much faster than that, and
output tokens are fewer where more of the work goes into reading prompts (reflection, judging). Where an example takes
four calls, a stream of 64 flows is still filling when a run ends, with requests spent that have no proposal yet."""


def _combee(content: Content) -> str:
    if not any(row["method"].startswith("combee") for row in content["rows"]):
        return " Best scores say little."
    return """

Combee's proposals can't be counted beside the others': each is made of 10 or 40 reflections. **Its best scores are the
highest by far**, ours in the stream included: in the simulated world what many reflections found can nearly always be
put into one prompt (`flowevolve/sim/rules_merger.py`), and Combee is the only one here that does so. How far a real
model can is not measured here. Combee runs in the stream, too (docs/how-to/combee.md)."""


def _workloads(content: Content) -> str:
    rows = [
        (
            name,
            f"{each['calls']}",
            f"{each['prompt_tokens_median']:.0f}",
            ", ".join(f"{tokens:.0f} ({profile})" for profile, tokens in each["output_tokens_median"].items()),
            f"{each['validation']}",
            each["source"],
        )
        for name, each in content["workloads"].items()
    ]
    header = ("workload", "calls per example", "text per prompt", "answers", "validation", "source")
    return f"{table(header, rows)}\n\nTexts and answers are in tokens, medians."


def figures(content: Content) -> str:
    """The table, as the README has it too."""
    intervals = content["intervals"]
    suffixes = [name.removeprefix("saturation_") for name in content["ratios"] if _is_saturation(name)]
    rows = [
        (label, *(_interval(intervals.get(f"{stem}_{each}")) for each in suffixes))
        for stem, label in RATIOS.items()
        if any(f"{stem}_{each}" in intervals for each in suffixes)
    ]
    return table(("mean over workloads (95 % interval)", *suffixes), rows)


def _is_saturation(name: str) -> bool:
    return name.startswith("saturation_") and not name.startswith("saturation_plain_")


def _interval(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "–"
    return ranged({"median": found["mean"], "low": found["low"], "high": found["high"]}, 2)


def _methods(server: str, workload: str, rows: Sequence[Row]) -> str:
    by_method = {row["method"]: row for row in rows}
    lines = [
        (label, *(_cell(by_method[method][name], form) for name, (_, form) in COLUMNS.items()))
        for method, label in LABELS.items()
        if method in by_method
    ]
    return table((f"{server}, {workload}", *(name for name, _ in COLUMNS.values())), lines)


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _presets(content: Content) -> Sequence[str]:
    """Where they are shown: with the simulated servers."""
    if not content["simulated"]:
        return ()
    shown = (f"`{name}`:\n\n```toml\n{tomli_w.dumps(sections).strip()}\n```" for name, sections in PRESETS.items())
    return ("Our settings, to be taken as they are:", *shown)
