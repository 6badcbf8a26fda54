"""What the defaults gain in time over synchronous gepa, what that costs, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench._lib.house_style import PRECISION
from bench._lib.methods.presets import ON_REAL_TIME
from bench._lib.text import Content, between, table
from bench._lib.time_to_score import (
    Rows,
    Spent,
    afterwards,
    curves,
    median_and_range,
    time_to_score,
    workloads,
)
from bench.throughput.comparisons import PROPOSALS, range_of
from bench.throughput.goals import by_workload, places, quotient, range_of_medians, runs, score_name
from bench.throughput.lengths import after
from bench.throughput.rows import BASE, MERGING_PEER, beside, methods, score_at_equal, scores_at_equal
from bench.throughput.tables import signed

GPU, API = "vllm", "api"
"""The simulated servers."""
HEADER = "the defaults beside synchronous gepa, in one hour ([page]({folder}throughput.md), commit {commit}{older})"
LEAD = """\
**On simulated servers the defaults reach the {score} that synchronous gepa (one proposal at a time) ends an hour with
after {time} of its time, and for {tokens} of its tokens** (medians by workload; {missed} runs{in_real_time} miss one of
these scores).{more}{shorter}"""
MISSED_IN_REAL_TIME = ", and in real time {missed},"
SHORTER = """
To the score that gepa has after {longer:g} minutes the defaults take {at_longer} of its time, and after {shorter:g}
minutes {at_shorter}."""
SHORT, LONG = 2.5, 10.0
"""The lengths in minutes of the shorter runs that are told of: of the longest on a GPU, and of README's examples."""
PARALLEL = """\
gepa can also make proposals side by side (PxN): {proposals} as many as the defaults (at most {most}, by
workload){on_real}. The soonest of its {widths} widths has synchronous gepa's last score after {soonest} of the latter's
time, by workload, sooner than the defaults in {before} of {of} comparisons. To the best score of any width
the defaults are sooner than the soonest width in {sooner} of these, later in {later}, and never there in
{never}{others}."""
OF_OTHERS = {
    "stream_real": "in real time {sooner}, {later} and {never}",
    MERGING_PEER: "agentdescent with its merging {sooner}, {later} and {never}",
}
EQUAL = """\
At equal tokens {ours} runs of the defaults and {gepas} of gepa's are within {near} of the highest score, {highest}."""
NEAR = 0.01
"""A score is near the highest one if it is at most this much below it, as far as scores can be told apart."""
SET_UP = """\
Brackets are ranges over pairs of runs (of each workload {gepas} of synchronous gepa{parallel} and {ours} of ours{real},
all on the same rows; ours on the virtual clock, if nothing is said) and, of scores, 95 % intervals over workloads.
Times end when a prompt *first* has the score; {later} pairs lose it later."""
PLAIN = """\
gepa's rules in our stream (`plain`) take {times} of gepa's time to its last score and {tokens} times its tokens, by
workload; at equal tokens their score, less gepa's, is {score}."""
PEER = """\
agentdescent with its own merging takes {times} of gepa's time, and {tokens} of its tokens. In real time it is sooner
than the defaults in {sooner} of {of} comparisons ({workloads} workloads on {servers} servers) and cheaper in {cheaper},
and {missed} of its runs miss one of gepa's scores, of ours {ours}."""
PEER_LINE = "agentdescent with its merging, in real time: such a time, tokens and score, by workload"
FILLING = """\
On the simulated GPU and API `flashevolve` has synchronous gepa's last score after {times} of its time, by workload,
where the defaults take {ours}, and for {tokens} times its tokens; at equal tokens its score, less gepa's, is
{score}."""


def lead(content: Content, more: str = "") -> str:
    """The table of `beside_gepa` in one sentence, followed by ``more``, and what is gained in shorter runs."""
    found = simulated(content)
    return LEAD.format(
        score=score_name(found[0]),
        time=medians(found, "stream"),
        tokens=medians(found, "stream", spent="tokens"),
        missed=missed(found, "stream"),
        in_real_time=_missed_in_real_time(found),
        more=f" {more}" if more else "",
        shorter=_shorter(found),
    )


