"""Tokens that a step of ContextEvolve takes beside the form that shows programs as they are (the paper's figure 2b).

    python -m bench.context_tokens [--quick] [--json FILE] [--processes N]

On the virtual clock with the simulated coder (world ``code``); programs are real, and run in the sandbox. Everything is
the same but the length of programs: they carry text along that does nothing (`bench.long_programs`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from bench.long_programs import LongProgram
from bench.program_figures import as_json
from bench.report.context_tokens import section
from bench.stats import environment, interval
from flowevolve import clock
from flowevolve._util.cores import usable_cores
from flowevolve.config import Config, parse_config
from flowevolve.programs.problem import PROGRAM
from flowevolve.result import Result
from flowevolve.run import run
from flowevolve.sim.service import count_tokens

Content: TypeAlias = dict[str, object]

LENGTHS, QUICK_LENGTHS = (0, 1000, 2000, 4000, 8000), (0, 4000)
"""Tokens that programs have at least; 0: the seed as it ships."""
LIVE_LENGTHS = (1000,)
"""Of programs that carry code along which is described as theirs, too."""
VARIED = 0
"""The length at which variants are run."""
SEEDS, QUICK_SEEDS = 5, 2
EVALUATIONS, QUICK_EVALUATIONS = 100, 30
"""As many as the paper's runs have iterations."""
IN_FLIGHT = 16
PROFILE, WORLD = "gpt-4o-mini-api", "code"
"""A model that does not think."""
TIMEOUT = 5.0

RAW, OURS, ONE = "raw history", "context", "context, one step at a time"
METHODS: Mapping[str, Mapping[str, object]] = {RAW: {"raw_history": 8}, OURS: {}, ONE: {"max_in_flight": 1}}
"""Eight are what OpenEvolve shows with its defaults: three top programs, two diverse ones, three inspirations."""
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "raw history of 5": {"raw_history": 5},
    "context, guidance of every version": {"guidance_age": 0},
    "context, guidance up to 50 commits old": {"guidance_age": 50},
}
STAGES = ("navigate", "sample", "generate", "summarize")


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be made."""

    tokens: int
    live: bool
    method: str
    seed: int
    evaluations: int


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one; tokens are of a step, which is one call of who writes programs and all that goes with it."""

    job: Job
    steps: int
    prompt: float
    completion: float
    stages: Mapping[str, float]
    """Prompt and completion tokens of a step by stage."""
    calls: float
    per_minute: float
    """Steps in a virtual minute."""
    gain: float
    """Of the best score over the seed's."""

    @property
    def tokens(self) -> float:
        return self.prompt + self.completion


def jobs(lengths: Sequence[int], live: Sequence[int], seeds: int, evaluations: int) -> list[Job]:
    """All methods at all lengths, variants at one, and two methods on programs that carry live code."""
    wanted = [
        *((tokens, False, method) for tokens, method in product(lengths, METHODS)),
        *((VARIED, False, method) for method in VARIANTS),
        *((tokens, True, method) for tokens, method in product(live, (RAW, OURS))),
    ]
    return [Job(*each, seed, evaluations) for each, seed in product(wanted, range(seeds))]


def configure(job: Job, processes: int) -> Config:
    """``processes`` runs share the machine's cores."""
    return parse_config(
        {
            "seed": job.seed,
            "clock": "virtual",
            "algorithm": {"name": "context_evolve", "max_in_flight": IN_FLIGHT, **{**METHODS, **VARIANTS}[job.method]},
            "task": {
                "name": "program",
                "problem": "bench.long_programs:LongProgram",
                "tokens": job.tokens,
                "live": job.live,
            },
            "sandbox": {"timeout": TIMEOUT, "concurrency": max(1, len(usable_cores()) // processes)},
            "llm": {"backend": "sim"},
            "sim": {"profile": PROFILE, "world": WORLD},
            "budget": {"evaluations": job.evaluations},
        },
        "context_tokens",
    )


def perform(job: Job, processes: int = 1) -> Run:
    """Run a job in this process."""
    config = configure(job, processes)

    async def go() -> Result:
        return await run(config)

    result = clock.run(go, clock="virtual")
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
    """In processes of their own; results do not depend on how many."""
    with ProcessPoolExecutor(processes) as pool:
        for future in [pool.submit(perform, job, processes) for job in wanted]:
            found = future.result()
            job = found.job
            print(f"{job.tokens}, {job.method}, seed {job.seed}: {found.tokens:.0f} tokens a step", flush=True)
            yield found


def summarise(runs: Sequence[Run]) -> Content:
    """A row for each kind of program, length and method; ``saved``: what share of the raw history's tokens is not
    spent.
    """
    groups: dict[tuple[bool, int, str], list[Run]] = {}
    for each in sorted(runs, key=lambda run: run.job.seed):
        groups.setdefault((each.job.live, each.job.tokens, each.job.method), []).append(each)
    return {"rows": [_row(group, groups[live, tokens, RAW]) for (live, tokens, _), group in groups.items()]}


def _row(runs: Sequence[Run], raw: Sequence[Run]) -> Content:
    job = runs[0].job
    saved = [1 - ours.tokens / theirs.tokens for ours, theirs in zip(runs, raw, strict=True)]
    return {
        "live": job.live,
        "program_tokens": count_tokens(LongProgram(job.tokens, live=job.live).seed()[PROGRAM]),
        "method": job.method,
        "tokens": as_json(interval([[each.tokens for each in runs]])),
        "prompt": fmean(each.prompt for each in runs),
        "completion": fmean(each.completion for each in runs),
        "calls": fmean(each.calls for each in runs),
        "per_minute": fmean(each.per_minute for each in runs),
        "stages": {name: fmean(each.stages[name] for each in runs) for name in runs[0].stages},
        "saved": as_json(interval([saved])),
        "gain": as_json(interval([[each.gain for each in runs]])),
    }


def report(runs: Sequence[Run], seeds: int, evaluations: int) -> Content:
    """What is written into the file."""
    return {
        **summarise(runs),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "world": WORLD,
            "in_flight": IN_FLIGHT,
            "seeds": seeds,
            "evaluations": evaluations,
            "methods": {**METHODS, **VARIANTS},
        },
        **environment(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, two lengths, few evaluations")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    arguments = parser.parse_args()
    quick = bool(arguments.quick)
    seeds, evaluations = (QUICK_SEEDS, QUICK_EVALUATIONS) if quick else (SEEDS, EVALUATIONS)
    wanted = jobs(QUICK_LENGTHS if quick else LENGTHS, () if quick else LIVE_LENGTHS, seeds, evaluations)
    content = report(list(perform_all(wanted, int(arguments.processes))), seeds, evaluations)
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
