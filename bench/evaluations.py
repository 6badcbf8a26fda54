"""Evaluations a second with all cores busy while LLM calls stream: ``python -m bench.evaluations``.

(1+λ) runs on the real clock with a simulated server, on a problem whose programs burn a known time of a core. The
cores' limit is measured before and after: one plain process per core that calls the same function back to back. Of
what is missing, ``start_each`` says how much any way of keeping programs apart costs: the rate of plain Python
processes, one per program. Needs an idle machine; prints a line of JSON for each length of
programs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

from bench.stats import environment
from flowevolve import clock
from flowevolve._util.cores import usable_cores
from flowevolve.artifact import Artifact
from flowevolve.config import Config, parse_config
from flowevolve.llm.types import JSON
from flowevolve.programs import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.programs.task import ProgramTask
from flowevolve.result import Result
from flowevolve.run import run
from flowevolve.sandbox import Outcome, Sandbox

PROFILE, WORLD = "gpt-4o-mini-api", "code"
GOAL = 0.9
WARM_UP = 4.0
"""Seconds at the start that do not count: until replies come as fast as they are asked for."""
LIMIT_SECONDS = 4.0
"""For which the cores' limit is measured, each time."""
IN_FLIGHT = 192
"""Flows: of the two seconds that a reply takes, enough for more replies than programs can be run."""

BURN = """\
import time


def solve(milliseconds):
    until = time.process_time() + milliseconds / 1000
    while time.process_time() < until:
        pass
    return guess()
"""
SEED = f"""\
# EVOLVE-BLOCK-START
GUESS = 1.0


def guess():
    return GUESS


# EVOLVE-BLOCK-END
{BURN}"""


class Burning(FunctionProblem):
    """A number is to be near 2; whatever it is, finding it takes so long."""

    name = "burning"
    entry = "solve"
    source = SEED
    worst = -1e9
    statement = "Write guess(), which returns a number. The score is minus its distance from 2."

    def __init__(self, milliseconds: float) -> None:
        self.cases = (Case("one", {"milliseconds": milliseconds}),)
        self.ends: list[tuple[float, bool]] = []
        """When programs ended, by `time.monotonic`, and whether they had burnt all of their time."""
        self._burnt = milliseconds / 1000

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        outcome = await super().run(artifact, case, sandbox)
        self.ends.append((time.monotonic(), outcome.cpu_seconds >= self._burnt))
        return outcome

    def score(self, case: Case, result: JSON) -> Verdict:
        if not isinstance(result, int | float) or not abs(result) < -self.worst:
            raise WrongResultError("give a number")
        return Verdict(-abs(result - 2), f"{result} it is.")


def configure(seconds: float) -> Config:
    many = {"workers": IN_FLIGHT, "max_workers": IN_FLIGHT}
    return parse_config(
        {
            "clock": "real",
            "algorithm": {"name": "one_plus_lambda", "max_in_flight": IN_FLIGHT},
            "llm": {"backend": "sim", "concurrency": IN_FLIGHT},
            "sim": {"profile": PROFILE, "world": WORLD},
            "stages": {"write": many},
            "budget": {"minutes": seconds / 60},
            "drain_seconds": 0,
        },
        "evaluations",
    )


def streamed(seconds: float, milliseconds: float) -> dict[str, float]:
    """Evaluations of whole programs, whatever came of them, per second of the time that counts."""
    burning = Burning(milliseconds)

    async def go() -> Result:
        return await run(configure(seconds), task=ProgramTask(burning))

    cpu, began = time.process_time(), time.monotonic()
    result = clock.run(go)
    whole = [burnt for end, burnt in burning.ends if WARM_UP <= end - began <= seconds]
    return {
        "evaluations_per_second": sum(whole) / (seconds - WARM_UP),
        "cut_short_per_second": (len(whole) - sum(whole)) / (seconds - WARM_UP),
        "requests_in_flight": result.mean_in_flight,
        "own_cpu_share": (time.process_time() - cpu) / result.report.wall_seconds / len(usable_cores()),
    }


def cores_limit(milliseconds: float) -> float:
    """Calls a second of plain processes, one per core, back to back."""
    loop = (
        f"began = time.monotonic(); calls = 0\nwhile time.monotonic() < began + {LIMIT_SECONDS}:\n"
        f"    solve({milliseconds}); calls += 1\nprint(calls / (time.monotonic() - began))"
    )

    def one(core: int) -> float:
        done = subprocess.run([sys.executable, "-c", SEED + loop], capture_output=True, text=True, check=True)
        return float(done.stdout)

    with ThreadPoolExecutor() as threads:
        return sum(threads.map(one, usable_cores()))


def start_each(milliseconds: float) -> float:
    """Calls a second, with a new plain process for each, as many at a time as there are cores."""
    until = time.monotonic() + LIMIT_SECONDS

    def one(core: int) -> int:
        calls = 0
        while time.monotonic() < until:
            subprocess.run([sys.executable, "-I", "-c", f"{SEED}solve({milliseconds})"], check=True)
            calls += 1
        return calls

    began = time.monotonic()
    with ThreadPoolExecutor() as threads:
        calls = sum(threads.map(one, usable_cores()))
    return calls / (time.monotonic() - began)


def compare(seconds: float, milliseconds: float) -> dict[str, float]:
    """One length of programs: a run, between two looks at the cores' limit, and new processes."""
    before = cores_limit(milliseconds)
    figures = streamed(seconds, milliseconds)
    limit = fmean((before, cores_limit(milliseconds)))
    return {
        "milliseconds": milliseconds,
        "of_the_cores_limit": figures["evaluations_per_second"] / limit,
        "cores_limit_per_second": limit,
        **figures,
        "start_each_per_second": start_each(milliseconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=24.0, help="that each run takes")
    parser.add_argument(
        "--milliseconds", type=float, nargs="+", default=[50.0, 200.0, 1000.0], help="of a core, that programs burn"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    seconds = float(arguments.seconds)
    if seconds <= WARM_UP:
        parser.error(f"--seconds: the first {WARM_UP:g} do not count; give more")
    load = os.getloadavg()[0]
    rows = [compare(seconds, milliseconds) for milliseconds in arguments.milliseconds]
    for row in rows:
        print(json.dumps({name: round(figure, 3) for name, figure in row.items()}))
    if arguments.json is not None:
        settings = {"seconds": seconds, "profile": PROFILE, "in_flight": IN_FLIGHT}
        written = {"rows": rows, "load_before": load, "goal": GOAL, "settings": settings, **environment()}
        arguments.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
