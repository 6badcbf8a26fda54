"""What the defaults gain in time beside synchronous gepa, what that costs, and what it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content
from bench._lib.time_to_score import (
    Rows,
    TimeToScore,
    afterwards,
    median_and_range,
    time_to_score,
    workloads,
)
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
Times end when a prompt *first* has the score; in {later} of the pairs that get there it is less again later, in {last}
at the end."""
SINGLE = "one validation for each edit"
"""The default that does not merge edits, as `bench.quality` calls it."""
WITHOUT = """\
Without merging several edits and validating them as one, the defaults take {single} of lockstep's time instead of
{default}, in the mean of {count} worlds' medians ([page]({folder}quality_without.md))."""
PLAIN = """\
The stream by itself, with gepa's rules (`plain`), takes {times} of gepa's time to its last score, and {tokens} times
its tokens, on a simulated GPU and API ([page]({folder}throughput.md))."""
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
    return f"{told}; {sure} runs reach all of gepa's scores. {_cost(found)}"


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


def lost_again(content: Content) -> str:
    """What became of scores once they were reached."""
    left = [afterwards(places(content)[server], "stream", BASE) for server in (GPU, API)]
    return AGAIN.format(
        later=_both(f"{each.later} of {each.reached}" for each in left), last=_both(f"{each.last}" for each in left)
    )


def sources(timed: Content, without: Content, folder: str) -> str:
    """What the gain in time comes from, with links to pages in ``folder``; nothing of what was not measured."""
    return " ".join(filter(None, (_single(without, folder), _stream_alone(timed, folder))))


def _single(without: Content, folder: str) -> str:
    medians = {
        method: [row["time_to_sync_held_out"]["median"] for row in without["rows"] if row["method"] == method]
        for method in (SINGLE, without["method"])
    }
    if not medians[SINGLE]:
        return ""
    single, default = (f"{fmean(each):.2f}" for each in medians.values())
    return WITHOUT.format(single=single, default=default, count=len(medians[SINGLE]), folder=folder)


def _stream_alone(content: Content, folder: str) -> str:
    found = [places(content)[server] for server in (GPU, API)]
    if not all(workloads(rows, "plain", BASE) for rows in found):
        return ""
    return PLAIN.format(
        times=_both(_median(time_to_score(rows, "plain", [BASE])) for rows in found),
        tokens=_both(_median(_tokens(rows, "plain")) for rows in found),
        folder=folder,
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
