"""What the defaults gain in time over synchronous gepa, what that costs, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench._lib.house_style import PRECISION
from bench._lib.methods.ratios import Ratio
from bench._lib.text import Content
from bench._lib.time_to_score import (
    Rows,
    Spent,
    TimeToScore,
    curves,
    time_to_score,
    workloads,
)
from bench.throughput.comparisons import PROPOSALS
from bench.throughput.goals import by_workload, places, range_of_medians
from bench.throughput.rows import BASE, MERGING_PEER, beside, methods, score_at_equal, scores_at_equal
from bench.throughput.tables import signed

GPU, API = "vllm", "api"
"""The simulated servers."""
PARALLEL = """\
gepa can also make proposals side by side (PxN): {proposals} as many as the defaults (GPU, API; up to {most}){on_real}.
By medians the defaults have the best score of any width sooner than the soonest width in {ahead} of {of} comparisons,
and {missed} of their {runs} runs miss it{others}."""
OF_OTHERS = {"stream_real": "in real time", MERGING_PEER: "agentdescent with its merging"}
OTHERS_IN_SHORT = """\
gepa can also make proposals side by side (PxN), {proposals} as many as the defaults (GPU, API). In {ahead} of {of}
comparisons the defaults have the best score of any width sooner than gepa's soonest width. agentdescent, which also
merges edits and was set for speed, keeps gepa's score sooner than the defaults in {sooner_kept} of {of}, for fewer
tokens in {cheaper_kept}."""
SCORE_AT_EQUAL_TOKENS = "At equal tokens the held-out score of the defaults, less gepa's, is {score}."
EQUAL = """\
At equal tokens the held-out score of the defaults, less gepa's, is {score}; {ours} runs of the defaults and {gepas} of
gepa's are then within {near} of the highest score of any run, {highest}."""
NEAR = 0.01
"""A score is near the highest one if it is at most this much below it, as far as scores can be told apart."""
PLAIN = """\
gepa's rules in our stream (`plain`) take {times} of gepa's time to its last score and {tokens} times its tokens, by
workload; at equal tokens their score, less gepa's, is {score}."""
PEER = """\
In real time agentdescent with its merging (set for speed) first has gepa's score sooner than the defaults in {sooner}
of {of} comparisons, for fewer tokens in {cheaper}, and keeps it sooner in {sooner_kept}, for fewer in
{cheaper_kept}{aimed}. At equal tokens its score, less gepa's, is {scores}."""
FILLING = """\
On the simulated GPU and API `flashevolve` has synchronous gepa's last score after {times} of its time, by workload,
where the defaults take {ours}, and for {tokens} times its tokens; at equal tokens its score, less gepa's, is
{score}."""


def missed(found: Sequence[Rows], method: str, others: Sequence[str] = (BASE,)) -> str:
    """How many of a method's runs do not reach every last score of the best of ``others``, by default of synchronous
    gepa.
    """
    timed = [time_to_score(rows, method, others) for rows in found]
    return f"{_missing(timed)} of {sum(len(each.by_run) for each in timed)}"


def missed_at_the_end(found: Sequence[Rows], method: str) -> str:
    """How many of a method's runs have less than some last score of synchronous gepa's at their end."""
    return f"{_missing(time_to_score(rows, method, [BASE], kept=True) for rows in found)}"


def _missing(timed: Iterable[TimeToScore]) -> int:
    return sum(len(each.by_run) - each.sure for each in timed)


def medians(found: Sequence[Rows], method: str, *, spent: Spent = "seconds", kept: bool = False) -> str:
    """What a method takes to reach synchronous gepa's last score, as a range over workloads and servers: the median
    pair's time or tokens, divided by gepa's own. With ``kept``, until it has the score to the end.
    """
    return range_of_medians(
        each for rows in found for each in by_workload(rows, method, spent=spent, kept=kept).values()
    )


def on_each(found: Sequence[Rows], method: str, *, spent: Spent = "seconds", kept: bool = False) -> str:
    """The same for each server separately."""
    return both(medians([rows], method, spent=spent, kept=kept) for rows in found)


def parallel(content: Content, on_real: str) -> str:
    """How gepa's parallel proposals compare with the defaults; empty if they were not run on both servers. ``on_real``
    says how they compare on real servers, and is appended to the first sentence.
    """
    found = simulated(content)
    widths = widths_of(found)
    known = _beside_widths(found, widths)
    if len(known) < len(found):
        return ""
    timed = [time_to_score(rows, "stream", widths) for rows in found]
    return PARALLEL.format(
        proposals=_times_as_many(known),
        most=", ".join(f"{1 / min(each.by_workload.values()):.1f}" for each in known),
        on_real=on_real,
        ahead=_ahead(found, "stream", widths),
        of=sum(len(by_workload(rows, "stream", widths)) for rows in found),
        missed=_missing(timed),
        runs=sum(len(each.by_run) for each in timed),
        others=_of_others(found, widths),
    )


def _beside_widths(found: Sequence[Rows], widths: Sequence[str]) -> Sequence[Ratio]:
    """The defaults' proposals over those of gepa's best width, for each server on which all were run."""
    each_server = (beside(rows, "stream", widths, PROPOSALS) for rows in found)
    return [each for each in each_server if each is not None]


def _times_as_many(known: Sequence[Ratio]) -> str:
    """How many times the defaults' proposals gepa's best width makes, on each server."""
    return f"{both(f'{1 / each.mean:.1f}' for each in known)} times"


def others_in_short(content: Content) -> str:
    """How gepa's parallel proposals and agentdescent compare with the defaults in real time; empty if not run."""
    found = simulated(content)
    widths = widths_of(found)
    known = _beside_widths(found, widths)
    if len(known) < len(found) or not in_real_time(found):
        return ""
    counts = peer_ahead(found, "stream_real")
    return OTHERS_IN_SHORT.format(
        proposals=_times_as_many(known),
        ahead=_ahead(found, "stream_real", widths),
        **counts,
    )


