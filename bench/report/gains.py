"""What the defaults gain in time beside synchronous gepa, what that costs, and what it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from bench._lib.text import Content, between, table
from bench._lib.time_to_score import (
    Rows,
    TimeToScore,
    afterwards,
    median_and_range,
    median_share,
    time_to_score,
    workloads,
)
from bench.quality.section import share_of
from bench.throughput import section as throughput
from bench.throughput.comparisons import IN_REAL_TIME, PROPOSALS, TOKENS
from bench.throughput.goals import by_workload, places, quotient, runs, score_name
from bench.throughput.rows import BASE, beside, methods, score_at_equal
from bench.throughput.tables import signed

GPU, API = "vllm", "api"
"""The simulated servers."""
HEADER = "the defaults, of one hour, beside synchronous gepa ([page]({folder}throughput.md), commit {commit})"
LEAD = """\
**On simulated servers, the defaults reach synchronous gepa's last held-out score in {time} of its time, by workload,
with {tokens} of its tokens on a GPU and an API (medians).**{equal}{parallel}"""
EQUAL = " At equal tokens there is no clear difference in score."
PARALLEL = """\
 gepa's best parallel width makes {proposals} times as many proposals; the defaults reach its last score in {times} of
the soonest width's time."""
SET_UP = """\
A time or a number of tokens is the median of all pairs of runs: of each workload {gepas} of gepa, in real time over
HTTP, and {ours} of ours, on the virtual clock where nothing else is said. A time ends when a prompt *first* has the
score: in {later} of the pairs that get there it is less again later, in {last} at the end."""
BY_ITSELF = (
    "gepa's rules in our stream (preset `plain`): time and tokens to synchronous gepa's last score, and score at equal "
    "tokens less gepa's"
)
SINGLE = "one validation for each edit"
"""The default that does not merge edits, as `bench.quality` calls it."""
COMBEE = "combee 10"
WITHOUT = """\
Without merging edits and validating them together, the defaults take {single} of lockstep's time instead of {default}
(mean of {count} worlds' medians; [page]({folder}quality_without.md))."""
PLAIN = """\
The stream by itself, with gepa's rules (`plain`), takes {times} of gepa's time to its last score, and {tokens} times
its tokens, on a simulated GPU and API."""
MERGED = """\
Combee, which merges ten reflections at a time in lockstep, takes {theirs} by world, and the defaults {ours}; it spends
{tokens} times their tokens a minute ([page]({folder}quality_others.md))."""
FILLING = """\
On the simulated GPU and API `flashevolve` has synchronous gepa's last score after {times} of its time, where the
defaults take {ours}, and for {tokens} times its tokens; at equal tokens its score, less gepa's, is {score}."""


def lead(content: Content) -> str:
    """What the table of `beside_gepa` comes to."""
    found = _simulated(content)
    times = [each.median for rows in found for each in by_workload(rows, "stream").values() if each.median is not None]
    scores = [score_at_equal(rows, "stream", "tokens") for rows in found]
    equal = all(score is not None and score.low <= 0 <= score.high for score in scores)
    return LEAD.format(
        time=between(quotient(min(times)), quotient(max(times))),
        tokens=_both(_median(_tokens(rows, "stream")) for rows in found),
        equal=EQUAL if equal else "",
        parallel=_parallel(found),
    )


def _parallel(found: Sequence[Rows]) -> str:
    widths = _widths(found)
    proposals = [beside(rows, "stream", widths, PROPOSALS) for rows in found] if widths else []
    means = [each.mean for each in proposals if each is not None]
    if len(means) < len(found):
        return ""
    return PARALLEL.format(
        proposals=_both(f"{1 / mean:.1f}" for mean in means),
        times=_both(_median(time_to_score(rows, "stream", widths)) for rows in found),
    )


def _widths(found: Sequence[Rows]) -> Sequence[str]:
    """The parallel widths of gepa that were run on both servers."""
    return [name for name in methods(found[0], "gepa_pxn") if name in methods(found[1])]


def beside_gepa(content: Content, folder: str) -> str:
    """A table of both simulated servers: the time on each workload, that of runs of ours in real time, as gepa's are,
    where all workloads have one, what it costs, and how gepa's parallel proposals and other settings of ours compare.
    """
    found = _simulated(content)
    names = by_workload(found[0], "stream")
    each = ", ".join(f"`{name}` ({content['workloads'][name]['validation']})" for name in names)
    lines = [
        (
            f"time to its last {score_name(found[0])}, over its own: {each}; rows for validation in brackets",
            _medians("stream"),
        ),
        ("runs of ours that reach all of its last scores", _sure),
        ("tokens to that score, over its own", lambda rows: median_and_range(_tokens(rows, "stream"))),
        ("held-out score at equal tokens, less its own", _score("stream")),
        ("output tokens a second, and proposals", _rates),
        *_beside_pxn(found),
    ]
    if all(workloads(rows, "plain", BASE) for rows in found):
        lines.append((BY_ITSELF, _taken("plain")))
    if throughput.means(content, IN_REAL_TIME):
        lines.insert(1, (f"the same, ours in real time, too ({runs(found, 'stream_real')} run of each)", _real))
    header = HEADER.format(folder=folder, commit=content["commit"])
    return table((header, "on a simulated GPU", "on a simulated API"), [(said, *map(of, found)) for said, of in lines])


