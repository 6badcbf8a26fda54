"""Figures of the runs with and without a part, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.algorithm_runs import Run
from bench._lib.intervals import interval, paired
from bench._lib.stats import Content
from bench.agent_ablations.variants import AGENTS, PARTS, agents_name, cse_name, subsets, variants

Runs = Mapping[tuple[str, str], Sequence[Run]]
"""Runs by problem and variant, in the order of seeds."""


def summarise(runs: Sequence[Run]) -> Content:
    grouped = group(runs)
    whole = cse_name(PARTS)
    return {
        "rows": [_row(each) for each in grouped.values()],
        "table2": [
            {"without": part, **beside(grouped, whole, cse_name([each for each in PARTS if each != part]))}
            for part in PARTS
        ],
        "figure4": [
            {"to": list(parts), **beside(grouped, cse_name([*parts, "memory"]), cse_name(parts))}
            for parts in subsets()
            if "memory" not in parts
        ],
        "figure2c": [{"without": agent, **beside(grouped, agents_name(None), agents_name(agent))} for agent in AGENTS],
    }


def group(runs: Sequence[Run]) -> Runs:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault((run.problem, run.algorithm), []).append(run)
    order, problems = list(variants()), list(dict.fromkeys(run.problem for run in runs))
    return dict(sorted(groups.items(), key=lambda each: (problems.index(each[0][0]), order.index(each[0][1]))))


def _row(runs: Sequence[Run]) -> Content:
    return {
        "problem": runs[0].problem,
        "variant": runs[0].algorithm,
        "score": interval([[run.best for run in runs]]).as_json(),
        "tokens": fmean(run.tokens for run in runs),
        "evaluations": fmean(run.evaluations for run in runs),
        "failures": fmean(run.failures for run in runs),
    }


def beside(runs: Runs, one: str, other: str) -> Content:
    """The best scores of one variant minus those of another with the same seeds.

    The differences are given for each problem, and over all problems relative to the other variant's score.
    """
    problems = list(dict.fromkeys(problem for problem, _ in runs))
    scores = {
        problem: ([run.best for run in runs[problem, one]], [run.best for run in runs[problem, other]])
        for problem in problems
    }
    relative = [[a / b - 1 for a, b in zip(*pair, strict=True)] for pair in scores.values()]
    return {
        "one": one,
        "other": other,
        "relative": interval(relative).as_json(),
        "problems": {problem: paired(*pair) for problem, pair in scores.items()},
    }