def score_at_equal_tokens(content: Content) -> str:
    """The score of the defaults less synchronous gepa's when both have spent the same tokens."""
    return SCORE_AT_EQUAL_TOKENS.format(score=_less_gepas(simulated(content), "stream"))


def _of_others(found: Sequence[Rows], widths: Sequence[str]) -> str:
    """The same of ours in real time and of agentdescent with its merging, in brackets; empty if neither was run."""
    told = [
        f"{name} {_ahead(found, method, widths)} and {_missing(time_to_score(rows, method, widths) for rows in found)}"
        for method, name in OF_OTHERS.items()
        if all(workloads(rows, method) == workloads(rows, "stream") for rows in found)
    ]
    return f" ({'; '.join(told)})" if told else ""


def _ahead(found: Sequence[Rows], method: str, widths: Sequence[str]) -> int:
    """On how many workloads of both servers a method reaches the best score of any width sooner than the soonest width
    does, in the median of all pairs.
    """
    timed = [each.median for rows in found for each in by_workload(rows, method, widths).values()]
    return sum(each is not None and each < 1 for each in timed)


def in_real_time(found: Sequence[Rows]) -> bool:
    """Whether ours ran in real time, too, on all workloads of both servers."""
    return all(workloads(rows, "stream_real") == workloads(rows, "stream") for rows in found)


def widths_of(found: Sequence[Rows]) -> Sequence[str]:
    """The parallel widths of gepa that were run on both servers."""
    return [name for name in methods(found[0], "gepa_pxn") if name in methods(found[1])]


def at_equal_tokens(content: Content) -> str:
    """The score of the defaults less synchronous gepa's when both have spent the same tokens, and how many runs of each
    are then near the highest score of any run.
    """
    found = simulated(content)
    highest = max(worth for rows in found for row in rows.values() for run in curves(row) for _, worth in run)
    pairs = [pair for rows in found for pair in scores_at_equal(rows, "stream", "tokens").values()]
    if not pairs:
        return ""
    ours, gepas = ([score for pair in pairs for score in pair[place]] for place in (0, 1))
    most = NEAR + PRECISION
    near = [f"{sum(score >= highest - most for score in scores)} of {len(scores)}" for scores in (ours, gepas)]
    return EQUAL.format(
        score=_less_gepas(found, "stream"), ours=near[0], gepas=near[1], near=f"{most:g}", highest=f"{highest:.3f}"
    )


def simulated(content: Content) -> Sequence[Rows]:
    """The rows of both servers."""
    found = places(content)
    return [found[server] for server in (GPU, API)]


def _less_gepas(found: Sequence[Rows], method: str) -> str:
    """A method's score at equal tokens minus synchronous gepa's, on both servers."""
    gpu, api = (signed(score_at_equal(rows, method, "tokens")) for rows in found)
    return f"{gpu} on the GPU and {api} on the API"


def score(rows: Rows, method: str = "stream") -> str:
    """A method's score at equal tokens minus synchronous gepa's, and on how many workloads all pairs agree in sign."""
    pairs = scores_at_equal(rows, method, "tokens").values()
    above = sum(min(ours) > max(gepas) for ours, gepas in pairs)
    below = sum(max(ours) < min(gepas) for ours, gepas in pairs)
    told = [f"{said} in all pairs on {count}" for said, count in (("above", above), ("below", below)) if count]
    less = signed(score_at_equal(rows, method, "tokens"))
    return f"{less.removesuffix(')')}; {' and '.join(told)} of {len(pairs)} workloads)" if told else less


def merging_peer(content: Content, aimed: str = "") -> str:
    """On how many workloads agentdescent, which merges, too, reaches synchronous gepa's last score sooner, or for fewer
    tokens, than ours in real time, in medians of pairs. Empty if either was not run. ``aimed`` says how it compares
    with ours with the aim for time.
    """
    found = simulated(content)
    if not all(workloads(rows, MERGING_PEER, BASE) for rows in found) or not in_real_time(found):
        return ""
    counts = peer_ahead(found, "stream_real")
    return PEER.format(aimed=aimed, scores=_less_gepas(found, MERGING_PEER), **counts)


def peer_ahead(found: Sequence[Rows], ours: str) -> Mapping[str, str]:
    """On how many workloads agentdescent with its merging is sooner and cheaper than a method of ours at gepa's last
    score, first and until it is kept, and ``of`` how many.
    """
    sooner, of = for_less(found, MERGING_PEER, ours, "seconds")
    cheaper, _ = for_less(found, MERGING_PEER, ours, "tokens")
    sooner_kept, _ = for_less(found, MERGING_PEER, ours, "seconds", kept=True)
    cheaper_kept, _ = for_less(found, MERGING_PEER, ours, "tokens", kept=True)
    counts = {"sooner": sooner, "cheaper": cheaper, "sooner_kept": sooner_kept, "cheaper_kept": cheaper_kept}
    return {"of": f"{of}", **{name: f"{count or 'none'}" for name, count in counts.items()}}


def for_less(found: Sequence[Rows], method: str, other: str, spent: Spent, *, kept: bool = False) -> tuple[int, int]:
    """On how many workloads a method reaches gepa's last score for less than another, and on how many both do. With
    ``kept``, until it has the score to the end.
    """
    pairs = [
        (timed.median, others[name].median)
        for rows in found
        for others in [by_workload(rows, other, spent=spent, kept=kept)]
        for name, timed in by_workload(rows, method, spent=spent, kept=kept).items()
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