def _shorter(found: Sequence[Rows]) -> str:
    """What the defaults take to the scores of shorter runs of synchronous gepa; empty if that is not known."""
    at_longer, at_shorter = (after(found, minutes) for minutes in (LONG, SHORT))
    if not at_longer or not at_shorter:
        return ""
    return SHORTER.format(longer=LONG, at_longer=at_longer, shorter=SHORT, at_shorter=at_shorter)


def missed(found: Sequence[Rows], method: str) -> str:
    """How many of a method's runs do not reach every last score of synchronous gepa's."""
    timed = [time_to_score(rows, method, [BASE]) for rows in found]
    count = sum(len(each.by_run) for each in timed)
    return f"{count - sum(each.sure for each in timed)} of {count}"


def _missed_in_real_time(found: Sequence[Rows]) -> str:
    return MISSED_IN_REAL_TIME.format(missed=missed(found, "stream_real")) if _in_real_time(found) else ""


def proposals(content: Content) -> str:
    """The defaults' proposals divided by synchronous gepa's on each server, with the range over workloads."""
    found = (beside(rows, "stream", [BASE], PROPOSALS) for rows in simulated(content))
    return both(f"{each.mean:.1f} (by workload {range_of(each)})" for each in found if each is not None)


def medians(found: Sequence[Rows], method: str, *, spent: Spent = "seconds") -> str:
    """What a method takes to reach synchronous gepa's last score, as a range over workloads and servers: the median
    pair's time or tokens, divided by gepa's own.
    """
    return range_of_medians(each for rows in found for each in by_workload(rows, method, spent=spent).values())


def on_each(found: Sequence[Rows], method: str, *, spent: Spent = "seconds") -> str:
    """The same for each server separately."""
    return both(medians([rows], method, spent=spent) for rows in found)


def parallel(content: Content, on_real: str) -> str:
    """How gepa's parallel proposals compare with the defaults; empty if they were not run on both servers. ``on_real``
    says how they compare on real servers, and is appended to the first sentence.
    """
    found = simulated(content)
    widths = _widths(found)
    proposals = [beside(rows, "stream", widths, PROPOSALS) for rows in found] if widths else []
    known = [each for each in proposals if each is not None]
    if len(known) < len(found):
        return ""
    soonest = _soonest(found, widths)
    ahead = _ahead(found, "stream", widths)
    return PARALLEL.format(
        proposals=f"{both(f'{1 / each.mean:.1f}' for each in known)} times",
        most=both(f"{1 / min(each.by_workload.values()):.1f}" for each in known),
        widths=len(widths),
        soonest=between(quotient(min(soonest.values())), quotient(max(soonest.values()))),
        before=_before_ours(found, soonest),
        of=len(soonest),
        on_real=on_real,
        others=_of_others(found, widths),
        **ahead,
    )


def _of_others(found: Sequence[Rows], widths: Sequence[str]) -> str:
    """How ours in real time and agentdescent with its merging compare with the soonest width; empty if not run."""
    told = [
        text.format(**_ahead(found, method, widths))
        for method, text in OF_OTHERS.items()
        if all(workloads(rows, method) == workloads(rows, "stream") for rows in found)
    ]
    return f" ({'; '.join(told)})" if told else ""


def _ahead(found: Sequence[Rows], method: str, widths: Sequence[str]) -> Mapping[str, int]:
    """On how many workloads of both servers a method reaches the best score of any width sooner than the soonest width
    does, later, and not at all, in the median of all pairs.
    """
    timed = [each.median for rows in found for each in by_workload(rows, method, widths).values()]
    known = [each for each in timed if each is not None]
    never = sum(map(math.isinf, known))
    sooner = sum(each < 1 for each in known)
    return {"sooner": sooner, "later": len(known) - sooner - never, "never": never}


