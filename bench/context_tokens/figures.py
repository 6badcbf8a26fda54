"""Figures of the runs, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TypeAlias

from bench._lib.environment import environment
from bench._lib.intervals import interval
from bench.context_tokens.long_programs import LongProgram
from bench.context_tokens.runs import IN_FLIGHT, METHODS, PROFILE, RAW, VARIANTS, WORLD, Run
from flowevolve.programs.problem import PROGRAM
from flowevolve.sim.service_model import count_tokens

Content: TypeAlias = dict[str, object]


def summarise(runs: Sequence[Run]) -> Content:
    """A row for each kind of program, length and method.

    ``saved`` is the share of the raw history's tokens that the method saves.
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
        "tokens": interval([[each.tokens for each in runs]]).as_json(),
        "prompt": fmean(each.prompt for each in runs),
        "completion": fmean(each.completion for each in runs),
        "calls": fmean(each.calls for each in runs),
        "per_minute": fmean(each.per_minute for each in runs),
        "stages": {name: fmean(each.stages[name] for each in runs) for name in runs[0].stages},
        "saved": interval([saved]).as_json(),
        "gain": interval([[each.gain for each in runs]]).as_json(),
    }


def report(runs: Sequence[Run], seeds: int, evaluations: int) -> Content:
    """The content of the result file."""
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
