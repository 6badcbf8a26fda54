"""What an evaluation finds out about a candidate beside its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from flowevolve._util.errors import InputError
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Attributes
from flowevolve.core.task import Score


class Assessment(Attributes):
    """Defaults are those of a candidate that was never assessed."""

    feedback: str = ""
    """Feedback on its cases, in words for prompts."""
    failure: str | None = None
    """Why it can't be used, in one line: it did not run to its end, its result is no solution, or it scored less than a
    level asks for. None if it works.
    """
    metrics: Mapping[str, float] = {}
    """What the problem measures beside the score: means over the cases that have it."""
    metrics_by_example: Mapping[str, Mapping[str, float]] = {}
    """The same for each example, where an algorithm keeps it."""


class NothingWorksError(InputError):
    """A run goes on, and nothing that it began with works: it was stopped before that could be said at its start."""

    def __init__(self) -> None:
        super().__init__(
            "nothing that the run began with works; see the event log for why, mend that, and start a new run"
        )


def mean_metrics(scores: Sequence[Score]) -> dict[str, float]:
    """The mean of each metric over the scores that have it."""
    names = dict.fromkeys(name for each in scores for name in each.metrics)
    return {name: fmean(each.metrics[name] for each in scores if name in each.metrics) for name in names}


def works(candidate: Candidate) -> bool:
    """Whether it came to its end with a result that is a solution. Asked of many candidates at every commit, so the
    rest of the assessment is not read for it.
    """
    return candidate.attributes.get("failure") is None
