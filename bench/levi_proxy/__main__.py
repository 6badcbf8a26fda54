"""The command ``python -m bench.levi_proxy [--quick] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.levi_proxy
from bench._lib.command import argument_parser
from bench.levi_proxy.rankings import report
from bench.levi_proxy.section import section


def main() -> None:
    parser = argument_parser(bench.levi_proxy)
    parser.add_argument("--quick", action="store_true", help="fewer splits")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    content = report(bool(arguments.quick))
    print(section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
