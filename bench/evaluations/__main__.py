"""The command ``python -m bench.evaluations``."""

from __future__ import annotations

import json
import os
from argparse import ArgumentTypeError
from pathlib import Path

import bench.evaluations
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.evaluations.rates import GOAL, IN_FLIGHT, PROFILE, WARM_UP, compare


def main() -> None:
    parser = argument_parser(bench.evaluations)
    parser.add_argument("--seconds", type=_seconds, default=24.0, help="that each run takes")
    parser.add_argument(
        "--milliseconds", type=float, nargs="+", default=[50.0, 200.0, 1000.0], help="of a core, that programs burn"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    seconds = float(arguments.seconds)
    load = os.getloadavg()[0]
    rows = [compare(seconds, milliseconds) for milliseconds in arguments.milliseconds]
    for row in rows:
        print(json.dumps({name: round(figure, 3) for name, figure in row.items()}))
    if arguments.json is not None:
        settings = {"seconds": seconds, "profile": PROFILE, "in_flight": IN_FLIGHT}
        written = {"rows": rows, "load_before": load, "goal": GOAL, "settings": settings, **environment()}
        arguments.json.write_text(json.dumps(written, indent=2) + "\n")


def _seconds(given: str) -> float:
    seconds = float(given)
    if seconds <= WARM_UP:
        raise ArgumentTypeError(f"the first {WARM_UP:g} do not count; give more")
    return seconds


if __name__ == "__main__":
    main()
