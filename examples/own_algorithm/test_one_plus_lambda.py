"""On the simulated server and the virtual clock: no GPU, no key, and a few seconds for minutes of evolution."""

from __future__ import annotations

import flowevolve as fe


def test_it_improves_on_the_seed() -> None:
    result = fe.optimize(
        algorithm="reflective_search", max_in_flight=2, budget=fe.Budget(proposals=12), clock="virtual"
    )
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score
