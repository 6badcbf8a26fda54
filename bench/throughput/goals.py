"""The goals, each with its measurement and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench._lib.methods.process import CEILING
from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content, between, table, verdict
from bench._lib.time_to_score import Rows, Spent, TimeToScore, curves, median_share, time_to_score, workloads
from bench.throughput.comparisons import COMPARISONS, as_interval
from bench.throughput.rows import BASE, by_server, methods, over_estimated_pxn


@dataclass(frozen=True, slots=True)
class Goal:
    """The least value that one of `COMPARISONS`, ``ratio``, should have on the server with this suffix."""

    suffix: str
    ratio: str
    least: float
    text: str


GOALS = (
    Goal("vllm", "stream_vs_gepa_sync", 6, "proposals/min, 6 times synchronous gepa's"),
    Goal("api", "stream_vs_gepa_sync", 8, "proposals/min, 8 times synchronous gepa's"),
    Goal("vllm_cpu", "stream_vs_gepa_sync", 5, "proposals/min, 5 times synchronous gepa's"),
    Goal("api", "stream_vs_gepa_pxn", 2, "proposals/min, twice those of gepa's best PxN width"),
    Goal("vllm", "stream_vs_gepa_pxn", 1, "proposals/min, more than gepa's best PxN width"),
    Goal("vllm_cpu", "stream_vs_gepa_pxn", 1, "proposals/min, more than gepa's best PxN width"),
    Goal("vllm", "saturation", 0.95, "output tokens/s, 0.95 of those of load without end"),
    Goal("api", "saturation", 0.95, "output tokens/s, 0.95 of those of load without end"),
    Goal("vllm_cpu", "saturation", 0.90, "output tokens/s, 0.90 of those of load without end"),
)
SIMULATED = ("vllm", "api")
MOST_TIME = 0.3
"""The largest part of synchronous gepa's time to its own last score that a stream should need on simulated servers."""
HELD_OUT = "held-out score"
TIMED = (*SIMULATED, "vllm_cpu")
"""The servers on which a stream should reach PxN's score sooner than PxN."""
GAIN = 0.95
"""The part of synchronous gepa's gain over its seed to which a second time is measured, because the rest of the gain is
soon a matter of thousandths.
"""


def places(content: Content) -> dict[str, Rows]:
    """The rows of each server, by the suffix of its ratios' names."""
    start = "stream_vs_gepa_sync_"
    known = [name.removeprefix(start) for name in content["ratios"] if name.startswith(start)]
    return dict(zip(known, by_server(content["rows"]).values(), strict=True))


def goals(content: Content) -> str:
    """A table of the goals; empty for a server without goals."""
    lines = _found(content)
    if not lines:
        return ""
    header = ("goal of `stream`; ratios are geometric means over workloads", "server", "measured (95 % interval)", "")
    return "\n\n".join([table(header, lines), *_not_measured(content)])


def _not_measured(content: Content) -> Iterator[str]:
    """The goals beside gepa's parallel proposals for each real server on which these were not run."""
    for suffix, rows in places(content).items():
        about = [goal.text for goal in GOALS if (goal.suffix, goal.ratio) == (suffix, "stream_vs_gepa_pxn")]
        if about and suffix not in SIMULATED and not methods(rows, "gepa_pxn"):
            texts = [*about, SOONER.format(score=score_name(rows))]
            yield NOT_MEASURED.format(count=len(texts), texts="; ".join(texts))


SOONER = "time to the {score} of gepa's best PxN width, less than its own"
NOT_MEASURED = """\
{count} more goals, against gepa's parallel proposals on this server, were not measured with the present defaults, and
are not counted: {texts}. Earlier settings of ours made 0.93 times the proposals of PxN 4x4, the only width run, on
21 November (commit a8a6796; two minutes, with one or two rounds of 4x4, on each workload): `aime` 28.1 a minute to
20.0, `ifbench` 18.7 to 20.0, `hotpotqa` 7.5 to 10.0, `hover` 6.2 to 10.0."""


def met(content: Content) -> Mapping[str, bool]:
    """Whether each goal is met; goals name their server if there are several servers."""
    lines = _found(content)
    several = len({suffix for _, suffix, *_ in lines}) > 1
    return {f"{text} ({suffix})" if several else text: said != verdict(met=False) for text, suffix, *_, said in lines}


