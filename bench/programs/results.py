"""Which runs are made, and the content of the result file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product

from bench._lib.algorithm_runs import Mode
from bench._lib.environment import environment
from bench._lib.searches import BASELINES, METHODS, PROFILE, WIDTH, WORLD
from bench._lib.stats import Content
from bench.programs.figures import summarise
from bench.programs.runs import ABLATIONS, CHOSEN, CHOSEN_ON, CPU_SECONDS, PROBLEMS, Job, Run, perform

EVALUATIONS, QUICK_EVALUATIONS = 750, 60
"""LEVI's comparison of architectures (figure 3) has 750, too; CodeEvolve has 1,000 on the first two problems."""
SEEDS, QUICK_SEEDS = 10, 2
ABLATION_SEEDS, SYNC_SEEDS = 3, 1
"""How many of the seeds are also run without parts, and how many in lockstep, whose rates hardly depend on seeds."""


def jobs(problems: Sequence[str], seeds: int, evaluations: int, *, ablations: bool) -> list[Job]:
    """All runs, seed by seed, so that those made before a bench is stopped can be compared."""
    methods = (*BASELINES, *METHODS)
    wanted: list[tuple[Sequence[str], Mode, int]] = [((*methods, *CHOSEN), "stream", seeds)]
    if ablations:
        wanted.append((tuple(ABLATIONS), "stream", min(seeds, ABLATION_SEEDS)))
    wanted.append((methods, "sync", min(seeds, SYNC_SEEDS)))
    return [
        Job(problem, method, mode, seed, evaluations)
        for names, mode, count in wanted
        for seed, problem, method in product(range(count), problems, names)
    ]


def perform_all(wanted: Sequence[Job], processes: int) -> Iterator[Run]:
    """Run jobs in processes of their own; results do not depend on how many there are."""
    with ProcessPoolExecutor(processes) as pool:
        for future in as_completed([pool.submit(perform, job) for job in wanted]):
            run = future.result()
            print(line(run), flush=True)
            yield run


def line(run: Run) -> str:
    job = run.job
    return (
        f"{job.problem}, {job.method}, {job.mode}, seed {job.seed}: {run.seed_score:.6g} -> {run.score:.6g}, "
        f"{run.failed} of {job.evaluations} failed, {run.minutes:.2f} virtual minutes"
    )


def report(runs: Sequence[Run], seeds: int, evaluations: int) -> Content:
    """The content of the result file."""
    return {
        **summarise(runs),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "world": WORLD,
            "width": WIDTH,
            "cpu_seconds": CPU_SECONDS,
            "evaluations": evaluations,
            "seeds": seeds,
            "ablation_seeds": min(seeds, ABLATION_SEEDS),
            "sync_seeds": min(seeds, SYNC_SEEDS),
            "problems": dict(PROBLEMS),
            "methods": {**BASELINES, **METHODS},
            "chosen": {name: changed for name, (_, changed) in CHOSEN.items()},
            "chosen_on": CHOSEN_ON,
            "ablations": {name: changed for name, (_, changed) in ABLATIONS.items()},
        },
        **environment(),
    }
