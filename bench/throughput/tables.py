"""Tables over all workloads: methods compared with synchronous gepa, times to a score, and best scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from bench._lib.house_style import PRECISION
from bench._lib.methods.presets import ON_REAL_TIME
from bench._lib.methods.process import CEILING, METHODS, OURS
from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content, percent, ranged, table
from bench._lib.time_to_score import (
    Row,
    Rows,
    TimeToScore,
    afterwards,
    curves,
    median_and_range,
    median_share,
    time_to_score,
    workloads,
)
from bench.throughput.comparisons import PROPOSALS, TOKENS, as_interval
from bench.throughput.goals import GAIN, by_workload, places, runs, score_name, with_held_out
from bench.throughput.labels import LABELS
from bench.throughput.rows import BASE, Unit, beside, by_server, methods, score_at_equal, values


def single_workloads(content: Content) -> str:
    """The times of the defaults to the last score of synchronous gepa and of its parallel widths, on each workload."""
    lines = [
        (suffix, name, _rows(content, name), *(median_share(each) for each in of))
        for suffix, rows in places(content).items()
        for name, of in _on_workloads(rows).items()
    ]
    if not lines:
        return ""
    times = (
        "time of `stream` to synchronous gepa's last score, of its time",
        f"to {percent(GAIN)} of its gain",
        "to the score of gepa's best PxN width, of the soonest width's time",
        "that with `stream` in real time",
    )
    header = ("server", "workload", "rows for validation", *times)
    return f"{table(header[: len(lines[0])], lines)}\n\n{_pairs(content)}"


def _on_workloads(rows: Rows) -> Mapping[str, Sequence[TimeToScore]]:
    """The times on each workload, with those to the score of parallel widths if these were run."""
    widths = methods(rows, "gepa_pxn")
    found = [by_workload(rows, "stream"), by_workload(rows, "stream", gain=GAIN)]
    found += [by_workload(rows, each, widths) for each in ("stream", "stream_real") if widths]
    return {name: [each[name] for each in found if name in each] for name in found[0]}


def _rows(content: Content, workload: str) -> str:
    return f"{content['workloads'][workload]['validation']}"


def _pairs(content: Content) -> str:
    return PAIRS.format(gain=percent(GAIN), precision=PRECISION, runs=_runs(content))


PAIRS = """\
Each run of a method is beside each run of synchronous gepa on the workload, and the two are a pair. So pairs are more
than runs, and those of one run are alike. Its time is to the
score that this run of gepa has at its end, over that run's own, and *{gain} of its gain* is that much of the way there
from the seed's score. Scores that are no more than {precision:g} apart count as equal. A dash means that some run had
the score with its seed already. {runs}"""


def _runs(content: Content) -> str:
    """How many runs each kind of method has on a workload."""
    kinds = {
        "of synchronous gepa": [BASE],
        "of each method of ours": [each for each in OURS if each not in ON_REAL_TIME],
        "of each other method": [each for each in METHODS if each != BASE and each not in OURS],
    }
    counts = {kind: runs(places(content).values(), *names) for kind, names in kinds.items()}
    return f"Runs on each workload: {', '.join(f'{count} {kind}' for kind, count in counts.items() if count)}."


def on_the_way(content: Content) -> str:
    """Scores of the defaults minus gepa's at equal tokens, before all are spent; empty if they are not known."""
    lines = [
        (suffix, *(signed(score_at_equal(rows, "stream", "tokens", part)) for part in PARTS))
        for suffix, rows in places(content).items()
        if score_at_equal(rows, "stream", "tokens") is not None
    ]
    header = ("held-out score of `stream` less synchronous gepa's, at equal tokens", *(f"{part:g}" for part in PARTS))
    return f"{table(header, lines)}\n\n{ON_THE_WAY}" if lines else ""


PARTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""The parts of the tokens, of the run that spent least, after which scores are compared."""
ON_THE_WAY = """\
The columns are parts of the tokens that the run spent which spent least. At the end most runs are near the highest
score, so that there is little left to differ by."""


def beside_gepa(content: Content) -> str:
    """All methods compared with synchronous gepa: first what a user gains, then where it comes from."""
    lines = [
        (suffix, label, *_beside(rows, method))
        for suffix, rows in places(content).items()
        for method, label in LABELS.items()
        if BASE in methods(rows) and method in methods(rows) and method not in (BASE, CEILING)
    ]
    if not lines:
        return ""
    found = places(content).values()
    known = [score_name(rows) == "held-out score" for rows in found]
    worth = HELD_OUT if all(known) else VALIDATED if not any(known) else MIXED
    return f"{table(('server', 'method', *COLUMNS), lines)}\n\n{BESIDE}{worth}{RATES}{_afterwards(content)}"


def _afterwards(content: Content) -> str:
    """How often the defaults lost synchronous gepa's scores again after they had reached them."""
    found = {
        suffix: afterwards(rows, "stream", BASE)
        for suffix, rows in places(content).items()
        if "stream" in methods(rows)
    }
    told = ", ".join(
        f"in {each.later} of {each.reached} pairs that have it ({suffix}; at the end in {each.last})"
        for suffix, each in found.items()
    )
    if not told:
        return ""
    return f" {FIRST} {told}." + (f" {SEE_LOSSES}" if with_held_out(content) else "")