def _found(content: Content) -> list[tuple[str, ...]]:
    """Each goal, its server, its measurement and the verdict."""
    found = places(content).items()
    lines = [line for suffix, rows in found for line in _time(suffix, rows)]
    return lines + [line for suffix, rows in found for line in _lines(suffix, rows)]


def _time(suffix: str, rows: Rows) -> Iterator[tuple[str, ...]]:
    if suffix in SIMULATED and {BASE, "stream"} <= set(methods(rows)):
        timed = time_to_score(rows, "stream", [BASE])
        last = f"synchronous gepa's last {score_name(rows)}"
        text = f"time to {last}, at most {MOST_TIME} of its own in the median, reached in all pairs"
        yield text, suffix, median_share(timed), verdict(is_soon(timed)) if timed.pairs else "not measured"


def score_name(rows: Rows) -> str:
    """Which kind of score times are measured to."""
    return (
        HELD_OUT
        if all(row.get("held_out") for (_, name), row in rows.items() if name != CEILING)
        else "validation score"
    )


def with_held_out(content: Content) -> Mapping[str, Rows]:
    """The rows of each server whose scores on rows held out are known, as `places`."""
    return {suffix: rows for suffix, rows in places(content).items() if score_name(rows) == HELD_OUT}


def _lines(suffix: str, rows: Rows) -> Iterator[tuple[str, ...]]:
    for goal in GOALS:
        found = COMPARISONS[goal.ratio].found(rows) if goal.suffix == suffix else None
        if found is not None:
            estimated = over_estimated_pxn(rows, "stream") if goal.ratio == "stream_vs_gepa_pxn" else None
            yield goal.text, suffix, _measured(found, estimated), _verdict(goal, found, estimated)
    pxn = methods(rows, "gepa_pxn")
    if suffix in TIMED and pxn and "stream" in methods(rows):
        timed = [time_to_score(rows, each, pxn) for each in ("stream", "stream_real") if each in methods(rows)]
        text = SOONER.format(score=score_name(rows))
        told = "; in real time ".join(median_share(each) for each in timed)
        yield text, suffix, told, verdict(all(map(is_sooner, timed))) if timed[0].pairs else "not measured"


def is_soon(timed: TimeToScore) -> bool:
    return timed.median is not None and timed.median <= MOST_TIME and timed.reached == timed.pairs


def is_sooner(timed: TimeToScore) -> bool:
    """Whether the method is sooner in the median, and every run of it reaches every score."""
    return timed.median is not None and timed.median < 1 and timed.reached == timed.pairs


def _measured(found: Ratio, estimated: Ratio | None) -> str:
    counted = as_interval(found)
    return counted if estimated is None else f"{counted}; with 8x8 estimated {as_interval(estimated)}"


def _verdict(goal: Goal, found: Ratio, estimated: Ratio | None) -> str:
    both = [found, *([] if estimated is None else [estimated])]
    if min(each.mean for each in both) < goal.least:
        return verdict(met=False)
    below = any(each.low < goal.least and math.isfinite(each.high) for each in both)
    return verdict(met=True) + ("; the interval reaches below it" if below else "")


def runs(places: Iterable[Rows], *methods: str) -> str:
    """How many runs these methods have on a workload, as a range; empty if none of them was run."""
    counts = [len(curves(row)) for rows in places for (_, method), row in rows.items() if method in methods]
    return between(min(counts), max(counts)) if counts else ""


def by_workload(
    rows: Rows,
    method: str,
    others: Sequence[str] = (BASE,),
    *,
    gain: float = 1.0,
    spent: Spent = "seconds",
    kept: bool = False,
) -> Mapping[str, TimeToScore]:
    """A method's time to the last score of the best of ``others``, by default synchronous gepa, for each workload
    separately. See `time_to_score`.
    """
    return {
        name: time_to_score(
            {key: row for key, row in rows.items() if key[0] == name}, method, others, gain, spent, kept=kept
        )
        for name in workloads(rows, method, *others)
    }


def range_of_medians(timed: Iterable[TimeToScore]) -> str:
    """From the smallest to the largest of the known medians; empty if none is known."""
    medians = [each.median for each in timed if each.median is not None]
    return between(quotient(min(medians)), quotient(max(medians))) if medians else ""


def quotient(found: float) -> str:
    return "never" if math.isinf(found) else f"{found:.2f}"
