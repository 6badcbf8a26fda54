"""The command ``python -m bench.page [--rounds N] [--seconds S] [--candidates N] [--json FILE]``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import bench.page
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.page.cost import CONCURRENCY, LATENCY, compare
from bench.page.frames import scroll
from bench.page.section import section
from flowevolve._util.errors import InputError


def main() -> int:
    parser = argument_parser(bench.page)
    parser.add_argument("--rounds", type=int, default=5, help="how often each way of watching is measured")
    parser.add_argument("--seconds", type=float, default=20.0, help="that count of each run")
    parser.add_argument("--candidates", type=int, default=10_000, help="of the run that is scrolled through")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    try:
        runs = compare(arguments.rounds, arguments.seconds)
        frames = scroll(arguments.candidates)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    settings = {"rounds": arguments.rounds, "seconds": arguments.seconds, "candidates": arguments.candidates}
    settings |= {"latency": LATENCY, "concurrency": CONCURRENCY}
    content = {"runs": runs, "frames": frames, "load_before": load, "settings": settings, **environment()}
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
