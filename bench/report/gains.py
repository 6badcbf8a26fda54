"""What the defaults gain in time beside synchronous gepa, what that costs, and what it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content, between
from bench._lib.time_to_score import (
    Rows,
    TimeToScore,
    afterwards,
    median_and_range,
    time_to_score,
    workloads,
)
from bench.quality.section import share_of
from bench.throughput import section as throughput
from bench.throughput.comparisons import IN_REAL_TIME, TOKENS
from bench.throughput.goals import by_workload, places, quotient, runs
from bench.throughput.rows import BASE, beside, score_at_equal
from bench.throughput.tables import signed

GPU, API = "vllm", "api"
"""The simulated servers."""
COST = """\
Cost: {rate} times its output tokens a second, and to that score {tokens} of its tokens, more than gepa's in {more} \
pairs; at equal tokens the scores, less gepa's, are {score}{sure}"""
AGAIN = """\
A time ends when a prompt *first* has the score: in {later} of the pairs that get there it is less again later, in \
{last} at the end"""
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


def time(content: Content) -> str:
    """The time on each workload of each server, that of runs of ours in real time, as gepa's are, where all workloads
    have one, and what it costs.
    """
    found = [places(content)[server] for server in (GPU, API)]
    on_gpu, on_api = (_medians(each, "stream") for each in found)
    named = ", ".join(
        f"{time} ({name}, {content['workloads'][name]['validation']}{'' if number else ' rows for validation'})"
        for number, (name, time) in enumerate(on_gpu.items())
    )
    told = f"of gepa's time, on a simulated GPU {named}; on a simulated API {', '.join(on_api.values())}"
    if throughput.means(content, IN_REAL_TIME):
        each = runs(found, "stream_real")
        again = _both(", ".join(_medians(rows, "stream_real").values()) for rows in found)
        told += f"; with ours in real time, too ({each} run of each), {again}"
    timed = [time_to_score(rows, "stream", [BASE]) for rows in found]
    sure = _both(f"{each.sure} of {len(each.by_run)}" for each in timed)
    return f"{told}; {sure} runs reach all of gepa's scores. {_cost(found)}. {_lost_again(found)}"


def _medians(rows: Rows, method: str) -> Mapping[str, str]:
    return {name: _median(timed) for name, timed in by_workload(rows, method).items()}


def _cost(found: Sequence[Rows]) -> str:
    spent = [_tokens(rows, "stream") for rows in found]
    scores = [score_at_equal(rows, "stream", "tokens") for rows in found]
    known = [each for each in scores if each is not None]
    return COST.format(
        rate=_both(_mean(beside(rows, "stream", [BASE], TOKENS)) for rows in found),
        tokens=_both(map(median_and_range, spent)),
        score=_both(map(signed, scores)),
        sure=", no clear difference" if known and all(each.low <= 0 <= each.high for each in known) else "",
        more=_both(f"{sum(each > 1 for each in timed.by_pair)} of {timed.pairs}" for timed in spent),
    )


def _lost_again(found: Sequence[Rows]) -> str:
    """What became of scores once they were reached."""
    left = [afterwards(rows, "stream", BASE) for rows in found]
    return AGAIN.format(
        later=_both(f"{each.later} of {each.reached}" for each in left), last=_both(f"{each.last}" for each in left)
    )


def sources(timed: Content, without: Content, others: Content, folder: str) -> str:
    """What the gain in time comes from, with links to pages in ``folder``; nothing of what was not measured."""
    return " ".join(filter(None, (_single(without, folder), _lockstep(others, folder), _stream_alone(timed))))


def _single(without: Content, folder: str) -> str:
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


def _stream_alone(content: Content) -> str:
    found = [places(content)[server] for server in (GPU, API)]
    if not all(workloads(rows, "plain", BASE) for rows in found):
        return ""
    return PLAIN.format(
        times=_both(_median(time_to_score(rows, "plain", [BASE])) for rows in found),
        tokens=_both(_median(_tokens(rows, "plain")) for rows in found),
    )


def filling(content: Content) -> str:
    """What the preset that fills a server takes to a score; nothing where it was not measured."""
    found = [places(content)[server] for server in (GPU, API)]
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


def _mean(found: Ratio | None) -> str:
    return "–" if found is None else f"{found.mean:.1f}"


def _both(each: Iterable[str]) -> str:
    return " and ".join(each)
