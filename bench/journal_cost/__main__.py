"""The command ``python -m bench.journal_cost [--calls N] [--json FILE]``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import bench.journal_cost
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.journal_cost.costs import CALLS_PER_SECOND, measure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argument_parser(bench.journal_cost)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    found = {"environment": environment(), "calls_per_second": CALLS_PER_SECOND}
    found |= {sync: measure(given.calls, sync) for sync in ("normal", "full")}
    print(json.dumps(found, indent=2))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
