"""What is kept of candidates until they enter gepa's state."""

from __future__ import annotations

from gepa.core.adapter import EvaluationBatch

from flowevolve.compat.gepa.arguments import examples
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.core.events import Event
from tests.support.gepa_dummies import VAL


def test_nothing_is_kept_of_a_candidate_that_was_rejected() -> None:
    mirror = Mirror(
        examples(list(VAL), "valset"),
        perfect_score=1.0,
        frontier_type="instance",
        track_best_outputs=True,
        callbacks=(),
        max_metric_calls=None,
    )
    batch = EvaluationBatch[object, object](outputs=["done"], scores=[0.5], objective_scores=[{"rest": 0.5}])
    for name in ("c1", "c2"):
        mirror.passed(name, [0.5])
        mirror.saw(name, "v0", batch, 0)
    mirror.event(Event(0, 0.0, "candidate.rejected", {"candidate": "c1", "item": "1", "reason": "stale"}))
    assert mirror.objectives("c1") == {}
    assert mirror.passed_with("c1") is None
    assert mirror.objectives("c2") == {"v0": {"rest": 0.5}}
    assert mirror.passed_with("c2") == 0.5
