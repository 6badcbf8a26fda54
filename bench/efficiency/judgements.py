"""Judgements of the efficiency problems: how much they vary, and how long they take."""

from __future__ import annotations

from functools import partial
from statistics import fmean, stdev

import anyio

from flowevolve._util.cores import usable_cores
from flowevolve.problems.efficiency import EfficiencyProblem
from flowevolve.programs import Verdict
from flowevolve.sandbox import Sandbox

REPEATED = "efficiency_range_sums"
ENDLESS = "while True: pass"
LONGEST = 600.0
"""A time limit in seconds that no judgement reaches."""


async def judged(problem: EfficiencyProblem, sandbox: Sandbox) -> tuple[Verdict, float]:
    """Judge the seed of a problem. Returns the verdict, and the seconds it took."""
    began = anyio.current_time()
    verdict = await problem.judge(problem.seed(), problem.cases[0], sandbox)
    assert verdict.failure is None, verdict
    return verdict, anyio.current_time() - began


async def repeated(problem: EfficiencyProblem, times: int, others_busy: bool) -> dict[str, float]:
    """The mean integral over this many judgements of the seed, and how much its metrics vary.

    With ``others_busy``, other programs keep all other cores busy; each has its core to itself, as a measured program
    would.
    """
    async with Sandbox() as sandbox, anyio.create_task_group() as tasks:
        for _ in range(len(usable_cores()) - 1 if others_busy else 0):
            tasks.start_soon(partial(sandbox.run_pinned, ENDLESS, timeout=LONGEST))
        verdicts = [(await judged(problem, sandbox))[0] for _ in range(times)]
        tasks.cancel_scope.cancel()
    columns = {name: [verdict.metrics[name] for verdict in verdicts] for name in ("integral", "seconds", "peak_mb")}
    varies = {f"{name}_varies": round(stdev(each) / fmean(each), 4) for name, each in columns.items()}
    return {"integral": round(fmean(columns["integral"]), 3), **varies}


async def one_problem(problem: EfficiencyProblem) -> dict[str, float]:
    """The metrics of the seed, and the seconds that judging it takes once the reference is measured."""
    async with Sandbox() as sandbox:
        await judged(problem, sandbox)
        verdict, seconds = await judged(problem, sandbox)
    figures = dict(verdict.metrics)
    figures |= {"reference": figures["mi"] * figures["integral"], "value": verdict.value, "judging": seconds}
    return {metric: round(figure, 4) for metric, figure in figures.items()}
