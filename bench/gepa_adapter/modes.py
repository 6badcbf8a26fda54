"""The modes that are measured: gepa's own loops and ours, over the same adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from gepa.api import optimize as gepas_optimize
from gepa.core.result import GEPAResult
from gepa.strategies.proposal_sampling import PxNSampling
from gepa.utils import TimeoutStopCondition

from bench.gepa_adapter.adapter import HouseStyleAdapter, ParallelReflection
from flowevolve.compat.gepa import optimize
from flowevolve.core.task import Rollout
from flowevolve.sim.profiles import APIProfile, OutputLength

SERVER = APIProfile(
    output=OutputLength(median=0.0, sigma=0.0, most=1024),
    first_token_seconds=0.15,
    first_token_sigma=0.8,  # the slowest of a hundred takes a second
    per_token_seconds=0.0,
    requests_per_minute=1e9,
    tokens_per_minute=1e12,
)
VALIDATION = 20


class Quiet:
    def log(self, message: str) -> None:
        """Say nothing."""


Run = Callable[..., GEPAResult[Rollout, int]]
MODES: dict[str, tuple[Run, Mapping[str, object]]] = {
    "gepa 0.1.4, synchronous": (gepas_optimize, {}),
    "gepa 0.1.4, PxN 4x4": (gepas_optimize, {"sampling_strategy": PxNSampling(4, 4)}),
    "gepa 0.1.4, PxN 8x8": (gepas_optimize, {"sampling_strategy": PxNSampling(8, 8)}),
    "ours, adapter_concurrency=1": (optimize, {}),
    "ours, adapter_concurrency=4": (optimize, {"adapter_concurrency": 4}),
    "ours, adapter_concurrency=16, max_in_flight=16": (optimize, {"adapter_concurrency": 16, "max_in_flight": 16}),
}


def measure(name: str, url: str, seconds: float, threads: int) -> dict[str, float]:
    """One run of a mode: its rates, what it spent, and the best score on the validation examples."""
    run, more = MODES[name]
    adapter = HouseStyleAdapter(url, threads)
    proposer = (
        {"custom_candidate_proposer": adapter.propose}  # the stream calls it side by side, and gepa one by one
        if run is optimize
        else {"reflection_strategy": ParallelReflection(adapter)}
    )
    began = monotonic()
    result = run(
        seed_candidate=dict(adapter.task.seed()),
        trainset=list(adapter.task.data.train),
        valset=list(adapter.task.data.val)[:VALIDATION],
        adapter=adapter,
        stop_callbacks=TimeoutStopCondition(seconds),
        skip_perfect_score=True,
        logger=Quiet(),
        **proposer,
        **more,
    )
    took = monotonic() - began
    adapter.close()
    return {
        "proposals": adapter.proposals,
        "requests": adapter.requests,
        "proposals_per_minute": round(60 * adapter.proposals / took, 1),
        "requests_per_second": round(adapter.requests / took, 2),
        "best_score": round(result.val_aggregate_scores[result.best_idx], 3),
        "seconds": round(took, 1),
    }
