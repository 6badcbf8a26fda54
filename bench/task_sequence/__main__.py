"""The command ``python -m bench.task_sequence [--quick] [--seeds N] [--json FILE]``."""

from __future__ import annotations

import json
import sys
from os import getloadavg
from pathlib import Path

import bench.task_sequence
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.searches import PROFILE, WORLD
from bench.task_sequence.passages import EVALUATIONS, QUICK_EVALUATIONS, TASKS, pass_all, summarise
from bench.task_sequence.section import section
from flowevolve._util.errors import FlowevolveError

SEEDS, QUICK_SEEDS = 5, 1
QUICK_TASKS = 3


def main() -> int:
    parser = argument_parser(bench.task_sequence)
    parser.add_argument("--quick", action="store_true", help="one seed, three tasks, few evaluations")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}")
    parser.add_argument("--json", type=Path, help="write the figures here")
    asked = parser.parse_args()
    quick = bool(asked.quick)
    seeds = int(asked.seeds or (QUICK_SEEDS if quick else SEEDS))
    evaluations = QUICK_EVALUATIONS if quick else EVALUATIONS
    try:
        passages = list(pass_all(seeds, TASKS[:QUICK_TASKS] if quick else TASKS, evaluations))
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    settings = {
        "profile": PROFILE,
        "world": WORLD,
        "seeds": seeds,
        "evaluations": evaluations,
        "load": getloadavg()[-1],
    }
    content = {**summarise(passages), "simulated": True, "settings": settings, **environment()}
    print("\n" + section(content))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
