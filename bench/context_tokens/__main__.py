"""The command ``python -m bench.context_tokens [--quick] [--json FILE] [--processes N]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.context_tokens
from bench._lib.command import argument_parser
from bench.context_tokens.figures import report
from bench.context_tokens.runs import (
    EVALUATIONS,
    LENGTHS,
    LIVE_LENGTHS,
    QUICK_EVALUATIONS,
    QUICK_LENGTHS,
    QUICK_SEEDS,
    SEEDS,
    jobs,
    perform_all,
)
from bench.context_tokens.section import section


def main() -> None:
    parser = argument_parser(bench.context_tokens)
    parser.add_argument("--quick", action="store_true", help="two seeds, two lengths, few evaluations")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    arguments = parser.parse_args()
    quick = bool(arguments.quick)
    seeds, evaluations = (QUICK_SEEDS, QUICK_EVALUATIONS) if quick else (SEEDS, EVALUATIONS)
    wanted = jobs(QUICK_LENGTHS if quick else LENGTHS, () if quick else LIVE_LENGTHS, seeds, evaluations)
    content = report(list(perform_all(wanted, int(arguments.processes))), seeds, evaluations)
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
