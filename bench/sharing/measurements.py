"""All measurements of the bench, and the content of its result file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import mean, quantiles

from bench._lib.environment import environment
from bench._lib.methods.figures import figures
from bench._lib.methods.process import CEILING
from bench._lib.methods.virtual import evolve
from bench._lib.stats import spread
from bench.scale.replicas import PROFILE, WORKLOAD
from bench.sharing.runs import SLOTS, WARM_UP, WINDOW, Wanted, share_out

FAIR, TOGETHER = 0.05, 0.95
"""How far a run may be from its part, and the share of the ceiling that all runs have to write together."""
CASES = {
    "four equal runs": [Wanted()] * 4,
    "shares of 1, 1, 2 and 4": [Wanted(share=share) for share in (1.0, 1.0, 2.0, 4.0)],
    "one four times as wide as three others": [Wanted(width=16), *[Wanted()] * 3],
    "twenty runs with the defaults": [Wanted("default", 1)] * 20,
}
Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one seed."""

    tokens_per_second: Sequence[float]
    """Of each run."""
    seconds_p50: float
    seconds_p99: float
    most_in_flight: int
    failures: int
    proposals: Sequence[int]


def measure(seeds: Sequence[int], cases: Sequence[str] = tuple(CASES), processes: int = 1) -> Figures:
    """Measure every case behind a gateway and without one, for each seed, ``processes`` of them at a time."""
    work = [(case, gateway, seed) for case in cases for gateway in (True, False) for seed in seeds]
    with ProcessPoolExecutor(processes) as pool:
        ceilings = pool.map(ceiling_tokens_per_second, seeds)
        found = dict(zip(work, pool.map(_find, work), strict=True))
        ceiling = mean(ceilings)
    return {
        "cases": [
            _row(case, gateway, ceiling, [found[case, gateway, seed] for seed in seeds])
            for case in cases
            for gateway in (True, False)
        ],
        "ceiling_tokens_per_second": ceiling,
        "goal": {"fair": FAIR, "together": TOGETHER},
        "settings": {
            "profile": PROFILE,
            "workload": WORKLOAD,
            "slots": SLOTS,
            "warm_up": WARM_UP,
            "window": WINDOW,
            "seeds": len(seeds),
        },
        "simulated": True,
        **environment(),
    }


def ceiling_tokens_per_second(seed: int) -> float:
    """The tokens per second that the server writes if every one of its slots always has a request."""
    run = evolve(CEILING, PROFILE, WORKLOAD, concurrency=SLOTS, seed=seed, seconds=WARM_UP + WINDOW)
    return figures(run).output_tokens_per_s


def off(tokens: Sequence[float], runs: Sequence[Wanted]) -> list[float]:
    """How far each run is from its part of what all runs get, as a fraction of its part."""
    per_share = sum(tokens) / sum(run.share for run in runs)
    return [each / run.share / per_share - 1 for each, run in zip(tokens, runs, strict=True)]


def _find(work: tuple[str, bool, int]) -> Found:
    case, gateway, seed = work
    shared = share_out(CASES[case], seed, gateway=gateway)
    percentiles = quantiles(shared.waits, n=100)
    found = Found(
        shared.tokens_per_second(),
        percentiles[49],
        percentiles[98],
        shared.most_in_flight,
        shared.failures,
        shared.proposals,
    )
    print(case, "behind a gateway" if gateway else "without a gateway", f"seed {seed}:", found, flush=True)
    return found


def _row(case: str, gateway: bool, ceiling: float, found: Sequence[Found]) -> Figures:
    away = [off(each.tokens_per_second, CASES[case]) for each in found]
    return {
        "case": case,
        "gateway": gateway,
        "runs": len(CASES[case]),
        "tokens_per_second": [list(each.tokens_per_second) for each in found],
        "together": spread([sum(each.tokens_per_second) / ceiling for each in found]).as_json(),
        "least": spread([min(each) for each in away]).as_json(),
        "most": spread([max(each) for each in away]).as_json(),
        "seconds_p50": spread([each.seconds_p50 for each in found]).as_json(),
        "seconds_p99": spread([each.seconds_p99 for each in found]).as_json(),
        "most_in_flight": max(each.most_in_flight for each in found),
        "failures": sum(each.failures for each in found),
        "fewest_proposals": min(min(each.proposals) for each in found),
        "most_proposals": max(max(each.proposals) for each in found),
    }
