"""All measurements of the bench, and the content of its result file."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, quantiles

from bench._lib.environment import environment
from bench._lib.methods.figures import figures
from bench._lib.methods.process import CEILING
from bench._lib.methods.virtual import evolve
from bench._lib.stats import spread
from bench.scale.replicas import PROFILE, WORKLOAD
from bench.sharing.runs import SLOTS, WARM_UP, WINDOW, Wanted, share_out

FAIR, TOGETHER = 0.05, 0.95
"""How far a run may be from its part, and the share of the ceiling that all runs are to write together."""
CASES = {
    "four equal runs": [Wanted()] * 4,
    "shares of 1, 1, 2 and 4": [Wanted(share=share) for share in (1.0, 1.0, 2.0, 4.0)],
    "one four times as wide as three others": [Wanted(width=16), *[Wanted()] * 3],
    "twenty runs with the defaults": [Wanted("default", 1)] * 20,
}
Figures = dict[str, object]


def measure(seeds: Sequence[int], cases: Sequence[str] = tuple(CASES)) -> Figures:
    """Every case behind a gateway and without one, for each seed."""
    ceiling = mean(ceiling_tokens_per_second(seed) for seed in seeds)
    rows = [_row(case, ceiling, seeds, gateway=gateway) for case in cases for gateway in (True, False)]
    return {
        "cases": rows,
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
    """What the server writes if every one of its slots has a request all the time."""
    run = evolve(CEILING, PROFILE, WORKLOAD, concurrency=SLOTS, seed=seed, seconds=WARM_UP + WINDOW)
    return figures(run).output_tokens_per_s


def off(tokens: Sequence[float], runs: Sequence[Wanted]) -> list[float]:
    """How far each run is from its part of what all runs have, as a fraction of its part."""
    per_share = sum(tokens) / sum(run.share for run in runs)
    return [each / run.share / per_share - 1 for each, run in zip(tokens, runs, strict=True)]


def _row(case: str, ceiling: float, seeds: Sequence[int], *, gateway: bool) -> Figures:
    runs = CASES[case]
    found = [share_out(runs, seed, gateway=gateway) for seed in seeds]
    tokens = [each.tokens_per_second() for each in found]
    away = [off(each, runs) for each in tokens]
    row: Figures = {
        "case": case,
        "gateway": gateway,
        "runs": len(runs),
        "together": spread([sum(each) / ceiling for each in tokens]).as_json(),
        "least": spread([min(each) for each in away]).as_json(),
        "most": spread([max(each) for each in away]).as_json(),
        "seconds_p50": spread([quantiles(each.waits, n=100)[49] for each in found]).as_json(),
        "seconds_p99": spread([quantiles(each.waits, n=100)[98] for each in found]).as_json(),
        "most_in_flight": max(each.most_in_flight for each in found),
        "failures": sum(each.failures for each in found),
        "fewest_proposals": min(min(each.proposals) for each in found),
        "most_proposals": max(max(each.proposals) for each in found),
    }
    print(row, flush=True)
    return row