Told = Callable[[Rows], str]
"""What is said of the rows of a server."""


def _simulated(content: Content) -> Sequence[Rows]:
    """The rows of both servers."""
    found = places(content)
    return [found[server] for server in (GPU, API)]


def _medians(method: str) -> Told:
    return lambda rows: ", ".join(_median(timed) for timed in by_workload(rows, method).values())


_real = _medians("stream_real")


def _sure(rows: Rows) -> str:
    timed = time_to_score(rows, "stream", [BASE])
    return f"{timed.sure} of {len(timed.by_run)}"


def _score(method: str) -> Told:
    """The interval, which is not clear where it has 0 in it."""

    def told(rows: Rows) -> str:
        found = score_at_equal(rows, method, "tokens")
        unclear = found is not None and found.low <= 0 <= found.high
        return f"{signed(found)}{', no clear difference' if unclear else ''}"

    return told


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
    return (
        ("proposals, over those of gepa's best parallel width (PxN)", _over("stream", widths, PROPOSALS)),
        (
            "time to the last score of gepa's best parallel width, over the soonest width's",
            lambda rows: median_share(time_to_score(rows, "stream", widths)),
        ),
    )


def _taken(method: str) -> Told:
    def told(rows: Rows) -> str:
        timed = time_to_score(rows, method, [BASE])
        return f"{_median(timed)}, {_median(_tokens(rows, method))}, {_score(method)(rows)}"

    return told


def set_up(content: Content) -> str:
    """What the table's figures are of, and what became of scores once they were reached."""
    found = _simulated(content)
    left = [afterwards(rows, "stream", BASE) for rows in found]
    return SET_UP.format(
        gepas=runs(found, BASE),
        ours=runs(found, "stream"),
        later=_both(f"{each.later} of {each.reached}" for each in left),
        last=_both(f"{each.last}" for each in left),
    )


def merging(without: Content, others: Content, folder: str) -> str:
    """What merging edits is worth in time, with links to pages in ``folder``; nothing of what was not measured."""
    return " ".join(filter(None, (without_merging(without, folder), _lockstep(others, folder))))


def without_merging(without: Content, folder: str) -> str:
    """The part of it that our own settings show."""
    found = _by_method(without, SINGLE)
    if found is None:
        return ""
    single, default = (f"{fmean(_times(each)):.2f}" for each in found)
    return WITHOUT.format(single=single, default=default, count=len(found[0]), folder=folder)


def _lockstep(others: Content, folder: str) -> str:
    found = _by_method(others, COMBEE)
    if found is None:
        return ""
    theirs, ours = (between(*map(share_of, (min(_times(each)), max(_times(each))))) for each in found)
    spent = [fmean(row["tokens_per_minute_ratio"]["mean"] for row in each) for each in found]
    return MERGED.format(theirs=theirs, ours=ours, tokens=f"{spent[0] / spent[1]:.1f}", folder=folder)


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
        times=_both(_median(time_to_score(rows, "plain", [BASE])) for rows in found),
        tokens=_both(_median(_tokens(rows, "plain")) for rows in found),
    )


def filling(content: Content) -> str:
    """What the preset that fills a server takes to a score; nothing where it was not measured."""
    found = _simulated(content)
    if not all(workloads(rows, "flashevolve", "stream", BASE) for rows in found):
        return ""
    return FILLING.format(
        times=_both(_median(time_to_score(rows, "flashevolve", [BASE])) for rows in found),
        ours=_both(_median(time_to_score(rows, "stream", [BASE])) for rows in found),
        tokens=_both(_median(_tokens(rows, "flashevolve")) for rows in found),
        score=_both(signed(score_at_equal(rows, "flashevolve", "tokens")) for rows in found),
    )


def _tokens(rows: Rows, method: str) -> TimeToScore:
    return time_to_score(rows, method, [BASE], spent="tokens")


def _median(timed: TimeToScore) -> str:
    return "–" if timed.median is None else quotient(timed.median)


def _both(each: Iterable[str]) -> str:
    return " and ".join(each)
