"""The command ``python -m bench.sharing [--quick] [--processes N] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.sharing
from bench._lib.command import argument_parser
from bench.sharing.measurements import CASES, measure


def main() -> None:
    parser = argument_parser(bench.sharing)
    parser.add_argument("--quick", action="store_true", help="one seed, and the first case alone")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side; results do not depend on it")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    seeds, cases = ([0], tuple(CASES)[:1]) if arguments.quick else ([0, 1, 2], tuple(CASES))
    content = measure(seeds, cases, arguments.processes)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
