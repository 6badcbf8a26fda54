"""What the parts of CSE and the agents of ContextEvolve do, and what CSE keeps from one task for the next.

    python -m bench.agent_ablations [--quick] [--seeds N] [--json FILE] [--processes N]

CSE's table 2 and figure 4, ContextEvolve's figure 2 (c): the whole and the whole without some of it, with the same
seeds, at equal numbers of evaluations, in the published form, one step at a time. The coder is simulated (world
``code``); the programs are real, and run in the sandbox. `bench.task_sequence` is about CSE's global memory.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from bench._lib.algorithm_runs import Run, perform_all
from bench._lib.environment import environment
from bench._lib.searches import PROFILE, WORLD
from bench._lib.stats import Content, interval, paired
from bench.agent_ablations.section import section
from bench.agent_ablations.variants import (
    AGENT_EVALUATIONS,
    AGENTS,
    EVALUATIONS,
    PARTS,
    PROBLEMS,
    agents_name,
    cse_name,
    jobs,
    subsets,
    variants,
)
from flowevolve.errors import FlowevolveError

SEEDS, QUICK_SEEDS = 10, 2
QUICK_SCALE = 0.4
"""Of the evaluations."""
Runs = Mapping[tuple[str, str], Sequence[Run]]
"""By problem and variant, in the order of seeds."""


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
    """Best scores of one variant less those of another with the same seeds, by problem; and over all problems as parts
    of the other's score.
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, few evaluations")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    asked = parser.parse_args()
    quick, processes = bool(asked.quick), int(asked.processes)
    seeds = int(asked.seeds or (QUICK_SEEDS if quick else SEEDS))
    scale = QUICK_SCALE if quick else 1.0
    try:
        runs = list(perform_all(jobs(seeds, PROBLEMS, processes, scale), processes))
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    content = {
        **summarise(runs),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "world": WORLD,
            "seeds": seeds,
            "evaluations": round(scale * EVALUATIONS),
            "agent_evaluations": round(scale * AGENT_EVALUATIONS),
        },
        **environment(),
    }
    print("\n" + section(content))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