def _in_real_time(found: Sequence[Rows]) -> bool:
    """Whether ours ran in real time, too, on all workloads of both servers."""
    return all(workloads(rows, "stream_real") == workloads(rows, "stream") for rows in found)


def _widths(found: Sequence[Rows]) -> Sequence[str]:
    """The parallel widths of gepa that were run on both servers."""
    return [name for name in methods(found[0], "gepa_pxn") if name in methods(found[1])]


def _soonest(found: Sequence[Rows], widths: Sequence[str]) -> Mapping[tuple[int, str], float]:
    """After how much of synchronous gepa's time the soonest of gepa's widths reaches synchronous gepa's last score, in
    the median of pairs, by the place of the server and by workload.
    """
    medians: dict[tuple[int, str], float] = {}
    for place, rows in enumerate(found):
        for width in widths:
            for name, timed in by_workload(rows, width).items():
                if timed.median is not None:
                    medians[place, name] = min(timed.median, medians.get((place, name), math.inf))
    return medians


def _before_ours(found: Sequence[Rows], soonest: Mapping[tuple[int, str], float]) -> int:
    """On how many workloads of both servers the soonest width reaches that score sooner than the defaults."""
    ours = {
        (place, name): timed.median
        for place, rows in enumerate(found)
        for name, timed in by_workload(rows, "stream").items()
    }
    return sum(theirs < (ours[key] or math.inf) for key, theirs in soonest.items())


def at_equal_tokens(content: Content) -> str:
    """How many runs of the defaults and of synchronous gepa are near the highest score of any run, when both have spent
    the same tokens.
    """
    found = simulated(content)
    highest = max(worth for rows in found for row in rows.values() for run in curves(row) for _, worth in run)
    pairs = [pair for rows in found for pair in scores_at_equal(rows, "stream", "tokens").values()]
    if not pairs:
        return ""
    ours, gepas = ([score for pair in pairs for score in pair[place]] for place in (0, 1))
    most = NEAR + PRECISION
    near = [f"{sum(score >= highest - most for score in scores)} of {len(scores)}" for scores in (ours, gepas)]
    return EQUAL.format(ours=near[0], gepas=near[1], near=f"{most:g}", highest=f"{highest:.3f}")


def beside_gepa(content: Content, folder: str) -> str:
    """A table of both simulated servers: the time on each workload, what it costs, and scores and rates."""
    found = simulated(content)
    each = ", ".join(
        f"`{name}` with {content['workloads'][name]['validation']}" for name in by_workload(found[0], "stream")
    )
    lines = [
        (
            f"time to its last {score_name(found[0])}, over its own: {each} rows for validation",
            _in_order(),
        ),
        ("tokens to that score, over its own", _in_order(spent="tokens")),
        ("held-out score at equal tokens, less its own", score),
    ]
    if _in_real_time(found):
        lines.insert(2, ("the same times and tokens with ours in real time, as gepa's, by workload", _real))
    if all(workloads(rows, MERGING_PEER, BASE) for rows in found):
        lines.append((PEER_LINE, _peer))
    older = ", most other runs are older" if content.get("earlier") else ""
    header = HEADER.format(folder=folder, commit=content["commit"], older=older)
    return table((header, "on a simulated GPU", "on a simulated API"), [(said, *map(of, found)) for said, of in lines])


Told = Callable[[Rows], str]
"""Makes the text of a table's cell from the rows of a server."""


def simulated(content: Content) -> Sequence[Rows]:
    """The rows of both servers."""
    found = places(content)
    return [found[server] for server in (GPU, API)]


def _in_order(*, spent: Spent = "seconds") -> Told:
    """The medians of the workloads, in the order in which the table's first line names them."""
    return lambda rows: ", ".join(map(median_and_range, by_workload(rows, "stream", spent=spent).values()))


def _real(rows: Rows) -> str:
    return both(medians([rows], "stream_real", spent=spent) for spent in ("seconds", "tokens"))


def _peer(rows: Rows) -> str:
    times, tokens = (medians([rows], MERGING_PEER, spent=spent) for spent in ("seconds", "tokens"))
    return f"{times}; {tokens}; {score(rows, MERGING_PEER)}"


