"""The command.

python -m bench.simtest [--seeds N] [--first SEED] [--seed SEED] [--case JSON] [--minutes M] [--once] [--whole]
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections import Counter
from dataclasses import asdict

import bench.simtest
from bench._lib.command import argument_parser
from bench.simtest.case import Case
from bench.simtest.checking import check, shrunk
from bench.simtest.drawing import draw
from bench.simtest.rules import Fault
from flowevolve.telemetry.logs import configure_logs


def main() -> None:
    parser = argument_parser(bench.simtest)
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many, from the first on")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--case", metavar="JSON", help="this case, as it was printed, instead of a seed's")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="M", help="begin no case after so many")
    parser.add_argument("--once", action="store_true", help="don't run each twice to see that it goes the same way")
    parser.add_argument("--whole", action="store_true", help="don't shrink what fails")
    arguments = parser.parse_args()
    configure_logs(logging.CRITICAL)
    if arguments.case is not None:
        cases = [Case.from_json(arguments.case)]
    elif arguments.seed is not None:
        cases = [draw(arguments.seed)]
    else:
        cases = []
    began, found = time.monotonic(), Counter[str]()
    seeds, count = range(arguments.first, arguments.first + arguments.seeds), 0
    for case in cases or map(draw, seeds):
        count += 1
        faults = check(case, twice=not arguments.once)
        if faults:
            found[faults[0].rule] += 1
            _tell(case, faults, shrinks=not arguments.whole)
        if time.monotonic() - began > 60 * arguments.minutes:
            break
    seconds = time.monotonic() - began
    said = ", ".join(f"{rule} {times} times" for rule, times in found.items()) or "no rule broken"
    print(f"{count} cases in {seconds:.0f} s, {count / seconds:.1f} a second: {said}")
    sys.exit(1 if found else 0)


def _tell(case: Case, faults: list[Fault], *, shrinks: bool) -> None:
    print(f"seed {case.seed} breaks {faults[0].rule!r}: {faults[0].what}")
    print(f"    python -m bench.simtest --seed {case.seed}")
    if shrinks:
        print("the smallest case that still does:")
        print(json.dumps(asdict(shrunk(case, faults[0])), indent=2), flush=True)


if __name__ == "__main__":
    main()
