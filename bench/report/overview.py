"""The gain over synchronous gepa at a glance: a sentence, and a table of the defaults and of other methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bench._lib.text import Content, table
from bench._lib.time_to_score import Rows, Spent, TimeToScore, afterwards, workloads
from bench.report.gains import both, medians, missed, missed_at_the_end, simulated, widths_of
from bench.throughput.goals import by_workload, runs, score_name
from bench.throughput.lengths import after
from bench.throughput.rows import BASE, MERGING_PEER

LEAD = """\
**On simulated servers the defaults first have the {score} that synchronous gepa (one proposal at a time) ends an hour
with after {time} of its time, and for {tokens} of its tokens; until they keep it, these are {time_kept} and
{tokens_kept}** (medians).{shorter}"""
SHORTER = {10.0: "of 10 minutes", 1.0: "that of one minute"}
"""The lengths in minutes of the shorter runs that are told of: of README's examples, and of the shortest on a GPU."""
METHODS: Mapping[str, str] = {
    BASE: "synchronous gepa, its runs beside each other",
    "stream": "the defaults, on the virtual clock",
    "stream_real": "the same, in real time",
    "stream_time": '[`aim = "time"`]({aims}), on the virtual clock',
    MERGING_PEER: "agentdescent with its merging, in real time",
}
"""The methods of the table, each with its name there."""
SOONEST = "the soonest width"
WIDTHS = "gepa's parallel proposals, the soonest of {widths} widths, in real time"
HEADER = (
    "what it takes to reach synchronous gepa's last {score} (and to keep it)",
    "GPU: of gepa's time",
    "of its tokens",
    "runs that miss it (at the end)",
    "API: of gepa's time",
    "of its tokens",
    "runs that miss it (at the end)",
)
SET_UP = """\
Each figure is the range of the workloads' medians ({each} rows for validation) over all pairs of runs, {repeats} of
each method. Times and tokens end when the best prompt *first* has the score; in brackets, when it has it and keeps it
to the end of the hour, as a later best one can be worth less ({later} pairs of the defaults lose it{peers_later}). A
run misses the score if one of gepa's has a higher one. [All figures]({page}): commit {commit}{older}."""
PEERS_LATER = "; of agentdescent's {later}"


def lead(content: Content) -> str:
    """What the defaults gain, in a sentence, and what they gain in shorter runs."""
    found = simulated(content)
    return LEAD.format(
        score=score_name(found[0]),
        time=medians(found, "stream"),
        tokens=medians(found, "stream", spent="tokens"),
        time_kept=medians(found, "stream", kept=True),
        tokens_kept=medians(found, "stream", spent="tokens", kept=True),
        shorter=_shorter(found),
    )


def _shorter(found: Sequence[Rows]) -> str:
    """What the defaults take to the scores of shorter runs of synchronous gepa; empty if that is not known."""
    told = [f"{said} after {time}" for minutes, said in SHORTER.items() if (time := after(found, minutes))]
    if len(told) < len(SHORTER):
        return ""
    return f"\nAs parts of its time, they have gepa's score {', and '.join(told)}."


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
    units: Sequence[Spent] = ("seconds", "tokens")
    for spent in units:
        yield f"{medians([rows], method, spent=spent)} ({medians([rows], method, spent=spent, kept=True)})"
    yield f"{missed([rows], method)} ({missed_at_the_end([rows], method)})"


def _soonest(rows: Rows, widths: Sequence[str]) -> Iterator[str]:
    """The cells of the width that has the score soonest on each workload, which may be another on each."""
    times = {width: by_workload(rows, width) for width in widths}
    soonest = {name: min(widths, key=lambda width: _median(times[width].get(name))) for name in times[widths[0]]}
    chosen = {(name, width): row for (name, width), row in rows.items() if width in (BASE, soonest.get(name))}
    as_one = {(name, SOONEST if width != BASE else BASE): row for (name, width), row in chosen.items()}
    yield from _cells(as_one, SOONEST)


def _median(timed: TimeToScore | None) -> float:
    return math.inf if timed is None or timed.median is None else timed.median


def _later(found: Sequence[Rows], method: str) -> str:
    left = [afterwards(rows, method, BASE) for rows in found]
    return both(f"{each.later} of {each.reached}" for each in left)


def set_up(content: Content, folder: str) -> str:
    """What the table's figures are computed from, and how often scores were lost again after they were reached."""
    found = simulated(content)
    peers = all(workloads(rows, MERGING_PEER, BASE) for rows in found)
    return SET_UP.format(
        each=", ".join(
            f"`{name}` with {content['workloads'][name]['validation']}" for name in by_workload(found[0], "stream")
        ),
        repeats=runs(found, *METHODS, *widths_of(found)),
        later=_later(found, "stream"),
        peers_later=PEERS_LATER.format(later=_later(found, MERGING_PEER)) if peers else "",
        page=f"{folder}throughput.md",
        commit=content["commit"],
        older=", most runs of earlier ones" if content.get("earlier") else "",
    )
