"""The command ``python -m bench.agent_ablations [--quick] [--seeds N] [--json FILE] [--processes N]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bench.agent_ablations
from bench._lib.algorithm_runs import perform_all
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.searches import PROFILE, WORLD
from bench.agent_ablations.figures import summarise
from bench.agent_ablations.section import section
from bench.agent_ablations.variants import (
    AGENT_EVALUATIONS,
    EVALUATIONS,
    PROBLEMS,
    jobs,
)
from flowevolve._util.errors import FlowevolveError

SEEDS, QUICK_SEEDS = 10, 2
QUICK_SCALE = 0.4
"""The share of the evaluations that ``--quick`` makes."""


def main() -> int:
    parser = argument_parser(bench.agent_ablations)
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
