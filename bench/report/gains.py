"""What the defaults gain in time beside synchronous gepa, what that costs, and what it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content, between, table
from bench._lib.time_to_score import (
    Rows,
    Spent,
    TimeToScore,
    afterwards,
    curves,
    median_share,
    reached,
    time_to_score,
    workloads,
)
from bench.quality import beside as quality_beside
from bench.quality.section import share_of
from bench.throughput import section as throughput
from bench.throughput.comparisons import IN_REAL_TIME, PROPOSALS, TOKENS
from bench.throughput.goals import by_workload, places, quotient, range_of_medians, runs, score_name
from bench.throughput.rows import BASE, beside, methods, score_at_equal
from bench.throughput.tables import signed

GPU, API = "vllm", "api"
"""The simulated servers."""
HEADER = "the defaults, of one hour, beside synchronous gepa ([page]({folder}throughput.md), commit {commit})"
LEAD = """\
**On simulated servers the defaults reach synchronous gepa's last score of an hour after {time} of the time that gepa
takes to it, and for {tokens} of its tokens{real}.** These are medians by workload; synchronous is one proposal at a
time. {missed} runs miss one of these scores. {equal}{parallel} {goals}"""
REAL = "; where ours run in real time, too, {time} and {tokens}"
EQUAL = """\
At equal tokens scores don't clearly differ: most are near {most}, the highest of any run. """
PARALLEL = """\
With parallel proposals gepa makes {proposals} times the defaults' proposals (at most {most}, by workload); the best
score of any width the defaults reach after {times} of the soonest width's time, on a GPU and an API{real}."""
REAL_PARALLEL = "; in real time, as gepa ran, {times}"
EARLY = (0.1, 0.05)
"""The parts of the tokens that synchronous gepa spends in the hour at which scores are compared, too."""
SET_UP = """\
Medians are over pairs of runs: of each workload {gepas} of synchronous gepa{parallel}, in real time, and {ours} of
ours, on the virtual clock, all on the same rows: what others give is in no range. Brackets are ranges over
pairs and, of scores, 95 % intervals. Times end when a prompt *first* has the score; {later} pairs lose it later."""
BY_ITSELF = (
    "gepa's rules in our stream (preset `plain`): time and tokens to synchronous gepa's last score, by workload, and "
    "score at equal tokens less gepa's"
)
SINGLE = "one validation for each edit"
"""The default that does not merge edits, as `bench.quality` calls it."""
WITHOUT = """\
[Without merging edits and validating them together]({folder}quality_without.md) the defaults take {single} of
lockstep's time, by world, instead of {default}."""
PLAIN = """\
The stream by itself, with gepa's rules (`plain`), takes {times} of gepa's time to its last score, by workload, and
{tokens} times its tokens, on a simulated GPU and API."""
MERGED = """\
[Combee as published]({folder}quality_others.md), 10 or 40 reflections merged at a time in lockstep, {ahead}."""
FILLED = """\
`flashevolve` fills a server; at equal tokens its simulated score, less gepa's, is {score}."""
FILLING = """\
On the simulated GPU and API `flashevolve` has synchronous gepa's last score after {times} of its time, by workload,
where the defaults take {ours}, and for {tokens} times its tokens; at equal tokens its score, less gepa's, is
{score}."""


def lead(content: Content, goals: str) -> str:
    """What the table of `beside_gepa` comes to, with what is to be said of ``goals``."""
    found = _simulated(content)
    timed = [time_to_score(rows, "stream", [BASE]) for rows in found]
    count = sum(len(each.by_run) for each in timed)
    in_real_time = throughput.means(content, IN_REAL_TIME)
    unclear = all(_is_unclear(score_at_equal(rows, "stream", "tokens")) for rows in found)
    return LEAD.format(
        time=_medians(found, "stream"),
        tokens=_medians(found, "stream", spent="tokens"),
        real=_real(found) if in_real_time else "",
        missed=f"{count - sum(each.sure for each in timed)} of {count}",
        equal=EQUAL.format(most=f"{_highest(found):.3f}") if unclear else "",
        parallel=_parallel(found),
        goals=goals,
    ).strip()


def _real(found: Sequence[Rows]) -> str:
    return REAL.format(time=_medians(found, "stream_real"), tokens=_medians(found, "stream_real", spent="tokens"))


def _medians(found: Sequence[Rows], method: str, others: Sequence[str] = (BASE,), *, spent: Spent = "seconds") -> str:
    """The range of what a method takes to the last score of others, over workloads and servers: each the median pair's
    time or tokens over their own.
    """
    return range_of_medians(each for rows in found for each in by_workload(rows, method, others, spent=spent).values())


