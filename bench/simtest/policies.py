"""An allocation policy that takes workers away and gives them back at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from flowevolve.core.policies import Resize, Workload


@dataclass
class Erratic:
    """Moves workers at every look, within bounds and beyond them."""

    interval_seconds: float = 7.0
    seed: int = 0
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def decide(self, load: Workload) -> Sequence[Resize]:
        return [
            Resize(stage.name, 1 if self._rng.random() < 0.4 else -1, "at random")
            for stage in load.stages
            if self._rng.random() < 0.6
        ]
