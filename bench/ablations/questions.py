"""The questions of the ablations: the runs that answer each, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench._lib.stats import spread
from bench.ablations.runs import Measured, Setting, over_seeds

PROFILES = ("qwen3-8b-h100", "gpt-4o-mini-api")
WORKERS = ((1, 1), (8, 4), (16, 8))
"""Numbers of workers, K1 x K3: the paper's figure 6(a, b) goes from 1x1 to 16x8."""
START = (8, 4)
"""Where the adaptive policies start: half the paper's largest setting, in its proportions."""
LARGEST = WORKERS[-1]
ALPHAS = (0.1, 0.25, 0.5)
LARGE = 570
"""Rows for the runs on speculation, 171 of them for validation, so that validation is the larger part of the cost."""
ALLOCATIONS: Mapping[str, Mapping[str, object]] = {
    "median_rate": {"policy": "median_rate", "interval_seconds": 120.0},
    "ours": {"policy": "pressure"},
}
FOLLOW: Mapping[str, object] = {"policy": "server_queue"}
Runs = Mapping[str, Sequence[Measured]]
Column = tuple[str, Callable[[Measured], float]]


@dataclass(frozen=True)
class Question:
    """A question, with the runs that answer it and the columns of their table."""

    title: str
    paper: str
    runs: Runs
    columns: Sequence[Column]

    def print(self) -> None:
        print(f"\n{self.title}\n  paper: {self.paper}")
        print(f"  {'':34}" + "".join(f"{name:>24}" for name, _ in self.columns))
        for name, measured in self.runs.items():
            cells = [spread([figure(each) for each in measured]) for _, figure in self.columns]
            print(f"  {name:34}" + "".join(f"{cell.median:9.3f} ({cell.low:5.2f}-{cell.high:6.2f})" for cell in cells))

    def to_json(self) -> dict[str, object]:
        return {
            "paper": self.paper,
            "runs": {
                name: {column: spread([figure(each) for each in measured]).as_json() for column, figure in self.columns}
                for name, measured in self.runs.items()
            },
        }


def tokens_per_improvement(measured: Measured) -> float:
    return measured.tokens / 1e6 / max(1, measured.improvements)


def staleness(seeds: Sequence[int]) -> Question:
    settings = {
        f"{policy} {k1}x{k3}": Setting(proposing=k1, evaluating=k3, staleness=policy)
        for policy in ("full", "guarded", "reflective")
        for k1, k3 in ((4, 4), LARGEST)
    }
    return Question(
        "Staleness handling (figure 5)",
        "full and guarded end alike; reflective is best, 94.3 % within 30 minutes (IFBench, validation)",
        over_seeds(settings, seeds),
        (
            ("score at 10 min", lambda each: each.at(600)),
            ("at 20 min", lambda each: each.at(1200)),
            ("at 30 min", lambda each: each.at(1800)),
            ("held out", lambda each: each.score),
            ("Mtokens/improvement", tokens_per_improvement),
            ("mean gap", lambda each: each.mean_gap),
        ),
    )


def allocation(seeds: Sequence[int], quick: bool, profile: str) -> Question:
    fixed = (START, LARGEST) if quick else WORKERS
    base = Setting(profile=profile, flows=96)
    settings = {f"fixed {k1}x{k3}": replace(base, proposing=k1, evaluating=k3) for k1, k3 in fixed}
    start = replace(base, proposing=START[0], evaluating=START[1])
    settings |= {name: replace(start, allocation=policy) for name, policy in ALLOCATIONS.items()}
    return Question(
        f"Workers (figure 6a, b), {profile}; the adaptive ones start at {START[0]}x{START[1]}",
        "7 proposals/min in lockstep to 99 at 16x8; adaptive control has the most accepted proposals",
        over_seeds(settings, seeds),
        (
            ("proposals/min", lambda each: each.proposals),
            ("validations/min", lambda each: each.validations),
            ("accepted/min", lambda each: each.accepted),
            ("held out", lambda each: each.score),
            ("mean gap", lambda each: each.mean_gap),
            ("max gap", lambda each: each.max_gap),
        ),
    )


