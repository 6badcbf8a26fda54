"""Passages of CSE through the tasks, and their figures."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

from bench._lib.algorithm_runs import Job, Run, perform
from bench._lib.intervals import interval, paired
from bench._lib.searches import measured_problem
from bench._lib.stats import Content
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS

TASKS: Sequence[str] = tuple(EFFICIENCY_PROBLEMS)
"""The tasks in their order: one idea helps with the first three, another with the next three, a third with the rest."""
EVALUATIONS, QUICK_EVALUATIONS = 12, 8
"""Evaluations of each task, including the seed's."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The runs of one way through the tasks."""

    seed: int
    remembers: bool
    runs: tuple[Run, ...]

    @property
    def gains(self) -> list[float]:
        """For each task, the logarithm of the best score divided by the seed program's."""
        return [math.log(run.best / run.seed_score) for run in self.runs if run.seed_score]

    def line(self) -> str:
        said = ", ".join(f"{math.exp(gain):.2f}" for gain in self.gains)
        return f"tasks, seed {self.seed}, {'with' if self.remembers else 'without'} global memory: {said} x the seed"


def pass_through(seed: int, remembers: bool, tasks: Sequence[str], evaluations: int) -> Passage:
    with tempfile.TemporaryDirectory() as folder:
        runs = [perform(job_of(task, seed, Path(folder) if remembers else None, evaluations)) for task in tasks]
    return Passage(seed, remembers, tuple(runs))


def job_of(task: str, seed: int, memory: Path | None, evaluations: int) -> Job:
    remembering = {} if memory is None else {"memory": {"location": str(memory), "embedding": {"by": "hashing"}}}
    settings = {
        "clock": "virtual",
        **measured_problem(task),
        "algorithm": {"name": "cse", "mode": "sync", "width": 1, **remembering},
        "budget": {"evaluations": evaluations},
    }
    return Job(task, "cse", "sync", seed, settings)


def pass_all(seeds: int, tasks: Sequence[str], evaluations: int) -> Iterator[Passage]:
    for seed, remembers in product(range(seeds), (False, True)):
        passage = pass_through(seed, remembers, tasks, evaluations)
        print(passage.line(), flush=True)
        yield passage


def summarise(passages: Sequence[Passage]) -> Content:
    """The figures of all passages; gains are logarithms.

    ``later`` compares the means over all tasks but the first. At the first nothing is remembered yet, so that passages
    differ there only by chance.
    """
    without, remembering = (
        sorted((each for each in passages if each.remembers is remembers), key=lambda each: each.seed)
        for remembers in (False, True)
    )
    tasks = [run.problem for run in passages[0].runs]
    return {
        "tasks": [
            {
                "task": task,
                "without": interval([[each.gains[place] for each in without]]).as_json(),
                "with": interval([[each.gains[place] for each in remembering]]).as_json(),
                **paired([each.gains[place] for each in remembering], [each.gains[place] for each in without]),
                **_counted(remembering, place),
            }
            for place, task in enumerate(tasks)
        ],
        "later": paired([_later(each) for each in remembering], [_later(each) for each in without]),
    }


def _later(passage: Passage) -> float:
    return fmean(passage.gains[1:])


def _counted(passages: Sequence[Passage], place: int) -> Mapping[str, float]:
    """How many entries runs recalled from the memory, and how many they added to it, on average."""
    return {
        name: fmean(passage.runs[place].entries.get(kind, 0) for passage in passages)
        for name, kind in (("recalled", "memory.recalled"), ("added", "memory.distilled"))
    }
