"""CSE and ContextEvolve without some of their parts, and CSE over a sequence of tasks: what is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from bench._lib.algorithm_runs import Job, Settings
from bench._lib.searches import program_problem

PARTS = ("planning", "evolution", "memory")
"""Of CSE, as its table 2 and figure 4 have them."""
AGENTS = ("summarizer", "navigator", "sampler")
"""Of ContextEvolve, as its figure 2 (c) has them."""
SWITCHES: Mapping[str, str] = {"memory": "local_memory"}
"""What turns a part off, where that has another name. Global memory is in none of these runs."""
PROBLEMS = ("min_max_distance_2d", "autocorrelation_1")
"""Those whose programs take least time."""
EVALUATIONS, AGENT_EVALUATIONS = 30, 40
"""Of a run of CSE, the seed among them (the paper's 30 have none); and of ContextEvolve."""


def subsets() -> list[tuple[str, ...]]:
    """All combinations of parts, from none to all."""
    chosen = product((False, True), repeat=len(PARTS))
    return sorted((tuple(part for part, on in zip(PARTS, each, strict=True) if on) for each in chosen), key=len)


def cse_name(parts: Sequence[str]) -> str:
    return f"cse: {', '.join(parts) or 'nothing'}"


def agents_name(without: str | None) -> str:
    return "context_evolve" if without is None else f"context_evolve without {without}"


def cse(parts: Sequence[str]) -> Settings:
    """The ``[algorithm]`` table of CSE with these parts."""
    return {"name": "cse", **{SWITCHES.get(part, part): part in parts for part in PARTS}}


def context_evolve(without: str | None) -> Settings:
    return {"name": "context_evolve", **({} if without is None else {without: False})}


def variants() -> Mapping[str, tuple[Settings, int]]:
    """By name, with the evaluations of a run."""
    return {
        **{cse_name(parts): (cse(parts), EVALUATIONS) for parts in subsets()},
        **{agents_name(name): (context_evolve(name), AGENT_EVALUATIONS) for name in (None, *AGENTS)},
    }


def jobs(seeds: int, problems: Sequence[str], processes: int, scale: float = 1.0) -> list[Job]:
    """Seed by seed. In lockstep, one step at a time: as both are published. ``scale`` is that of the evaluations."""
    return [
        Job(
            problem,
            name,
            "sync",
            seed,
            {
                "clock": "virtual",
                **program_problem(problem, {}, processes),
                "algorithm": {**algorithm, "mode": "sync", "width": 1},
                "budget": {"evaluations": round(scale * evaluations)},
            },
        )
        for seed, problem, (name, (algorithm, evaluations)) in product(range(seeds), problems, variants().items())
    ]
