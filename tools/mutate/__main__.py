"""Change the product in small ways, and see whether the tests nearest to each change fail.

    python -m tools.mutate                            all changes of the core: hours
    python -m tools.mutate --sample 200 --seed 7      some of them, drawn at random
    python -m tools.mutate flowevolve.engine.queue    of one module; a package stands for all of its modules
    python -m tools.mutate --at-least 0.85            the exit code is 1 if fewer are noticed

Nothing is changed on disk: every change is made in a process of its own, which has imported the product and its tests,
and runs the tests that reach the changed statement, the nearest first. For flowevolve.engine.queue these are
tests/engine/test_queue.py, then the others in tests/engine. A test that starts another process sees no change there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tools.mutate.modules import sources
from tools.mutate.report import Report
from tools.mutate.session import NearestTestsError, try_changes

CORE = ("flowevolve.engine", "flowevolve.core.pool", "flowevolve.core.budget", "flowevolve.policies")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=CORE, help="modules and packages (default: the core)")
    parser.add_argument("--sample", type=int, help="how many changes to draw (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many changes to try at a time")
    parser.add_argument("--json", type=Path, help="where to write the report as JSON, too")
    parser.add_argument("--at-least", type=float, default=0.0, help="the share that has to be noticed")
    asked = parser.parse_args()
    try:
        found = sources(asked.modules)
        verdicts = try_changes(found, asked.sample, asked.seed, asked.processes)
    except (ModuleNotFoundError, NearestTestsError) as error:
        sys.exit(f"{parser.prog}: {error}")
    report = Report(verdicts, asked.seed)
    print(report)
    if asked.json is not None:
        asked.json.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    sys.exit(report.share < asked.at_least)


if __name__ == "__main__":
    main()
