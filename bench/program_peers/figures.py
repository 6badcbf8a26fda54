"""The figures of a trial: counts, rates and the best score over evaluations, in the form of the result file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise

from bench._lib.methods.figures import in_flight
from bench._lib.stats import Content
from bench.program_peers.evaluations import Evaluation
from bench.program_peers.trial import Life, Trial


def figures(trial: Trial) -> Content:
    """All that the result file has of one trial."""
    return {
        **asdict(trial.plan),
        "lives": [life_figures(life) for life in trial.lives],
        "best_rescored": trial.best,
        "curve": curve([each for life in trial.lives for each in life.evaluations]),
    }


def life_figures(life: Life) -> Content:
    """The figures of one life. Rates are over the time from the first LLM call to the end of the last evaluation or
    call, and do not count the seed's evaluation.

    A program that works scores more than 0 on all problems. Any other has failed, whether its evaluation reports an
    error or, as is usual with OpenEvolve, a score of 0.
    """
    calls = sum(span.tokens is not None for span in life.spans)
    ended = sorted(each.ended for each in life.evaluations if each.ended is not None)
    seconds = max([*ended[-1:], *(span.ended for span in life.spans)])
    levels = in_flight(life.spans, 0.0, seconds)
    return {
        "calls": calls,
        "open_at_end": len(life.spans) - calls,
        "evaluations": len(ended),
        "failed": sum(each.error is not None or each.score == 0.0 for each in life.evaluations),
        "unended": len(life.evaluations) - len(ended),
        "seconds": seconds,
        "evaluations_per_minute": 60 * sum(when > 0 for when in ended) / seconds,
        "mean_in_flight": sum(level * lasted for level, lasted in levels) / seconds,
        "busy_percent": 100 * sum(lasted for level, lasted in levels if level) / seconds,
        "longest_pause": longest_pause([0.0, *(when for when in ended if when > 0)]),
        "start_up_seconds": life.start_up,
        "start_up_cpu": life.start_up_cpu,
        "cpu": life.cpu,
        "cpu_ms_per_call": 1000 * (life.cpu - life.start_up_cpu) / max(1, calls),
        "lasted": life.lasted,
        "ended": life.ended,
        "left_over": life.left_over,
    }


def longest_pause(ended: Sequence[float]) -> float:
    """The longest time in which no evaluation ended."""
    return max((later - earlier for earlier, later in pairwise(ended)), default=0.0)


def curve(evaluations: Iterable[Evaluation]) -> list[float]:
    """The best score so far after each evaluation, in the order in which they ended."""
    scores = [each.score for each in evaluations if each.score is not None]
    return [round(best, 6) for best in accumulate(scores, max)]
