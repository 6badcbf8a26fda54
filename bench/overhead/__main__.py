"""The command ``python -m bench.overhead [--quick] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path

import bench.overhead
from bench._lib.command import argument_parser
from bench.overhead.costs import TARGET_MS, TARGET_PER_SECOND, TARGET_TIMES, measure


def main() -> None:
    parser = argument_parser(bench.overhead)
    parser.add_argument("--quick", action="store_true", help="once, and a tenth of the calls and sizes")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    content = measure(arguments.quick)
    print(
        f"through the whole engine {content['cpu_ms_per_call']:.3f} ms of CPU a call "
        f"(target {TARGET_MS}; {content['times_aiohttp']:.1f} times aiohttp alone, target {TARGET_TIMES}), "
        f"{content['calls_per_second']:.0f} calls a second (target {TARGET_PER_SECOND:.0f})"
    )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
