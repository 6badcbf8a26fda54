"""The command ``python -m bench.all --tier quick|full [--only NAME…] [--out FOLDER]``."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import bench.all
from bench._lib.command import argument_parser
from bench._lib.paths import ROOT, lacking
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.results import RESULTS


def main() -> int:
    parser = argument_parser(bench.all)
    parser.add_argument("--tier", choices=("quick", "full"), required=True)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in BENCHES], metavar="NAME")
    parser.add_argument("--out", type=Path, help="where results go; for the full tier bench/results")
    asked = parser.parse_args()
    is_quick = asked.tier == "quick"
    out = (asked.out or (Path("runs/bench") if is_quick else RESULTS)).resolve()
    out.mkdir(parents=True, exist_ok=True)
    failed, left_out = [], []
    for each in BENCHES:
        if each.quick is None or (asked.only is not None and each.name not in asked.only):
            continue
        if missing := lacking(each.reads):
            print(f"{each.name}: left out. {missing}", flush=True)
            left_out.append(each.name)
        else:
            command = arguments(each, out / f"{each.name}.json", is_quick=is_quick)
            print(f"{each.name}: python {shlex.join(command)}", flush=True)
            began = time.monotonic()
            code = subprocess.run([python_of(each), *command], cwd=ROOT, check=False).returncode
            print(f"{each.name}: {time.monotonic() - began:.0f} s, exit code {code}", flush=True)
            failed += [each.name] if code else []
    print(f"results in {out}" + _listed("failed", failed) + _listed("left out", left_out))
    return 1 if failed else 0


def _listed(what: str, names: Sequence[str]) -> str:
    return f"; {what}: {', '.join(names)}" if names else ""


def python_of(each: Bench) -> str:
    """The Python that runs a bench. If its environment doesn't exist, ours runs it, and says what is missing."""
    own = None if each.environment is None else ROOT / each.environment
    return sys.executable if own is None or not (own / ".installed").is_file() else str(own / "bin" / "python")


def arguments(each: Bench, result: Path, *, is_quick: bool) -> Sequence[str]:
    """Python's arguments to measure this bench."""
    name, *rest = shlex.split(each.command or each.name)
    more = shlex.split((each.quick if is_quick else each.full) or "")
    return ["-m", f"bench.{name}", *rest, *more, "--json", str(result)]


if __name__ == "__main__":
    sys.exit(main())
