"""The command ``python -m bench.families [--seeds N] [--evaluations N] [--algorithms NAME ...] [--json FILE]
[--processes N]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bench.families
from bench._lib.algorithm_runs import perform_all
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.searches import PROFILE
from bench.families.figures import HOME, MIDDLE, summarise
from bench.families.section import section
from bench.families.variants import EVALUATIONS, FIRST_SEED, SEEDS, WHOLE, WORLD, jobs
from flowevolve._util.errors import FlowevolveError


def main() -> int:
    parser = argument_parser(bench.families)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many, from {FIRST_SEED} on; default {SEEDS}")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help=f"of each run; default {EVALUATIONS}")
    parser.add_argument("--algorithms", nargs="+", choices=[*WHOLE], default=[*WHOLE], help="beside the baselines")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=1, help="runs side by side")
    asked = parser.parse_args()
    seeds, evaluations = int(asked.seeds), int(asked.evaluations)
    if min(seeds, evaluations, asked.processes) < 1:
        parser.error("--seeds, --evaluations and --processes must be above 0")
    try:
        wanted = jobs(range(FIRST_SEED, FIRST_SEED + seeds), evaluations, asked.algorithms)
        runs = list(perform_all(wanted, int(asked.processes)))
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
            "evaluations": evaluations,
            "home": HOME,
            "middle": MIDDLE,
        },
        **environment(),
    }
    print("\n" + section(content))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
