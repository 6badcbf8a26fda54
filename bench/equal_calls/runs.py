"""gepa and ours with one seed in one world."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import cast

from gepa.api import optimize as gepas_optimize
from gepa.core.adapter import GEPAAdapter
from gepa.core.result import GEPAResult

from bench.equal_calls.timing import CONCURRENCY
from bench.equal_calls.world import TRAIN, WORLDS, Row, RulesAdapter
from flowevolve.compat.gepa import optimize

SEEDS = range(100, 120)
"""Seeds that the settings of the drop-in were not chosen on. Two of them had been looked at before its last changes:
`bench.equal_calls.section.LOOKED_AT`.
"""


class Quiet:
    """A logger that says nothing."""

    def log(self, message: str) -> None:
        pass


@dataclass
class CountedModel:
    """The model that reflects and merges. It counts its calls, including those that fail."""

    adapter: RulesAdapter
    calls: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, prompt: object) -> str:
        with self._lock:
            self.calls += 1
        return self.adapter.reflect(prompt)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``score`` is that of the best prompt on held-out rows, ``calls`` counts calls of the metric."""

    score: float
    seconds: float
    calls: int
    candidates: int
    reflections: int
    """Calls of the model that reflects and merges."""


@dataclass(frozen=True, slots=True)
class Pair:
    world: str
    seed: int
    gepa: Outcome
    ours: Outcome

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def compare(name: str, seed: int, calls: int) -> Pair:
    return Pair(name, seed, _run(name, seed, calls, ours=False), _run(name, seed, calls, ours=True))


def _run(name: str, seed: int, calls: int, *, ours: bool) -> Outcome:
    adapter = RulesAdapter(WORLDS[name], seed)
    model = CountedModel(adapter)
    of_gepa = cast("GEPAAdapter[Row, list[int], str]", adapter)  # its protocol can't say that there is no proposer
    train, validation = adapter.rows(0, TRAIN), adapter.rows(1000, adapter.world.validation)
    seed_candidate, merges = adapter.seed_candidate(), adapter.world.use_merge
    began = time.monotonic()
    if ours:
        result: GEPAResult[str, int] = optimize(
            seed_candidate, train, validation, of_gepa, reflection_lm=model, use_merge=merges,
            max_metric_calls=calls, seed=seed, logger=Quiet(), adapter_concurrency=CONCURRENCY,
        )  # fmt: skip
    else:
        result = gepas_optimize(
            seed_candidate, train, validation, of_gepa, reflection_lm=model, use_merge=merges,
            max_metric_calls=calls, seed=seed, logger=Quiet(),
        )  # fmt: skip
    seconds = time.monotonic() - began
    best = result.candidates[result.best_idx]
    return Outcome(adapter.held_out(best), seconds, adapter.calls, result.num_candidates, model.calls)
