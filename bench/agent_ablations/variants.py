"""The variants that are run: CSE with each set of its parts, and ContextEvolve without each of its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from bench._lib.algorithm_runs import Job, Settings
from bench._lib.searches import program_problem

PARTS = ("planning", "evolution", "memory")
"""The parts of CSE, as its table 2 and figure 4 name them."""
AGENTS = ("summarizer", "navigator", "sampler")
"""The agents of ContextEvolve, as its figure 2 (c) names them."""
SWITCHES: Mapping[str, str] = {"memory": "local_memory"}
"""The setting that turns a part off, where its name differs from the part's. No run here has global memory."""
PROBLEMS = ("min_max_distance_2d", "autocorrelation_1")
"""The problems whose programs take the least time."""
EVALUATIONS, AGENT_EVALUATIONS = 30, 40
"""Evaluations of a run of CSE (with the seed, which the paper's 30 do not include), and of a run of ContextEvolve."""


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
    """The ``[algorithm]`` table of each variant, with the number of evaluations of a run."""
    return {
        **{cse_name(parts): (cse(parts), EVALUATIONS) for parts in subsets()},
        **{agents_name(name): (context_evolve(name), AGENT_EVALUATIONS) for name in (None, *AGENTS)},
    }


def jobs(seeds: int, problems: Sequence[str], processes: int, scale: float = 1.0) -> list[Job]:
    """The runs seed by seed, in lockstep and one step at a time, as both algorithms are published.

    The numbers of evaluations are multiplied by ``scale``.
    """
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
