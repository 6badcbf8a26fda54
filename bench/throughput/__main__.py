"""The command.

python -m bench.throughput [--quick] [--server sim|vllm-cpu|NAME|URL] [--json FILE] [--figures FOLDER] [--keep FOLDER]
    [--add FILE]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import bench.throughput
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.methods.environments import require
from bench._lib.methods.process import METHODS
from bench._lib.methods.workloads import WORKLOADS
from bench.throughput.charts import draw
from bench.throughput.earlier import read, repeats_of
from bench.throughput.kept import KeptRuns, codes
from bench.throughput.measurements import SIM, SIMULATED, Plan, is_simulated, on_places
from bench.throughput.results import content
from bench.throughput.windows import report
from flowevolve._util.errors import FlowevolveError

QUICK_METHODS = ("gepa_sync", "gepa_pxn_4x4", "stream")
QUICK_REAL = ("ifbench", "aime")
"""The workloads of ``--quick`` on a real server: those with few calls per example, because with four calls an example
takes longer than a window.
"""
CONCURRENCY = 64
MINUTES = 60.0
"""The length of a run in a simulated server's own time: the slowest method makes some 70 proposals in it on the slowest
workload.
"""


def _command(asked: argparse.Namespace) -> str:
    """The command that was given, without the options for output files."""
    named = {
        "server": asked.server if asked.server != SIM else None,
        "concurrency": asked.concurrency if asked.concurrency != CONCURRENCY else None,
        "methods": asked.methods,
        "workloads": asked.workloads,
        "minutes": asked.minutes,
        "repeats": asked.repeats,
        "virtual-repeats": asked.virtual_repeats,
        "base-repeats": asked.base_repeats,
        "seed": asked.seed or None,
    }
    words = ["python -m bench.throughput", *(["--quick"] if asked.quick else [])]
    for name, value in named.items():
        if value is not None:
            words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return " ".join(words)


def main() -> int:
    parser = argument_parser(bench.throughput)
    parser.add_argument(
        "--quick", action="store_true", help=f"three methods, once; on a real server {' and '.join(QUICK_REAL)} only"
    )
    parser.add_argument(
        "--server",
        default=SIM,
        help=f"{SIM} ({' and '.join(place.name for place in SIMULATED)}), one of these two with --add, vllm-cpu, or a "
        f"base URL; default {SIM}",
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw the timeline here")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="instead of the default ones")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), help="instead of the default ones")
    parser.add_argument("--minutes", type=float, help="of the server's own time for each run")
    parser.add_argument("--repeats", type=int, help="of what runs in real time")
    parser.add_argument("--base-repeats", type=int, help="of synchronous gepa, beside which all is, if they are more")
    parser.add_argument("--virtual-repeats", type=int, help="of our methods on the simulated servers")
    parser.add_argument("--processes", type=int, default=1, help="runs on the virtual clock side by side")
    parser.add_argument("--real-processes", type=int, default=1, help="runs in real time side by side, where simulated")
    parser.add_argument("--keep", type=Path, help="keep each run in this folder, and take those that are there")
    parser.add_argument("--add", type=Path, metavar="FILE", help="take the repeats of this result, and make the others")
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help="calls in flight of each method at most")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    real = not is_simulated(asked.server)
    plan = Plan(
        methods=asked.methods or (QUICK_METHODS if asked.quick else METHODS),
        workloads=asked.workloads or (QUICK_REAL if asked.quick and real else list(WORKLOADS)),
        repeats=asked.repeats or (1 if asked.quick else 2),
        virtual_repeats=asked.virtual_repeats or (1 if asked.quick else 5),
        seconds=60 * (asked.minutes or ((0.7 if real else 4.0) if asked.quick else (2.0 if real else MINUTES))),
        concurrency=asked.concurrency,
        seed=asked.seed,
        processes=asked.processes,
        real_processes=asked.real_processes,
        base_repeats=asked.base_repeats or 0,
    )
    if (asked.keep or asked.add) is not None and environment()["uncommitted_changes"]:
        parser.error("--keep, --add: runs are known by the commit of their code; commit what you changed first")
    if asked.add is not None and real:
        parser.error("--add: a real server may be another one than before; its runs have to be made at once")
    if asked.add is None and not real and asked.server != SIM:
        parser.error(f"--server {asked.server}: further repeats on one of the simulated servers need --add")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that processes it started end, too
    try:
        require(plan.methods)
        before = None if asked.add is None else read(asked.add, plan)
        plan = replace(plan, made={} if before is None else repeats_of(before))
        places = on_places(asked.server, plan, KeptRuns(asked.keep, codes()))
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    made = content(places, plan, _command(asked), before)
    print(json.dumps(made["ratios"], indent=2))
    print(report(made))
    if asked.json is not None:
        asked.json.write_text(json.dumps(made, indent=1) + "\n")
    if asked.figures is not None:
        for place, found in places.items():
            draw(asked.figures, place.name, {key: pairs[0][0] for key, pairs in found.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