def speculation(seeds: Sequence[int], quick: bool) -> Question:
    base = Setting(flows=128, rows=LARGE, allocation=ALLOCATIONS["ours"], admission=FOLLOW, concurrency=512)
    settings: dict[str, Setting] = {}
    for world, easy_first in (("informative", False),) if quick else (("informative", False), ("easy first", True)):
        plain = replace(base, easy_first=easy_first)
        settings[f"{world}, alpha 1"] = plain
        if not quick:
            settings[f"{world}, alpha 1, improvement"] = replace(plain, validation="improvement")
        for alpha in (0.1, 0.25) if quick else ALPHAS:
            for reorder in (False, True):
                name = f"{world}, alpha {alpha:g}{', reordered' if reorder else ''}"
                speculating = {"alpha": {"evaluate": alpha}, "hold": True, "reorder": reorder}
                settings[name] = replace(plain, speculation=speculating, racing={"policy": "prefix"})
    return Question(
        "Speculation (figure 6c); below 1 weak candidates stop at the prefix",
        "3.15 validations/min and +4.49 points at alpha 0.25, fewer at 0.5; 'optional', as it depends on the data",
        over_seeds(settings, seeds),
        (
            ("validations/min", lambda each: each.validations),
            ("false share", lambda each: each.revoked / max(1, each.released)),
            ("held out", lambda each: each.score),
            ("accepted/min", lambda each: each.accepted),
            ("Mtokens saved", lambda each: each.tokens_saved / 1e6),
        ),
    )


def scheduling(seeds: Sequence[int]) -> Question:
    base = Setting(flows=96, allocation=ALLOCATIONS["ours"])
    settings = {
        "later_first, 256 in flight": base,
        "fifo, 256 in flight": replace(base, order="fifo"),
        "later_first, 512 in flight": replace(base, concurrency=512),
        "later_first, server_queue": replace(base, concurrency=512, admission=FOLLOW),
        "fifo, server_queue": replace(base, concurrency=512, admission=FOLLOW, order="fifo"),
    }
    return Question(
        "Version gap under order and admission",
        "no counterpart",
        over_seeds(settings, seeds),
        (
            ("mean gap", lambda each: each.mean_gap),
            ("max gap", lambda each: each.max_gap),
            ("accepted/min", lambda each: each.accepted),
            ("held out", lambda each: each.score),
            ("in flight", lambda each: each.in_flight),
        ),
    )


def speculation_figures(question: Question) -> dict[str, float | bool]:
    """Figures for the best alpha: among the settings with at least twice the validations (among all, if none has), the
    one that loses the least score.
    """
    plain = question.runs["informative, alpha 1"]
    candidates = {name: runs for name, runs in question.runs.items() if name.startswith("informative, alpha 0")}
    ratios = {
        name: float(np.median([a.validations / b.validations for a, b in zip(runs, plain, strict=True)]))
        for name, runs in candidates.items()
    }
    losses = {
        name: float(np.median([b.score - a.score for a, b in zip(runs, plain, strict=True)]))
        for name, runs in candidates.items()
    }
    best = min(candidates, key=lambda name: (ratios[name] < 2, losses[name]))
    return {
        "alpha": float(best.split(", ")[1].removeprefix("alpha ")),
        "reordered": best.endswith("reordered"),
        "validations_ratio": ratios[best],
        "score_loss": losses[best],
    }


def allocation_figures(question: Question) -> dict[str, float]:
    """Median accepted proposals per minute; ``fixed`` is the setting the adaptive policies start from."""
    names = {"fixed": f"fixed {START[0]}x{START[1]}", "median_rate": "median_rate", "ours": "ours"}
    return {key: float(np.median([each.accepted for each in question.runs[name]])) for key, name in names.items()}