def _on_each(found: Sequence[Rows], method: str, others: Sequence[str] = (BASE,), *, spent: Spent = "seconds") -> str:
    """The same of each server by itself."""
    return _both(_medians([rows], method, others, spent=spent) for rows in found)


def _highest(found: Sequence[Rows]) -> float:
    """The highest held-out score that any run of any method had."""
    return max(worth for rows in found for row in rows.values() for run in curves(row) for _, worth in run)


def _parallel(found: Sequence[Rows]) -> str:
    widths = _widths(found)
    proposals = [beside(rows, "stream", widths, PROPOSALS) for rows in found] if widths else []
    known = [each for each in proposals if each is not None]
    if len(known) < len(found):
        return ""
    return PARALLEL.format(
        proposals=_both(f"{1 / each.mean:.1f}" for each in known),
        most=_both(f"{1 / min(each.by_workload.values()):.1f}" for each in known),
        times=_on_each(found, "stream", widths),
        real=REAL_PARALLEL.format(times=_on_each(found, "stream_real", widths)) if _in_real_time(found) else "",
    )


def _in_real_time(found: Sequence[Rows]) -> bool:
    """Whether ours ran in real time, too, on all workloads of both servers."""
    return all(workloads(rows, "stream_real") == workloads(rows, "stream") for rows in found)


def _widths(found: Sequence[Rows]) -> Sequence[str]:
    """The parallel widths of gepa that were run on both servers."""
    return [name for name in methods(found[0], "gepa_pxn") if name in methods(found[1])]


def beside_gepa(content: Content, folder: str) -> str:
    """A table of both simulated servers: the time on each workload, what it costs, and how gepa's parallel proposals
    and its rules in our stream compare.
    """
    found = _simulated(content)
    names = by_workload(found[0], "stream")
    each = ", ".join(f"`{name}` ({content['workloads'][name]['validation']})" for name in names)
    lines = [
        (
            f"time to its last {score_name(found[0])}, over its own: {each}; rows for validation in brackets",
            _in_order("stream"),
        ),
        ("tokens to that score, over its own", _in_order("stream", spent="tokens")),
        (
            "held-out score at its tokens of the hour, less its own; at a tenth and a twentieth of them",
            lambda rows: "; ".join(_score("stream", part)(rows) for part in (1.0, *EARLY)),
        ),
        ("output tokens a second, and proposals", _rates),
        *_beside_pxn(found),
    ]
    if all(workloads(rows, "plain", BASE) for rows in found):
        lines.append((BY_ITSELF, _taken("plain")))
    header = HEADER.format(folder=folder, commit=content["commit"])
    return table((header, "on a simulated GPU", "on a simulated API"), [(said, *map(of, found)) for said, of in lines])


Told = Callable[[Rows], str]
"""What is said of the rows of a server."""


def _simulated(content: Content) -> Sequence[Rows]:
    """The rows of both servers."""
    found = places(content)
    return [found[server] for server in (GPU, API)]


def _in_order(method: str, others: Sequence[str] = (BASE,), *, spent: Spent = "seconds") -> Told:
    """The medians of the workloads, in the order in which the table's first line names them."""
    return lambda rows: ", ".join(map(_median, by_workload(rows, method, others, spent=spent).values()))


def _score(method: str, part: float = 1.0) -> Told:
    def told(rows: Rows) -> str:
        found = score_at_equal(rows, method, "tokens", part)
        return f"{signed(found)}{', no clear difference' if _is_unclear(found) else ''}"

    return told


def _is_unclear(difference: Ratio | None) -> bool:
    """Whether its interval has 0 in it."""
    return difference is not None and difference.low <= 0 <= difference.high


def _over(method: str, others: Sequence[str], figure: str) -> Told:
    def told(rows: Rows) -> str:
        found = beside(rows, method, others, figure)
        return "–" if found is None else f"{found.mean:.2f} times"

    return told


def _rates(rows: Rows) -> str:
    return ", ".join(_over("stream", [BASE], figure)(rows) for figure in (TOKENS, PROPOSALS))


