"""The command ``python -m bench.scale [--quick] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.scale
from bench._lib.command import argument_parser
from bench.scale.measurements import GOAL_REPLICAS, REPLICAS, measure


def main() -> None:
    parser = argument_parser(bench.scale)
    parser.add_argument("--quick", action="store_true", help="one seed, and an eighth of all sizes")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    content = measure([0], GOAL_REPLICAS) if arguments.quick else measure([0, 1, 2], max(REPLICAS))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
