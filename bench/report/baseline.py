"""How far our own lockstep loop, which is the baseline of the bench on quality, is from gepa itself."""

from __future__ import annotations

from statistics import fmean

from bench._lib.text import Content
from bench._lib.time_to_score import Rows, median_share, time_to_score
from bench.quality import section as quality
from bench.report import gains
from bench.report.merging import merging
from bench.report.results import read
from bench.throughput.comparisons import PROPOSALS
from bench.throughput.goals import places, score_name
from bench.throughput.notes import validated
from bench.throughput.rows import BASE, beside, score_at_equal
from bench.throughput.tables import signed

OURS = "lockstep"
BESIDE_GEPA = """ Beside gepa itself ([throughput](throughput.md), commit {commit})
  its {score} at equal calls, less gepa's, and its time to gepa's last one, over gepa's, are:
  {found}.
  So times on this page are not over gepa's own. Those of the stream over gepa's are on that page and in the README."""

NOT_GEPA = """\
Lockstep is not gepa itself: on the [simulated GPU and
API](../benchmarks/throughput.md) it made {proposals} times gepa's proposals a minute, validated {ours} of them where
gepa validates {theirs}, and had gepa's last score in {pairs} pairs of runs."""


def beside_gepa(throughput: Content) -> str:
    """How far apart our lockstep loop and gepa itself were when both were measured; empty if ours was not."""
    found = gains.simulated(throughput)
    ratios = [beside(rows, OURS, [BASE], PROPOSALS) for rows in found]
    if not (pairs := reached(throughput)):
        return ""
    ours, theirs = (f"{fmean(validated(found, method)):.2f}" for method in (OURS, BASE))
    return NOT_GEPA.format(
        proposals=gains.both("–" if each is None else f"{each.mean:.2f}" for each in ratios),
        ours=ours,
        theirs=theirs,
        pairs=pairs,
    )


def quality_section(content: Content) -> str:
    """The section on quality, with how its lockstep loop compares with gepa."""
    throughput = read("throughput")
    if throughput is None:
        return quality.section(content)
    parts = [read("quality_without"), read("quality_others")]
    without, others = (part or {"method": "", "rows": []} for part in parts)
    sources = f"{merging(without, others, '')} {gains.stream_alone(throughput)}"
    return quality.section(content, _beside_gepa(throughput), sources)


def reached(throughput: Content) -> str:
    """In how many pairs of runs our lockstep loop has synchronous gepa's last score; empty if it was not run."""
    timed = [time_to_score(rows, OURS, [BASE]) for rows in places(throughput).values()]
    pairs = sum(each.pairs for each in timed)
    return f"{sum(each.reached for each in timed)} of {pairs}" if pairs else ""


def _beside_gepa(throughput: Content) -> str:
    found = places(throughput)
    return BESIDE_GEPA.format(
        commit=throughput["commit"],
        score=score_name(next(iter(found.values()))),
        found=";\n  ".join(f"on `{server}` {_found(rows)}" for server, rows in found.items()),
    )


def _found(rows: Rows) -> str:
    time = median_share(time_to_score(rows, OURS, [BASE]))
    return f"{signed(score_at_equal(rows, OURS, 'calls'))}, and {time}"
