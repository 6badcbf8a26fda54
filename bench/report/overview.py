"""The gain over synchronous gepa at a glance: a sentence, and a table of the defaults and of other methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bench._lib.methods.presets import ON_REAL_TIME
from bench._lib.text import Content, table
from bench._lib.time_to_score import Rows, TimeToScore, afterwards, workloads
from bench.report.gains import both, medians, missed, simulated, widths_of
from bench.throughput.goals import by_workload, range_of_medians, runs, score_name
from bench.throughput.lengths import after
from bench.throughput.rows import BASE, MERGING_PEER

LEAD = """\
**On simulated servers the defaults have the {score} that synchronous gepa (one proposal at a time) ends an hour with
after {time} of its time, and for {tokens} of its tokens** (medians; the table counts runs that miss it).{shorter}"""
SHORTER = """
In shorter runs they gain less: they have gepa's score of {longer:g} minutes after {at_longer} of its time, and that of
{shorter:g} minutes after {at_shorter}."""
SHORT, LONG = 2.5, 10.0
"""The lengths in minutes of the shorter runs that are told of: of the longest on a GPU, and of README's examples."""
METHODS: Mapping[str, str] = {
    "stream": "the defaults",
    "stream_real": "the same, in real time",
    "stream_time": '[`aim = "time"`]({aims})',
    "stream_time_real": "the same, in real time",
    MERGING_PEER: "agentdescent with its merging, in real time",
}
"""The methods of the table, each with its name there."""
WIDTHS = "gepa's parallel proposals, the soonest of {widths} widths, in real time"
HEADER = (
    "what it takes to reach synchronous gepa's last {score}",
    "GPU: of gepa's time",
    "of its tokens",
    "runs that miss it",
    "API: of gepa's time",
    "of its tokens",
    "runs that miss it",
)
SET_UP = """\
Each figure is the range of the workloads' medians ({each} rows for validation) over all pairs with synchronous
gepa's. A run misses the score if one of gepa's has a higher one. Of each workload there are {gepas} runs of
synchronous gepa{parallel} and {ours} of ours{real}; ours are on the virtual clock if nothing is said. Times end when a
prompt *first* has the score; {later} pairs lose it later. [All figures]({page}): commit {commit}{older}."""


def lead(content: Content) -> str:
    """What the defaults gain, in a sentence, and what they gain in shorter runs."""
    found = simulated(content)
    return LEAD.format(
        score=score_name(found[0]),
        time=medians(found, "stream"),
        tokens=medians(found, "stream", spent="tokens"),
        shorter=_shorter(found),
    )


def _shorter(found: Sequence[Rows]) -> str:
    """What the defaults take to the scores of shorter runs of synchronous gepa; empty if that is not known."""
    at_longer, at_shorter = (after(found, minutes) for minutes in (LONG, SHORT))
    if not at_longer or not at_shorter:
        return ""
    return SHORTER.format(longer=LONG, at_longer=at_longer, shorter=SHORT, at_shorter=at_shorter)


def methods_beside_gepa(content: Content, aims: str) -> str:
    """A table of what each method takes to reach gepa's last score on both simulated servers. It leaves out methods
    that were not run on both. ``aims`` is the place where the aim for time is explained.
    """
    found = simulated(content)
    lines = [
        (name.format(aims=aims), *(cell for rows in found for cell in _cells(rows, method)))
        for method, name in METHODS.items()
        if all(workloads(rows, method, BASE) for rows in found)
    ]
    if widths := widths_of(found):
        lines.append((WIDTHS.format(widths=len(widths)), *(cell for rows in found for cell in _soonest(rows, widths))))
    return table([title.format(score=score_name(found[0])) for title in HEADER], lines)


def _cells(rows: Rows, method: str) -> Iterator[str]:
    yield medians([rows], method)
    yield medians([rows], method, spent="tokens")
    yield missed([rows], method)


def _soonest(rows: Rows, widths: Sequence[str]) -> Iterator[str]:
    """The cells of the width that has the score soonest on each workload, which may be another on each."""
    times, tokens = (
        {width: by_workload(rows, width, spent=spent) for width in widths} for spent in ("seconds", "tokens")
    )
    soonest = {name: min(widths, key=lambda width: _median(times[width].get(name))) for name in times[widths[0]]}
    chosen = [times[width][name] for name, width in soonest.items()]
    yield range_of_medians(chosen)
    yield range_of_medians(tokens[width][name] for name, width in soonest.items())
    count = sum(len(each.by_run) for each in chosen)
    yield f"{count - sum(each.sure for each in chosen)} of {count}"


def _median(timed: TimeToScore | None) -> float:
    return math.inf if timed is None or timed.median is None else timed.median


def set_up(content: Content, folder: str) -> str:
    """What the table's figures are computed from, and how often scores were lost again after they were reached."""
    found = simulated(content)
    left = [afterwards(rows, "stream", BASE) for rows in found]
    widths = runs(found, *widths_of(found))
    real = runs(found, *(each for each in ON_REAL_TIME if each != "lockstep_real"))
    return SET_UP.format(
        each=", ".join(
            f"`{name}` with {content['workloads'][name]['validation']}" for name in by_workload(found[0], "stream")
        ),
        gepas=runs(found, BASE),
        parallel=f", {widths} of each of its widths" if widths else "",
        ours=runs(found, "stream"),
        real=f", in real time {real}" if real else "",
        later=both(f"{each.later} of {each.reached}" for each in left),
        page=f"{folder}throughput.md",
        commit=content["commit"],
        older=", most runs of earlier ones" if content.get("earlier") else "",
    )
