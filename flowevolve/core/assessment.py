"""What an evaluation finds out about a candidate beside its scores."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.core.pool import Candidate
from flowevolve.core.record import Attributes


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


def works(candidate: Candidate) -> bool:
    """Whether it came to its end with a result that is a solution. Asked of many candidates at every commit, so the
    rest of the assessment is not read for it.
    """
    return candidate.attributes.get("failure") is None
