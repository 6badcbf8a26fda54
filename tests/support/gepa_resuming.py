"""An adapter of gepa that can fail after some calls, and a run with it that can be gone on with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flowevolve.compat.gepa as compat
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Silent, reflect


class OutOfOrderError(Exception):
    """The machine the adapter runs on is gone."""


@dataclass
class Fragile(GEPAHashAdapter):
    """Fails for good at its nth call. Its state is how often it was called, in all runs."""

    breaks_at: int | None = None
    seen: int = 0
    given_back: list[int] = field(default_factory=list)

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        if self.breaks_at is not None and len(self.calls) == self.breaks_at:
            raise OutOfOrderError
        self.seen += 1
        return super().evaluate(batch, candidate, capture_traces)

    def get_adapter_state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def set_adapter_state(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]
        self.given_back.append(self.seen)


def optimize(adapter: Fragile, run_dir: Path | None, **arguments: Any) -> Any:
    return compat.optimize(
        **{
            "seed_candidate": dict(SEED),
            "trainset": list(TRAIN),
            "valset": list(VAL),
            "adapter": adapter,
            "reflection_lm": reflect,
            "max_metric_calls": 130,
            "logger": Silent(),
            "run_dir": None if run_dir is None else str(run_dir),
            "max_in_flight": 1,
            "use_merge": True,
            "track_best_outputs": False,
            **arguments,
        }
    )


class OfMeans:
    """A criterion whose answer is numpy's."""

    def should_accept(self, proposal: Any, state: Any) -> Any:
        return np.mean(proposal.subsample_scores_after) > np.mean(proposal.subsample_scores_before)
