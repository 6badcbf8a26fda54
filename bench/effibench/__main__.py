"""The command ``python -m bench.effibench CONFIG --data FILE --out DIR [--rows A-B] [--set KEY=VALUE]``."""

from __future__ import annotations

from pathlib import Path

import bench.effibench
from bench._lib.command import argument_parser
from bench.effibench.rows import means, numbers, perform


def main() -> None:
    parser = argument_parser(bench.effibench)
    parser.add_argument("config", type=Path, help="a configuration; its [task] is replaced by the row")
    parser.add_argument("--data", type=Path, required=True, help="the file of EffiBench-X's rows")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the run directories")
    parser.add_argument("--rows", help="only the rows A-B, or one")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as task.language=cpp")
    arguments = parser.parse_args()
    outcomes = []
    for row in numbers(arguments.rows, arguments.data):
        outcomes.append(perform(arguments.config, arguments.data, row, arguments.out, arguments.set))
        print(outcomes[-1], flush=True)
    print(means(outcomes))


if __name__ == "__main__":
    main()
