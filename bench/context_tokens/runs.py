"""The runs: their programs, the forms of ContextEvolve, and what a step of each run takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

from flowevolve._util import clock
from flowevolve._util.cores import usable_cores
from flowevolve.config.run import Config, parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import run

LENGTHS, QUICK_LENGTHS = (0, 1000, 2000, 4000, 8000), (0, 4000)
"""The minimum length of a program in tokens; 0 stands for the seed as it ships."""
LIVE_LENGTHS = (1000,)
"""The minimum lengths of programs that carry live code, which abstracts describe as part of the program."""
VARIED = 0
"""The program length with which the variants are run."""
SEEDS, QUICK_SEEDS = 5, 2
EVALUATIONS, QUICK_EVALUATIONS = 100, 30
"""Evaluations of a run, as many as the paper's runs have iterations."""
IN_FLIGHT = 16
PROFILE, WORLD = "gpt-4o-mini-api", "code"
"""The profile of a model that does not think before it answers."""
TIMEOUT = 5.0
RAW, OURS, ONE = "raw history", "context", "context, one step at a time"
METHODS: Mapping[str, Mapping[str, object]] = {RAW: {"raw_history": 8}, OURS: {}, ONE: {"max_in_flight": 1}}
"""The settings of each method. A raw history has eight programs because OpenEvolve shows eight by default: three top
programs, two diverse ones and three inspirations.
"""
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "raw history of 5": {"raw_history": 5},
    "context, guidance of every version": {"guidance_age": 0},
    "context, guidance up to 50 commits old": {"guidance_age": 50},
}
UNLIMITED = 1_000_000
"""The limit on a prompt's tokens, larger than any of these prompts. By default long prompts are shortened, and so are
raw histories.
"""
STAGES = ("navigate", "sample", "generate", "summarize")


@dataclass(frozen=True, slots=True)
class Job:
    """A run to make."""

    tokens: int
    live: bool
    method: str
    seed: int
    evaluations: int


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of a job. Tokens are those of a step: one call that writes a program, and all calls that serve it."""

    job: Job
    steps: int
    prompt: float
    completion: float
    stages: Mapping[str, float]
    """Prompt and completion tokens per step, by stage."""
    calls: float
    per_minute: float
    """Steps per virtual minute."""
    gain: float
    """The best score minus the seed's."""

    @property
    def tokens(self) -> float:
        return self.prompt + self.completion


def jobs(lengths: Sequence[int], live: Sequence[int], seeds: int, evaluations: int) -> list[Job]:
    """All methods at all lengths, the variants at one length, and two methods on programs that carry live code."""
    wanted = [
        *((tokens, False, method) for tokens, method in product(lengths, METHODS)),
        *((VARIED, False, method) for method in VARIANTS),
        *((tokens, True, method) for tokens, method in product(live, (RAW, OURS))),
    ]
    return [Job(*each, seed, evaluations) for each, seed in product(wanted, range(seeds))]


def configure(job: Job, processes: int) -> Config:
    """The configuration of a job when ``processes`` runs share the machine's cores."""
    return parse_config(
        {
            "preset": "plain",
            "seed": job.seed,
            "clock": "virtual",
            "algorithm": {"name": "context_evolve", "max_in_flight": IN_FLIGHT, **{**METHODS, **VARIANTS}[job.method]},
            "task": {
                "name": "program",
                "problem": "bench.context_tokens.long_programs:LongProgram",
                "tokens": job.tokens,
                "live": job.live,
            },
            "sandbox": {"timeout": TIMEOUT, "concurrency": max(1, len(usable_cores()) // processes)},
            "llm": {"backend": "sim"},
            "prompts": {"max_tokens": UNLIMITED},
            "sim": {"profile": PROFILE, "world": WORLD},
            "budget": {"evaluations": job.evaluations},
        },
        "context_tokens",
    )


def perform(job: Job, processes: int = 1) -> Run:
    """Run a job in this process."""
    config = configure(job, processes)

    async def main() -> Result:
        return await run(config)

    result = clock.run(main, clock="virtual")
    assert result.best is not None
    assert result.seed_score is not None
    stages, steps, usage = result.report.stages, result.report.spent.proposals, result.llm.usage
    return Run(
        job,
        steps,
        usage.prompt_tokens / steps,
        usage.completion_tokens / steps,
        {name: stages[name].counts.tokens / steps for name in STAGES if name in stages},
        result.llm.requests / steps,
        60 * steps / result.report.wall_seconds,
        result.best.score - result.seed_score,
    )


def perform_all(wanted: Sequence[Job], processes: int) -> Iterator[Run]:
    """Run jobs in processes of their own; results do not depend on the number of processes."""
    with ProcessPoolExecutor(processes) as pool:
        for future in [pool.submit(perform, job, processes) for job in wanted]:
            found = future.result()
            job = found.job
            print(f"{job.tokens}, {job.method}, seed {job.seed}: {found.tokens:.0f} tokens a step", flush=True)
            yield found
