"""What candidates were worth over time, and how soon the defaults reached what synchronous gepa reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from bench._lib.methods.process import CEILING
from bench._lib.methods.spent import Unit, worth_at
from bench._lib.text import Content, table
from bench._lib.time_to_score import Spent, TimeToScore, median_and_range, time_to_score
from bench.gpu.rows import BASE, by_workload, runs, spanned

STEPS = 5
"""How many steps a window has; after each, the table says what candidates are worth."""


def scores(content: Content) -> str:
    """The table and what its columns mean. Empty for a trained model, as the worth of its prompts is not known."""
    rows = [
        (f"{workload}, {method}", *_over_time(row, content), *_beside(row, of.get(BASE)))
        for workload, of in by_workload(content).items()
        for method, row in of.items()
        if row.get("held_out")
    ]
    if not rows:
        return _validated(content)
    header = (
        "worth on rows held out, after", *(f"{each:.0f} s" for each in _steps(content)),
        "time to gepa's last, of gepa's", "at equal calls, less gepa's",
    )  # fmt: skip
    return f"""\
{table(header, rows)}

*Worth* is the expected score, on rows that no method has seen, of the prompt that a method would have returned then.
The answers have the words of the simulated world, in which settings were chosen with other seeds; what is real is how
long they take. *Time to gepa's last* is when a run of a method had what a run of synchronous gepa had at its end, over
that run's own time: the median and the range of all pairs of such runs. *Equal calls* are as many as the run that made
fewest, and in brackets is what single runs had then. {_sure(content["settings"]["repeats"])}

"""


def _validated(content: Content) -> str:
    """The best validation scores, for results with simulated words that have no held-out scores; else empty."""
    if content["settings"]["model"] is not None:
        return ""
    told = ", ".join(
        f"`{method}` {row['best_score']:.2f}"
        for of in by_workload(content).values()
        for method, row in of.items()
        if method != CEILING
    )
    return f"""\
What the prompts are worth on held-out rows was not recorded. The best validation scores, by which each method also
chooses, were in the mean of its runs: {told}. {_sure(content["settings"]["repeats"])}

"""


def ends(results: Iterable[Content]) -> str:
    """Which held-out scores the defaults and synchronous gepa end with, and what the defaults take to reach gepa's."""
    return " ".join(
        _ends(content, workload, of["stream"], of[BASE])
        for content in results
        for workload, of in by_workload(content).items()
        if _has_scores(of)
    )


def _has_scores(of: Mapping[str, Content]) -> bool:
    return all(of.get(each, {}).get("held_out") for each in ("stream", BASE))


def _ends(content: Content, workload: str, stream: Content, gepa: Content) -> str:
    ours, gepas = (
        f"{fmean(last):.2f}" + (f" ({spanned(last)})" if len(last) > 1 else "")
        for last in ([run[-1][-1] for run in row["held_out"]] for row in (stream, gepa))
    )
    runs_of_each = f"{runs(content)} with `{workload}`"
    return (
        f"With simulated words at that GPU's speed, the defaults end {runs_of_each} at {ours} on rows held "
        f"out, synchronous gepa at {gepas}. {_taken(content, stream, gepa)}"
    ).strip()


def _taken(content: Content, stream: Content, gepa: Content) -> str:
    """How much of gepa's time and tokens the defaults take to its last score, in a sentence; empty if no pair tells."""
    timed, tokens = (_timed(stream, gepa, spent) for spent in ("seconds", "tokens"))
    if not timed.pairs:
        return ""
    cost = f", and of its tokens {median_and_range(tokens)}" if tokens.pairs else ""
    return f"Of gepa's time to its last score they take {_with_before(content, timed)}{cost}, which may be chance."


def time_of_gepas(content: Content, of: Mapping[str, Content]) -> str:
    """What part of synchronous gepa's time the defaults take to its last held-out score on a workload, in how many
    pairs of runs, and what it was in a run before; a dash if that is not known.
    """
    timed = _timed(of["stream"], of[BASE]) if _has_scores(of) else TimeToScore([])
    if not timed.pairs:
        return "–"
    return _with_before(content, timed)


def _with_before(content: Content, timed: TimeToScore) -> str:
    """The median and the range over pairs, of how many, and the time in an earlier run of the same command."""
    before = f"; {content['time_run_before']:.2f} in a run before" if "time_run_before" in content else ""
    one = f"{median_and_range(timed)} (one pair of runs{before})"
    return one if timed.pairs == 1 else f"{_told(timed)}{before}"


def _steps(content: Content) -> Sequence[float]:
    return [60 * content["settings"]["minutes"] * step / STEPS for step in range(STEPS + 1)]


def _over_time(row: Content, content: Content) -> Iterator[str]:
    for seconds in _steps(content):
        yield f"{fmean(_worths(row, 'seconds', seconds)):.2f}"


def _worths(row: Content, spent: Unit, most: float) -> list[float]:
    """What each run's best candidate was worth once the run had spent ``most`` of ``spent``."""
    return [worth_at(run, spent, most) for run in row["held_out"]]


def _beside(row: Content, gepa: Content | None) -> tuple[str, str]:
    """The time to synchronous gepa's last score, and the score at equal calls."""
    if gepa is None or gepa is row or not gepa.get("held_out"):
        return "–", "–"
    return _told(_timed(row, gepa)), _at_equal_calls(row, gepa)


def _timed(row: Content, gepa: Content, spent: Spent = "seconds") -> TimeToScore:
    rows = {(each["workload"], each["method"]): each for each in (row, gepa)}
    return time_to_score(rows, row["method"], [gepa["method"]], spent=spent)


def _told(timed: TimeToScore) -> str:
    """The median and the range over pairs, and in how many of them the method was sooner than gepa."""
    if not timed.pairs:
        return "–"
    sooner = sum(each < 1 for each in timed.by_pair)
    return f"{median_and_range(timed)}, sooner in {sooner} of {timed.pairs} pairs"


def _at_equal_calls(row: Content, gepa: Content) -> str:
    """How much more a method's best candidates were worth than synchronous gepa's after equally many calls."""
    calls = min(min(each["values"]["calls"]) for each in (row, gepa))
    ours, gepas = (_worths(each, "calls", calls) for each in (row, gepa))
    single = "" if len(ours) == len(gepas) == 1 else f" ({_each(ours)} less {_each(gepas)})"
    return f"{fmean(ours) - fmean(gepas):+.2f}{single}"


def _each(worths: Sequence[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in sorted(worths))


def _sure(repeats: int) -> str:
    if repeats == 1:
        return "With one run of each method none of these differences is sure."
    return f"The rest are means of {repeats} runs, which are few: a difference may be chance."
