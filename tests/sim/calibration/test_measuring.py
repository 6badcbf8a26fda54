"""What follows from the answers that a measured server gave."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flowevolve.core.model import Usage
from flowevolve.sim.calibration.measuring import Load, places
from flowevolve.sim.calibration.rounds import Answer, Round


def load(seconds: Sequence[float]) -> Load:
    """A load whose long answers took so many seconds."""
    answers = [Answer(each, Usage(50, 56), "It went on.", {}) for each in seconds]
    return Load(Round(answers, 0.1), Round(answers, max(seconds)))


QUEUED = [load([1.0, 1.0, 2.0, 2.0]) for _ in range(3)]
"""Two places for four requests; answers take 1.5 s on average."""


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_one_slow_round_of_fewer_requests_hides_no_queue(odd: int) -> None:
    fewer = [load([1.4, 1.4] if number == odd else [1.0, 1.0]) for number in range(3)]
    assert places([load([1.0]), *fewer, *QUEUED]) == 2


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_one_fast_round_of_fewer_requests_makes_no_queue(odd: int) -> None:
    fewer = [load([1.0, 1.0] if number == odd else [1.4, 1.4]) for number in range(3)]
    assert places([load([1.0]), *fewer, *QUEUED]) is None


def test_without_fewer_requests_to_compare_with_no_queue_is_seen() -> None:
    assert places(QUEUED) is None
