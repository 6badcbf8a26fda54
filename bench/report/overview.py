"""The gain over synchronous gepa at a glance: a sentence, and a table of the defaults and of other methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bench._lib.text import Content, between, table
from bench._lib.time_to_score import Rows, Spent, TimeToScore, afterwards, workloads
from bench.report.gains import both, in_real_time, medians, missed, missed_at_the_end, simulated, widths_of
from bench.throughput.goals import by_workload, runs, score_name
from bench.throughput.lengths import after
from bench.throughput.rows import BASE, MERGING_PEER
from bench.throughput.waiting import waited

LEAD = """\
**On simulated servers the defaults first reach the {score} that synchronous gepa (one proposal at a time) has after an
hour in {time} of gepa's time to it, for {tokens} of its tokens; to reach and keep it: {time_kept}, {tokens_kept}**
(medians{real}).{shorter}"""
IN_SHORT = """\
**On simulated servers the defaults reach the {score} with which synchronous gepa (one proposal at a time) ends an hour
after {time} of the time that gepa needs for it, with {tokens} of its tokens; to keep it to the end takes {time_kept} of
the time and {tokens_kept} of the tokens** (medians by workload, in real time)."""
REAL = "; in real time up to {time}, {tokens}"
SHORTER = {10.0: "gepa's score of minute 10 takes {} of gepa's time", 1.0: "that of minute 1 {}"}
"""What is said of the scores after so many minutes: of README's examples, and of the shortest runs on a GPU."""
METHODS: Mapping[str, str] = {
    BASE: "synchronous gepa against its own runs, in real time",
    "stream": "the defaults, on the virtual clock (our code takes no time)",
    "stream_real": "the same, in real time",
    "stream_time_real": '[`aim = "time"`]({aims}), in real time',
    MERGING_PEER: "agentdescent with its merging, in real time",
}
"""The methods of the table, each with its name there."""
SHORT_NAMES: Mapping[str, str] = {
    BASE: "synchronous gepa, against its own runs",
    "stream_real": "the defaults",
    MERGING_PEER: "agentdescent with its merging",
}
"""The methods of the short table."""
UNITS: Sequence[Spent] = ("seconds", "tokens")
SOONEST = "the soonest width"
SHORT_WIDTHS = "gepa's parallel proposals, the soonest of {widths} widths"
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
SHORT_HEADER = (
    "until a method first has gepa's last {score} (until it keeps it)",
    "GPU: of gepa's time",
    "of its tokens",
    "API: of gepa's time",
    "of its tokens",
    "runs that miss it (at the end)",
)
WORDS = """\
A *pair* is a run beside one of synchronous gepa, {pairs} by workload and server. If the run never reaches the last
score of gepa's run, the pair counts as never, and the run as one that misses the score. In brackets: until the best
prompt *keeps* the score to the end, and does not just *first* have it, over gepa's own time by the same rule."""
SET_UP = """\
Ranges are of workloads' medians ({repeats} runs of each method; rows for validation: {each}).{clock}
{later} of the defaults' pairs that have the score lose it ({last} for good){peers_later}.{waited} [All
figures]({page}): commit {commit}{older}."""
PEERS_LATER = ", of agentdescent's {later} ({last})"
WAITED = " Servers waited for a core {gepas} of the time with synchronous gepa, {others} with others."


def lead_in_short(content: Content) -> str:
    """What the defaults gain in real time, in a sentence."""
    found = simulated(content)
    return IN_SHORT.format(**_taken(found, "stream_real"))


def _taken(found: Sequence[Rows], method: str) -> Mapping[str, str]:
    """What a method takes until it first has gepa's last score, and until it keeps it."""
    return {
        "score": score_name(found[0]),
        "time": medians(found, method),
        "tokens": medians(found, method, spent="tokens"),
        "time_kept": medians(found, method, kept=True),
        "tokens_kept": medians(found, method, spent="tokens", kept=True),
    }


def in_short(content: Content) -> str:
    """A table of the defaults and of other projects in real time, with the runs of both servers counted together."""
    found = simulated(content)
    lines = [
        (name, *_short_cells(found, found, method))
        for method, name in SHORT_NAMES.items()
        if all(workloads(rows, method, BASE) for rows in found)
    ]
    if widths := widths_of(found):
        first, kept = ([_of_soonest(rows, widths, kept=each) for rows in found] for each in (False, True))
        lines.append((SHORT_WIDTHS.format(widths=len(widths)), *_short_cells(first, kept, SOONEST)))
    return table([title.format(score=score_name(found[0])) for title in SHORT_HEADER], lines)


def lead(content: Content) -> str:
    """What the defaults gain, in a sentence, and what they gain in shorter runs."""
    found = simulated(content)
    return LEAD.format(**_taken(found, "stream"), real=_real(found), shorter=_shorter(found))


def _real(found: Sequence[Rows]) -> str:
    """The most that the defaults take in real time until they keep the score; empty if they did not run so."""
    if not in_real_time(found):
        return ""
    time, tokens = (medians(found, "stream_real", spent=spent, kept=True).rpartition(" ")[2] for spent in UNITS)
    return REAL.format(time=time, tokens=tokens)


