"""Tables over all workloads: methods beside synchronous gepa, times to a score, and best scores."""

from __future__ import annotations

from statistics import fmean

from bench._lib.methods.presets import ON_REAL_TIME
from bench._lib.methods.process import CEILING
from bench._lib.text import Content, ranged, table
from bench.throughput.goals import as_interval, interval, places, share
from bench.throughput.labels import LABELS
from bench.throughput.rows import BASE, Row, Rows, beside, by_server, methods, time_to_score, values, workloads

COMPARED = {
    "proposals_per_min": "proposals/min",
    "validations_per_min": "validations/min",
    "accepted_per_min": "accepted/min",
    "output_tokens_per_s": "output tokens/s",
}


def beside_gepa(content: Content) -> str:
    lines = [
        (suffix, label, *(_compared(content, suffix, rows, method, figure) for figure in COMPARED))
        for suffix, rows in places(content).items()
        for method, label in LABELS.items()
        if method in methods(rows) and method not in (BASE, CEILING) and BASE in methods(rows)
    ]
    if not lines:
        return ""
    header = ("server", "over synchronous gepa, mean (95 % interval)", *COMPARED.values())
    return (
        f"{table(header, lines)}\n\nA dash means that synchronous gepa had none on some workload in the time counted."
    )


def _compared(content: Content, suffix: str, rows: Rows, method: str, figure: str) -> str:
    """The ratio from the file where it has one, so that a figure has the same interval everywhere on the page."""
    kept = content["intervals"].get(f"{method}_vs_{BASE}_{suffix}") if figure == "proposals_per_min" else None
    return interval(kept) if kept is not None else as_interval(beside(rows, method, BASE, figure))


def times(content: Content) -> str:
    """Times of all methods but gepa's to the score of synchronous gepa, and of gepa's best PxN width."""
    found = places(content)
    lines = []
    for method, label in LABELS.items():
        if (
            method == CEILING
            or method.startswith("gepa")
            or not any(method in methods(rows) for rows in found.values())
        ):
            continue
        cells = [
            share(time_to_score(rows, method, others)) if others else "–"
            for rows in found.values()
            for others in (methods(rows, BASE), methods(rows, "gepa_pxn"))
        ]
        lines.append((label, *cells))
    kinds = ("synchronous gepa's", "best PxN's")
    header = ("time to a score, over that of", *(f"{suffix}, {kind}" for suffix in found for kind in kinds))
    return f"{table(header, lines)}\n\n{TIMES}"


TIMES = """\
The score to reach is the one that all runs of synchronous gepa, or of the PxN width with the best mean, have at the
end of their windows. Time counts from the end of the seed's validation; for PxN it is that of the soonest width. The
figures are means over the workloads on which all runs of a method reach the score. A workload on which some run does
not reach it is left out of the quotient, which flatters the method; the count beside the quotient says how often that
happened. A workload on which some run has the score already with its seed tells nothing and is not counted."""


def clocks(content: Content) -> str:
    """Methods of ours that ran both on the virtual clock and in real time; nothing where none did."""
    lines = [
        (suffix, name, LABELS[each], *(_spread(rows[name, each], figure) for figure in CLOCK_FIGURES))
        for suffix, rows in places(content).items()
        for real, virtual in ON_REAL_TIME.items()
        for name in workloads(rows, real, virtual)
        for each in (virtual, real)
    ]
    if not lines:
        return ""
    return f"{CLOCKS}\n\n{table(('server', 'workload', 'mean (range of the runs)', *CLOCK_FIGURES.values()), lines)}"


CLOCK_FIGURES = {
    "proposals_per_min": "proposals/min",
    "validations_per_min": "validations/min",
    "output_tokens_per_s": "output tokens/s",
    "mean_in_flight": "in flight",
    "best_score": "best score",
}
CLOCKS = """\
Our methods ran on the virtual clock, and gepa and agentdescent in real time. On the virtual clock nothing takes time
but the server, so what our client costs is not counted. The same two methods on both clocks show what that hides. Runs
differ by chance too, and those in real time have other orders of events, so look at the ranges."""


def _spread(row: Row, figure: str) -> str:
    found = values(row, figure)
    return ranged({"median": fmean(found), "low": min(found), "high": max(found)}, 2)


def best_scores(content: Content) -> str:
    """The best scores at the windows' end, as means over repeats."""
    columns = [
        (f"{server}, {name}", rows, name)
        for server, rows in by_server(content["rows"]).items()
        for name in workloads(rows)
    ]
    lines = [
        (
            label,
            *(
                f"{rows[name, method]['best_score']:.2f}" if (name, method) in rows else "–"
                for _, rows, name in columns
            ),
        )
        for method, label in LABELS.items()
        if method != CEILING and any((name, method) in rows for _, rows, name in columns)
    ]
    return table(("best score at the windows' end", *(title for title, _, _ in columns)), lines)
