"""The command ``python -m bench.nodes [--seconds S] [--rounds N] [--json FILE]``."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import bench.nodes
from bench._lib.command import argument_parser
from bench._lib.environment import environment


def main() -> int:
    parser = argument_parser(bench.nodes)
    parser.add_argument("--seconds", type=float, default=12.0, help="that count of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="how often each kind is measured, in turns")
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[50.0, 200.0, 1000.0], help="of each program")
    parser.add_argument("--json", type=Path, help="write the figures here")
    asked = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # so that Ray, which reads it as it loads, stays on loopback
    try:
        from bench.nodes.rates import GOAL, SLOTS, WAITING, compare  # noqa: PLC0415 - needs Ray
    except ImportError:
        print(
            "bench.nodes needs Ray and submitit: make .venv-ray/.installed; .venv-ray/bin/python -m bench.nodes",
            file=sys.stderr,
        )
        return 2
    load = os.getloadavg()[0]
    code, versions = environment(), {name: version(name) for name in ("ray", "submitit")}
    rows = [compare(milliseconds, asked.seconds, asked.rounds) for milliseconds in asked.milliseconds]
    if asked.json is not None:
        settings = {"seconds": asked.seconds, "rounds": asked.rounds, "slots": SLOTS, "waiting": WAITING}
        written = {"rows": rows, "goal": GOAL, "settings": settings, "load_before": load, "clusters": versions, **code}
        asked.json.write_text(json.dumps(written, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