def _shorter(found: Sequence[Rows]) -> str:
    """What the defaults take to the scores of shorter runs of synchronous gepa; empty if that is not known."""
    told = [said.format(time) for minutes, said in SHORTER.items() if (time := after(found, minutes))]
    return f"\n{', '.join(told)}." if len(told) == len(SHORTER) else ""


def methods_beside_gepa(content: Content, aims: str) -> str:
    """A table of what each method takes to reach gepa's last score on both simulated servers. It leaves out methods
    that were not run on both. ``aims`` is the place where the aim for time is explained.
    """
    found = simulated(content)
    lines = [
        (name.format(aims=aims), *(cell for rows in found for cell in _cells(rows, rows, method)))
        for method, name in METHODS.items()
        if all(workloads(rows, method, BASE) for rows in found)
    ]
    if widths := widths_of(found):
        lines.append((WIDTHS.format(widths=len(widths)), *(cell for rows in found for cell in _soonest(rows, widths))))
    return table([title.format(score=score_name(found[0])) for title in HEADER], lines)


def _short_cells(first: Sequence[Rows], kept: Sequence[Rows], method: str) -> Iterator[str]:
    """A method's cells as `_cells` has them, but with the runs that miss the score counted once for both servers."""
    for one, other in zip(first, kept, strict=True):
        yield from _spent(one, other, method)
    yield f"{missed(first, method)} ({missed_at_the_end(kept, method)})"


def _cells(first: Rows, kept: Rows, method: str) -> Iterator[str]:
    """A method's cells on a server: what it takes until it first has the score in the rows ``first`` and, in brackets,
    until it keeps it in the rows ``kept``.
    """
    yield from _spent(first, kept, method)
    yield f"{missed([first], method)} ({missed_at_the_end([kept], method)})"


def _spent(first: Rows, kept: Rows, method: str) -> Iterator[str]:
    for spent in UNITS:
        yield f"{medians([first], method, spent=spent)} ({medians([kept], method, spent=spent, kept=True)})"


def _soonest(rows: Rows, widths: Sequence[str]) -> Iterator[str]:
    """The cells of the width that has the score soonest on each workload, which may be another on each, and, in
    brackets, of the one that keeps it soonest.
    """
    first, kept = (_of_soonest(rows, widths, kept=each) for each in (False, True))
    return _cells(first, kept, SOONEST)


def _of_soonest(rows: Rows, widths: Sequence[str], *, kept: bool) -> Rows:
    """Synchronous gepa's rows, and those of the soonest width on each workload as one method."""
    times = {width: by_workload(rows, width, kept=kept) for width in widths}
    soonest = {name: min(widths, key=lambda width: _median(times[width].get(name))) for name in times[widths[0]]}
    alone = {key: row for key, row in rows.items() if key[1] == BASE}
    return {**alone, **{(name, SOONEST): rows[name, width] for name, width in soonest.items()}}


def _median(timed: TimeToScore | None) -> float:
    return math.inf if timed is None or timed.median is None else timed.median


def _later(found: Sequence[Rows], method: str) -> Mapping[str, str]:
    """In how many of the pairs that have the score it is lost later, and in how many the run ends below it."""
    left = [afterwards(rows, method, BASE) for rows in found]
    return {
        "later": both(f"{each.later} of {each.reached}" for each in left),
        "last": both(f"{each.last}" for each in left),
    }


def words(content: Content) -> str:
    """What the words and brackets of the table mean."""
    counts = [each.pairs for rows in simulated(content) for each in by_workload(rows, "stream").values()]
    return WORDS.format(pairs=between(min(counts), max(counts)))


def set_up(content: Content, folder: str) -> str:
    """What the table's figures are computed from, and how often scores were lost again after they were reached."""
    found = simulated(content)
    peers = all(workloads(rows, MERGING_PEER, BASE) for rows in found)
    real = in_real_time(found)
    return SET_UP.format(
        each=", ".join(
            f"`{name}` {content['workloads'][name]['validation']}" for name in by_workload(found[0], "stream")
        ),
        repeats=runs(found, *METHODS, *widths_of(found)),
        **_later(found, "stream_real" if real else "stream"),
        clock=" In real time" if real else "",
        waited=_waited(found),
        peers_later=PEERS_LATER.format(**_later(found, MERGING_PEER)) if peers else "",
        page=f"{folder}throughput.md",
        commit=content["commit"],
        older=", most runs earlier" if content.get("earlier") else "",
    )


def _waited(found: Sequence[Rows]) -> str:
    """How long servers waited for a core with synchronous gepa and with what else the table has in real time; empty if
    that is not known.
    """
    others = [method for method in METHODS if method not in (BASE, "stream")]
    gepas, theirs = waited(found, BASE), waited(found, *others, *widths_of(found))
    return WAITED.format(gepas=gepas, others=theirs) if gepas and theirs else ""
