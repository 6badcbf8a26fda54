"""How well CSE's memory-time integral repeats, and what programs are worth: ``python -m bench.efficiency``.

Prints for a quick and for a slow program, judged again and again, the mean integral and how much integral, time and
memory vary (standard deviation over mean), alone and while all other cores are kept busy; and for each problem of
efficiency the figures of seed and reference, and what a judgement takes. A minute and a half, if nothing else runs
meanwhile, as nothing should.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from functools import partial
from statistics import fmean, stdev

import anyio

from flowevolve import clock
from flowevolve._util.cores import usable_cores
from flowevolve.problems.efficiency import EfficiencyProblem
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS
from flowevolve.programs import Verdict
from flowevolve.sandbox import Sandbox

REPEATED = "efficiency_range_sums"
ENDLESS = "while True: pass"
LONGEST = 600.0
"""Seconds; more than any of this takes."""


async def judged(problem: EfficiencyProblem, sandbox: Sandbox) -> tuple[Verdict, float]:
    """The verdict on a seed, and the seconds it took."""
    began = anyio.current_time()
    verdict = await problem.judge(problem.seed(), problem.cases[0], sandbox)
    assert verdict.failure is None, verdict
    return verdict, anyio.current_time() - began


async def repeated(problem: EfficiencyProblem, times: int, others_busy: bool) -> dict[str, float]:
    """Of so many judgements of the seed. What keeps another core busy has it to itself, as a measurement would."""
    async with Sandbox() as sandbox, anyio.create_task_group() as tasks:
        for _ in range(len(usable_cores()) - 1 if others_busy else 0):
            tasks.start_soon(partial(sandbox.run_pinned, ENDLESS, timeout=LONGEST))
        verdicts = [(await judged(problem, sandbox))[0] for _ in range(times)]
        tasks.cancel_scope.cancel()
    columns = {name: [verdict.metrics[name] for verdict in verdicts] for name in ("integral", "seconds", "peak_mb")}
    varies = {f"{name}_varies": round(stdev(each) / fmean(each), 4) for name, each in columns.items()}
    return {"integral": round(fmean(columns["integral"]), 3), **varies}


async def one_problem(problem: EfficiencyProblem) -> dict[str, float]:
    """What the seed is worth, with the seconds that judging it takes once the reference is measured."""
    async with Sandbox() as sandbox:
        await judged(problem, sandbox)
        verdict, seconds = await judged(problem, sandbox)
    figures = dict(verdict.metrics)
    figures |= {"reference": figures["mi"] * figures["integral"], "value": verdict.value, "judging": seconds}
    return {metric: round(figure, 4) for metric, figure in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    slow = EFFICIENCY_PROBLEMS[REPEATED]()
    quick = EFFICIENCY_PROBLEMS[REPEATED]()
    assert slow.reference is not None
    quick.source = slow.reference
    slow.reference = quick.reference = None
    for name, problem in (("quick", quick), ("slow", slow)):
        for busy in (False, True):
            say(f"{name}, others busy" if busy else f"{name}, alone", clock.run(repeated, problem, times, busy))
    for name, make in EFFICIENCY_PROBLEMS.items():
        say(name, clock.run(one_problem, make()))


def say(name: str, figures: Mapping[str, float]) -> None:
    print(json.dumps({"what": name, **figures, "load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
