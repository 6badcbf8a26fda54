"""The methods and problems that are compared, and one run of a method on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from bench._lib.algorithm_runs import Mode, Settings
from bench._lib.searches import BASELINES, METHODS, PROFILE, WIDTH, WORLD
from bench.programs.quick_task import QuickTask, Runner
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.events import Event
from flowevolve.runner.assemble import make_problem
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

QUARTERS = (0.25, 0.5, 0.75, 1.0)
"""The parts of the budget after which the best score is noted."""
CPU_SECONDS = 0.05
"""CPU seconds that a call may take: several times what the seeds take, and no more, because evolution would use up
whatever limit it is given.
"""


PROBLEMS: Mapping[str, Settings] = {
    "circle_packing_32": {},
    "min_max_distance_2d": {},
    "online_bin_packing": {"items": 500, "instances": 3},
}
"""The problems. Bin packing has fewer items than EoH's sets, so that a program takes a fraction of a second."""
CHOSEN: Mapping[str, tuple[str, Settings]] = {
    "levi, chosen": (
        "levi",
        {"temperatures": [0.003, 0.01, 0.03, 0.1], "seeds": 2, "variants": 10, "shift_every": 50},
    ),
    "code_evolve, chosen": ("code_evolve", {"islands": 2, "archive": {"name": "naive", "size": 5}}),
}
"""Methods with other settings: each with the method, and the settings that differ. They were chosen by runs with other
seeds, `CHOSEN_ON`.
"""
CHOSEN_ON = (100, 101, 102, 103)
ABLATIONS: Mapping[str, tuple[str, Settings]] = {
    "levi, no diverse seeds": ("levi", {"seeds": 0}),
    "levi, uniform centroids": ("levi", {"centroids": "uniform"}),
    "code_evolve, no migration": ("code_evolve", {"migration": {"topology": "empty"}}),
    "code_evolve, no inspirations": ("code_evolve", {"inspirations": 0}),
}
"""Methods without one of their parts: each with the whole method, and the settings that differ."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to perform."""

    problem: str
    method: str
    mode: Mode
    seed: int
    evaluations: int


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a job."""

    job: Job
    seed_score: float
    """The score of the program that evolution began from."""
    best: tuple[float, ...]
    """The best score at each of the `QUARTERS` of the budget; the seed counts, too."""
    minutes: float
    evaluations: int
    failed: int
    """How many evaluated programs failed."""
    tokens: int
    mean_in_flight: float

    @property
    def score(self) -> float:
        return self.best[-1]

    @property
    def evaluations_per_minute(self) -> float:
        return self.evaluations / self.minutes


def settings_of(method: str) -> Settings:
    """The ``[algorithm]`` table of a baseline, of a method, or of a method with other settings or without a part."""
    known = {**BASELINES, **METHODS}
    if method in known:
        return known[method]
    base, changed = {**CHOSEN, **ABLATIONS}[method]
    return {**METHODS[base], **changed}


def configure(job: Job) -> Config:
    """The configuration of a job. The same coder writes for all methods, and in both roles of LEVI."""
    limit = "max_in_flight" if job.mode == "stream" else "width"
    width = {} if job.mode == "sync" and settings_of(job.method)["name"] == "code_evolve" else {limit: WIDTH}
    return parse_config(
        {
            "seed": job.seed,
            "clock": "virtual",
            "algorithm": {**settings_of(job.method), "mode": job.mode, **width},
            "task": {"name": "program", "problem": job.problem, **PROBLEMS[job.problem]},
            "llm": {"backend": "sim"},
            "sim": {"profile": PROFILE, "world": WORLD},
            "budget": {"evaluations": job.evaluations},
        },
        "programs",
    )


@cache
def runner() -> Runner:
    """The runner of this process. There is only one, because starting one takes half a second."""
    return Runner(CPU_SECONDS)


def perform(job: Job) -> Run:
    """Run a job in this process, and block until it ends."""
    config, scores = configure(job), list[float | None]()
    task = QuickTask(make_problem(config), runner())

    def watch(event: Event) -> None:
        if event.kind == "candidate.assessed":
            score = event.data["score"]
            assert isinstance(score, int | float)
            scores.append(None if event.data["failure"] is not None else float(score))

    async def main() -> Result:
        return await run(config, task=task, watchers=Watchers(events=(watch,)))

    return _run(job, scores, clock.run(main, clock="virtual"))


def _run(job: Job, scores: Sequence[float | None], result: Result) -> Run:
    """The result of a job. The seed is assessed first; scores that came in after the budget was spent are left out."""
    seed_score = scores[0]
    assert seed_score is not None, "a run whose seed fails ends with an error"
    counted = scores[: job.evaluations]
    return Run(
        job=job,
        seed_score=seed_score,
        best=tuple(
            max(score for score in counted[: max(1, round(part * job.evaluations))] if score is not None)
            for part in QUARTERS
        ),
        minutes=result.report.wall_seconds / 60,
        evaluations=len(scores),
        failed=sum(score is None for score in counted),
        tokens=result.llm.usage.total_tokens,
        mean_in_flight=result.mean_in_flight,
    )
