"""The command ``python -m bench.efficiency``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import bench.efficiency
from bench._lib.command import argument_parser
from bench.efficiency.judgements import REPEATED, one_problem, repeated
from flowevolve._util import clock
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS


def main() -> None:
    parser = argument_parser(bench.efficiency)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    slow = EFFICIENCY_PROBLEMS[REPEATED]()
    quick = EFFICIENCY_PROBLEMS[REPEATED]()
    assert slow.reference is not None
    quick.source = slow.reference
    slow.reference = quick.reference = None
    for name, problem in (("quick", quick), ("slow", slow)):
        for busy in (False, True):
            print_figures(
                f"{name}, others busy" if busy else f"{name}, alone", clock.run(repeated, problem, times, busy)
            )
    for name, make in EFFICIENCY_PROBLEMS.items():
        print_figures(name, clock.run(one_problem, make()))


def print_figures(name: str, figures: Mapping[str, float]) -> None:
    print(json.dumps({"what": name, **figures, "load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
