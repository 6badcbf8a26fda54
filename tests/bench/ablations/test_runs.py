"""What the ablations count in a run's events."""

from __future__ import annotations

import pytest

from bench.ablations.runs import Watch
from flowevolve.core.events import Event


@pytest.mark.parametrize(
    ("outcome", "reason", "verdicts"),
    [
        ("consumed", "", 1),
        ("discarded", "stopped: can't be accepted any more", 1),
        ("consumed", "sent to repair", 0),
        ("discarded", "stale", 0),
        ("discarded", "llm: no answer", 0),
    ],
)
def test_a_validation_is_an_evaluation_that_ended_with_a_verdict(outcome: str, reason: str, verdicts: int) -> None:
    watch = Watch()
    for stage in ("screen", "evaluate"):
        watch.event(Event(1, 1.0, "item.done", {"stage": stage, "outcome": outcome, "reason": reason}))
    assert watch.verdicts == verdicts