def score(rows: Rows, method: str = "stream") -> str:
    """A method's score at equal tokens minus synchronous gepa's, and on how many workloads all pairs agree in sign."""
    pairs = scores_at_equal(rows, method, "tokens").values()
    above = sum(min(ours) > max(gepas) for ours, gepas in pairs)
    below = sum(max(ours) < min(gepas) for ours, gepas in pairs)
    told = [f"{said} in all pairs on {count}" for said, count in (("above", above), ("below", below)) if count]
    less = signed(score_at_equal(rows, method, "tokens"))
    return f"{less.removesuffix(')')}; {' and '.join(told)} of {len(pairs)} workloads)" if told else less


def set_up(content: Content) -> str:
    """What the table's figures are computed from, and how often scores were lost again after they were reached."""
    found = simulated(content)
    left = [afterwards(rows, "stream", BASE) for rows in found]
    wide = runs(found, *_widths(found))
    in_real_time = runs(found, *(each for each in ON_REAL_TIME if each != "lockstep_real"))
    return SET_UP.format(
        gepas=runs(found, BASE),
        parallel=f", {wide} of each parallel width" if wide else "",
        ours=runs(found, "stream"),
        real=f", in real time {in_real_time}" if in_real_time else "",
        later=both(f"{each.later} of {each.reached}" for each in left),
    )


def merging_peer(content: Content) -> str:
    """What agentdescent, which merges, too, takes to reach synchronous gepa's last score, and on how many workloads it
    does so sooner, or for fewer tokens, than ours in real time, in medians of pairs. Empty if either was not run.
    """
    found = simulated(content)
    if not all(workloads(rows, MERGING_PEER, BASE) for rows in found) or not _in_real_time(found):
        return ""
    sooner, of = for_less(found, MERGING_PEER, "stream_real", "seconds")
    cheaper, _ = for_less(found, MERGING_PEER, "stream_real", "tokens")
    return PEER.format(
        times=medians(found, MERGING_PEER),
        tokens=medians(found, MERGING_PEER, spent="tokens"),
        sooner=sooner,
        of=of,
        cheaper=cheaper,
        missed=missed(found, MERGING_PEER),
        ours=missed(found, "stream_real"),
        workloads=len(workloads(found[0], "stream_real")),
        servers=len(found),
    )


def for_less(found: Sequence[Rows], method: str, other: str, spent: Spent) -> tuple[int, int]:
    """On how many workloads a method reaches gepa's last score for less than another, and on how many both do."""
    pairs = [
        (timed.median, others[name].median)
        for rows in found
        for others in [by_workload(rows, other, spent=spent)]
        for name, timed in by_workload(rows, method, spent=spent).items()
    ]
    known = [(own, its) for own, its in pairs if own is not None and its is not None]
    return sum(own < its for own, its in known), len(known)


def stream_alone(content: Content) -> str:
    """What gepa's rules in our stream take to reach gepa's last score; empty if that was not measured."""
    found = simulated(content)
    if not all(workloads(rows, "plain", BASE) for rows in found):
        return ""
    return PLAIN.format(
        times=on_each(found, "plain"),
        tokens=on_each(found, "plain", spent="tokens"),
        score=both(score(rows, "plain") for rows in found),
    )


def filling(content: Content) -> str:
    """What the preset that fills a server takes to reach gepa's last score; empty if it was not measured."""
    found = simulated(content)
    if not all(workloads(rows, "flashevolve", "stream", BASE) for rows in found):
        return ""
    return FILLING.format(
        times=on_each(found, "flashevolve"),
        ours=on_each(found, "stream"),
        tokens=on_each(found, "flashevolve", spent="tokens"),
        score=_scores_when_filled(found),
    )


def _scores_when_filled(found: Sequence[Rows]) -> str:
    return both(score(rows, "flashevolve") for rows in found)


def both(each: Iterable[str]) -> str:
    return " and ".join(each)
