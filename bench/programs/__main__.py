"""The command ``python -m bench.programs [--quick] [--ablations] [--keep FILE] [--json FILE] [--processes N]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.programs
from bench._lib.command import argument_parser
from bench.programs.kept_runs import keeping, left, read_runs
from bench.programs.results import EVALUATIONS, QUICK_EVALUATIONS, QUICK_SEEDS, SEEDS, jobs, perform_all, report
from bench.programs.runs import PROBLEMS
from bench.programs.section import section


def main() -> None:
    parser = argument_parser(bench.programs)
    parser.add_argument("--quick", action="store_true", help="two seeds, few evaluations")
    parser.add_argument("--ablations", action="store_true", help="and without some of what the two algorithms have")
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}")
    parser.add_argument("--evaluations", type=int, help=f"of each run, instead of {EVALUATIONS}")
    parser.add_argument("--keep", type=Path, help="add runs to this file; those in it are not made again")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    arguments = parser.parse_args()
    quick = bool(arguments.quick)
    seeds = int(arguments.seeds or (QUICK_SEEDS if quick else SEEDS))
    evaluations = int(arguments.evaluations or (QUICK_EVALUATIONS if quick else EVALUATIONS))
    wanted = jobs(arguments.problems, seeds, evaluations, ablations=bool(arguments.ablations))
    made = [] if arguments.keep is None else [run for run in read_runs(arguments.keep) if run.job in wanted]
    made += keeping(perform_all(left(wanted, made), int(arguments.processes)), arguments.keep)
    content = report(made, seeds, evaluations)
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
