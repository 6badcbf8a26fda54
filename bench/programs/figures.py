"""Figures of the runs with 95 % intervals, and differences between runs of equal seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.algorithm_runs import Mode
from bench._lib.intervals import interval, paired
from bench._lib.searches import BASELINES, METHODS
from bench._lib.stats import Content, spread
from bench.programs.runs import ABLATIONS, CHOSEN, Run

Runs = Mapping[tuple[str, str, Mode], Sequence[Run]]
"""Runs by problem, method and mode, each list in the order of seeds."""


def summarise(runs: Sequence[Run]) -> Content:
    """All figures, for each problem separately, because scores of different problems have different scales."""
    grouped = group(runs)
    problems = list(dict.fromkeys(run.job.problem for run in runs))
    return {
        "seed_scores": {problem: _of(grouped, problem)[0].seed_score for problem in problems},
        "rows": [_row(each) for each in grouped.values()],
        "pairs": [
            compared(grouped, problem, method, baseline)
            for problem in problems
            for method in (*METHODS, *CHOSEN)
            if (problem, method, "stream") in grouped
            for baseline in BASELINES
        ],
        "ablations": [
            compared(grouped, problem, method, ablated)
            for problem in problems
            for ablated, (method, _) in ABLATIONS.items()
            if (problem, ablated, "stream") in grouped
        ],
        "streams": [
            _beside_sync(grouped, problem, method)
            for problem in problems
            for method in (*BASELINES, *METHODS)
            if (problem, method, "sync") in grouped
        ],
    }


def group(runs: Sequence[Run]) -> Runs:
    groups: dict[tuple[str, str, Mode], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.job.seed):
        groups.setdefault((run.job.problem, run.job.method, run.job.mode), []).append(run)
    order = [*BASELINES, *METHODS, *CHOSEN, *ABLATIONS]
    problems = list(dict.fromkeys(run.job.problem for run in runs))
    return dict(sorted(groups.items(), key=lambda each: (problems.index(each[0][0]), order.index(each[0][1]))))


def _of(runs: Runs, problem: str) -> Sequence[Run]:
    return next(each for (found, _, _), each in runs.items() if found == problem)


def _row(runs: Sequence[Run]) -> Content:
    job = runs[0].job
    return {
        "problem": job.problem,
        "method": job.method,
        "mode": job.mode,
        "score": interval([[run.score for run in runs]]).as_json(),
        "quarters": [fmean(values) for values in zip(*(run.best for run in runs), strict=True)],
        "failed_share": fmean(run.failed / run.job.evaluations for run in runs),
        "tokens": fmean(run.tokens for run in runs),
        "minutes": interval([[run.minutes for run in runs]]).as_json(),
        "mean_in_flight": fmean(run.mean_in_flight for run in runs),
    }


def compared(runs: Runs, problem: str, method: str, other: str) -> Content:
    """Scores of a method minus those of another, both as streams, for the seeds that both have."""
    ours, theirs = (_by_seed(runs[problem, name, "stream"]) for name in (method, other))
    both = [seed for seed in ours if seed in theirs]
    figures = paired([ours[seed].score for seed in both], [theirs[seed].score for seed in both])
    return {"problem": problem, "method": method, "other": other, **figures}


def _by_seed(runs: Sequence[Run]) -> dict[int, Run]:
    return {run.job.seed: run for run in runs}


def _beside_sync(runs: Runs, problem: str, method: str) -> Content:
    """The stream's evaluations a minute over lockstep's, and the difference of their scores, for the seeds that both
    have.
    """
    sync = runs[problem, method, "sync"]
    stream = [run for run in runs[problem, method, "stream"] if run.job.seed in {each.job.seed for each in sync}]
    rates = [one.evaluations_per_minute / two.evaluations_per_minute for one, two in zip(stream, sync, strict=True)]
    return {
        "problem": problem,
        "method": method,
        "ratio": spread(rates).as_json(),
        "stream_per_minute": fmean(run.evaluations_per_minute for run in stream),
        "sync_per_minute": fmean(run.evaluations_per_minute for run in sync),
        "score_difference": interval([[a.score - b.score for a, b in zip(stream, sync, strict=True)]]).as_json(),
    }
