"""The command ``python -m bench.program_peers [--quick] [--systems …] [--not-alone] [--note TEXT] [--json FILE]``."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import bench.program_peers
from bench._lib.command import argument_parser
from bench.program_peers.folders import PROBLEMS
from bench.program_peers.results import CALLS, SEEDS, WIDTH, WITH_TROUBLE, perform_all, plans, report
from bench.program_peers.systems import SYSTEMS

QUICK_CALLS = 20


def main() -> None:
    parser = argument_parser(bench.program_peers)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CALLS} calls on {WITH_TROUBLE}, one seed")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--width", type=int, default=WIDTH, help="calls in flight that each system is told to have")
    parser.add_argument("--not-alone", action="store_true", help="the file says that its times are not to be believed")
    parser.add_argument("--note", default="", help="what the page is to say of the circumstances, in whole sentences")
    parser.add_argument("--json", type=Path, help="write the figures here, after each run")
    asked = parser.parse_args()
    missing = sorted({system.package or "" for name in asked.systems if not (system := SYSTEMS[name]).ready()})
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; run: make peers")
    problems, seeds, calls = PROBLEMS, asked.seeds, asked.calls
    if asked.quick:
        problems, seeds, calls = (WITH_TROUBLE,), 1, QUICK_CALLS
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what it started ends, too
    found = []
    for trial in perform_all(plans(asked.systems, problems, seeds, calls, asked.width)):
        found.append(trial)
        if asked.json is not None:
            asked.json.write_text(
                json.dumps(report(found, alone=not asked.not_alone, note=asked.note), indent=1) + "\n"
            )


if __name__ == "__main__":
    main()