COLUMNS = (
    "time to its score, of its time (median pair)",
    f"to {percent(GAIN)} of its gain",
    "tokens to its score, of its tokens",
    "held-out score at equal calls",
    "at equal tokens",
    "proposals/min",
    "output tokens/s",
)
BESIDE = """\
Everything is beside synchronous gepa. *Its score* is what the prompt that it would return at the end of its windows is
worth"""
HELD_OUT = """\
 on rows that no method has seen. Held-out scores are expectations in the simulated world, estimated from 600 random
answers to each prompt, less those of synchronous gepa, when both have spent as many calls, or tokens (those of prompts,
too), as the one of them that spent least."""
VALIDATED = """\
 on the validation examples. This result has no scores on rows held out, so all times are to validation scores,
by which the best prompt was chosen, too."""
MIXED = f"{HELD_OUT} Where a server has no scores on rows held out, validation scores stand in their place."
FIRST = """\
Times and tokens end when a prompt *first* has the score, and one that is chosen later may be worth less: with `stream`
it was"""
SEE_LOSSES = "The table with the column *time, kept* says from when on each method keeps it."
RATES = """
Rates are geometric means over workloads. Intervals are of 95 %, and of times and tokens the range of the pairs, which
the next table explains. A dash means that it is not known, or that synchronous gepa had none on some workload in the
time counted."""


def _beside(rows: Rows, method: str) -> tuple[str, ...]:
    return (
        *(median_share(time_to_score(rows, method, [BASE], gain)) for gain in (1.0, GAIN)),
        median_and_range(time_to_score(rows, method, [BASE], spent="tokens")),
        *(signed(score_at_equal(rows, method, spent)) for spent in SPENT),
        *(as_interval(beside(rows, method, [BASE], figure)) for figure in (PROPOSALS, TOKENS)),
    )


SPENT: Sequence[Unit] = ("calls", "tokens")


def signed(found: Ratio | None) -> str:
    if found is None:
        return "–"
    bounds = f" ({found.low:+.3f} to {found.high:+.3f})" if math.isfinite(found.high) else ""
    return f"{found.mean:+.3f}{bounds}"


def times_to_scores(content: Content) -> str:
    """Times of all methods but gepa's to the score of gepa's best PxN width; empty if no width was run."""
    found = {suffix: rows for suffix, rows in places(content).items() if methods(rows, "gepa_pxn")}
    if not found:
        return ""
    lines = []
    for method, label in LABELS.items():
        if (
            method == CEILING
            or method.startswith("gepa")
            or not any(method in methods(rows) for rows in found.values())
        ):
            continue
        cells = [median_share(time_to_score(rows, method, methods(rows, "gepa_pxn"))) for rows in found.values()]
        lines.append((label, *cells))
    header = ("time to the score of gepa's best PxN width, over that of the soonest", *found)
    scores = " or ".join(f"{name}s" for name in sorted({score_name(rows) for rows in found.values()}))
    return f"{table(header, lines)}\n\n{TIMES.format(scores=scores, precision=PRECISION)}"


TIMES = """\
These are times to {scores}, in pairs of runs as above: the median of all pairs, and their range. The score to reach is
that of a run of the PxN width with the best mean, at the end of its window, or of another width whose mean is no more
than {precision:g} below it, and the time is over that of the width that has it soonest. It counts from the end of the
seed's validation."""


def clocks(content: Content) -> str:
    """Our methods that ran both on the virtual clock and in real time, on both clocks; empty if none did."""
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
Our methods ran on the virtual clock, and other projects' in real time. On the virtual clock nothing takes time
but the server, so what our client costs is not counted. The same two methods on both clocks show what that hides. Runs
differ by chance too, and those in real time have other orders of events, so look at the ranges."""


def _spread(row: Row, figure: str) -> str:
    found = values(row, figure)
    return ranged({"median": fmean(found), "low": min(found), "high": max(found)}, 2)


def best_scores(content: Content) -> str:
    """The best scores at the windows' end, as means over repeats: those that methods report, and held-out ones."""
    found = by_server(content["rows"])
    tables = [_scores(found, "best validation score at the windows' end", lambda row: float(row["best_score"]))]
    if all(row.get("held_out") for row in content["rows"] if row["method"] != CEILING):
        tables.append(
            _scores(found, "held-out score then", lambda row: fmean(run[-1][1] for run in curves(row) if run))
        )
    return "\n\n".join(tables)


def _scores(found: Mapping[str, Rows], title: str, score: Callable[[Row], float]) -> str:
    columns = [(f"{server}, {name}", rows, name) for server, rows in found.items() for name in workloads(rows)]
    lines = [
        (label, *(f"{score(rows[name, method]):.2f}" if (name, method) in rows else "–" for _, rows, name in columns))
        for method, label in LABELS.items()
        if method != CEILING and any((name, method) in rows for _, rows, name in columns)
    ]
    return table((title, *(column for column, _, _ in columns)), lines)