def _beside_pxn(found: Sequence[Rows]) -> Sequence[tuple[str, Told]]:
    widths = _widths(found)
    if not widths:
        return ()
    best = "time to the best score that a parallel width of gepa (PxN) ends with, over the soonest width's"
    ours = ("stream", "stream_real") if _in_real_time(found) else ("stream",)
    return (
        (
            best if len(ours) == 1 else f"{best}; then with ours in real time, as gepa's",
            lambda rows: "; then ".join(_beside_best(rows, each, widths) for each in ours),
        ),
        (
            "gepa's soonest parallel width: its time to synchronous gepa's last score, over the latter's own",
            lambda rows: _soonest(rows, widths),
        ),
    )


def _beside_best(rows: Rows, method: str, widths: Sequence[str]) -> str:
    return f"{_in_order(method, widths)(rows)}, {reached(time_to_score(rows, method, widths))}"


def _soonest(rows: Rows, widths: Sequence[str]) -> str:
    """The width that has synchronous gepa's last score soonest in the median of all pairs."""
    timed = {name: time_to_score(rows, name, [BASE]) for name in widths}
    medians = {name: math.inf if each.median is None else each.median for name, each in timed.items()}
    best = min(medians, key=lambda name: medians[name])
    return f"{best.removeprefix('gepa_pxn_')}: {median_share(timed[best])}"


def _taken(method: str) -> Told:
    def told(rows: Rows) -> str:
        return f"{_medians([rows], method)}, {_medians([rows], method, spent='tokens')}, {_score(method)(rows)}"

    return told


def set_up(content: Content) -> str:
    """What the table's figures are of, and what became of scores once they were reached."""
    found = _simulated(content)
    left = [afterwards(rows, "stream", BASE) for rows in found]
    wide = runs(found, *_widths(found))
    return SET_UP.format(
        gepas=runs(found, BASE),
        parallel=f", {wide} of each parallel width" if wide else "",
        ours=runs(found, "stream"),
        later=_both(f"{each.later} of {each.reached}" for each in left),
    )


def merging(without: Content, others: Content, folder: str) -> str:
    """What merging edits is worth in time, with links to pages in ``folder``; nothing of what was not measured."""
    return " ".join(filter(None, (without_merging(without, folder), _lockstep(others, folder))))


def without_merging(without: Content, folder: str) -> str:
    """The part of it that our own settings show."""
    found = _by_method(without, SINGLE)
    if found is None:
        return ""
    single, default = map(_by_world, found)
    return WITHOUT.format(single=single, default=default, folder=folder)


def _by_world(rows: Sequence[Content]) -> str:
    return between(*map(share_of, (min(_times(rows)), max(_times(rows)))))


def _lockstep(others: Content, folder: str) -> str:
    if not any(row["method"] in quality_beside.PUBLISHED for row in others["rows"]):
        return ""
    return MERGED.format(ahead=quality_beside.as_published(others), folder=folder)


def _by_method(content: Content, method: str) -> tuple[Sequence[Content], Sequence[Content]] | None:
    """The rows of a method and of the default, one for each world; None where it was not run."""
    theirs, ours = ([row for row in content["rows"] if row["method"] == each] for each in (method, content["method"]))
    return (theirs, ours) if theirs else None


def _times(rows: Sequence[Content]) -> Sequence[float]:
    return [row["time_to_sync_held_out"]["median"] for row in rows]


def stream_alone(content: Content) -> str:
    found = _simulated(content)
    if not all(workloads(rows, "plain", BASE) for rows in found):
        return ""
    return PLAIN.format(
        times=_on_each(found, "plain"),
        tokens=_on_each(found, "plain", spent="tokens"),
    )


def filling(content: Content) -> str:
    """What the preset that fills a server takes to a score; nothing where it was not measured."""
    found = _simulated(content)
    if not all(workloads(rows, "flashevolve", "stream", BASE) for rows in found):
        return ""
    return FILLING.format(
        times=_on_each(found, "flashevolve"),
        ours=_on_each(found, "stream"),
        tokens=_on_each(found, "flashevolve", spent="tokens"),
        score=_scores_when_filled(found),
    )


def filled(content: Content) -> str:
    """What the preset that fills a server does to the score at equal tokens; nothing where it was not measured."""
    found = _simulated(content)
    if not all(workloads(rows, "flashevolve", BASE) for rows in found):
        return ""
    return FILLED.format(score=_scores_when_filled(found))


def _scores_when_filled(found: Sequence[Rows]) -> str:
    return _both(signed(score_at_equal(rows, "flashevolve", "tokens")) for rows in found)


def _median(timed: TimeToScore) -> str:
    return "–" if timed.median is None else quotient(timed.median)


def _both(each: Iterable[str]) -> str:
    return " and ".join(each)
