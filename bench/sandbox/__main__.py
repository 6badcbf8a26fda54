"""The command ``python -m bench.sandbox [--programs N]``."""

from __future__ import annotations

import json
import os

import bench.sandbox
from bench._lib.command import argument_parser
from bench.sandbox.rates import all_cores, one_after_another
from flowevolve._util import clock


def main() -> None:
    parser = argument_parser(bench.sandbox)
    parser.add_argument("--programs", type=int, default=200)
    programs = parser.parse_args().programs
    figures = clock.run(one_after_another, programs) | clock.run(all_cores, programs)
    print(json.dumps({name: round(figure, 2) for name, figure in figures.items()} | {"load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
