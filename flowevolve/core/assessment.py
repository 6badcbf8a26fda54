"""What an evaluation finds out about a candidate besides its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from flowevolve._util.errors import InputError
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Attributes
from flowevolve.core.task import Score


class Assessment(Attributes):
    """The assessment of a candidate. The defaults stand for one that was never assessed."""

    feedback: str = ""
    """Feedback on its cases, in words for prompts."""
    failure: str | None = None
    """Why the candidate can't be used, in one line: it did not run to its end, its result is no solution, or its score
    was below what a level requires. None if it works.
    """
    metrics: Mapping[str, float] = {}
    """What the problem measures besides the score: the mean of each metric over the cases that have it."""
    metrics_by_example: Mapping[str, Mapping[str, float]] = {}
    """The metrics of each example, if the algorithm keeps them."""


class NothingWorksError(InputError):
    """A resumed run has no working candidate among those it began with. It was stopped before it could report this."""

    def __init__(self) -> None:
        super().__init__(
            "nothing that the run began with works; look into the event log for the reason, mend that, and start a "
            "new run"
        )


def mean_metrics(scores: Sequence[Score]) -> dict[str, float]:
    """The mean of each metric over the scores that have it."""
    names = dict.fromkeys(name for each in scores for name in each.metrics)
    return {name: fmean(each.metrics[name] for each in scores if name in each.metrics) for name in names}


def works(candidate: Candidate) -> bool:
    """Whether the candidate can be used, which is so unless it has a ``failure``. This is asked for many candidates at
    every commit, so it does not read the rest of the assessment.
    """
    return candidate.attributes.get("failure") is None
