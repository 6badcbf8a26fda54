"""The variants that are run: each algorithm whole, and without each of its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product

from bench._lib.algorithm_runs import Job, Settings
from bench._lib.searches import BASELINES, PROFILE

WORLD = PROBLEM = "families"
EVALUATIONS = 100
"""Evaluations of a run, including the seed's."""
SEEDS, FIRST_SEED = 12, 1000
_NO_SHIFTS: Settings = {"shift_every": 0, "shift_stagnation": 0}
_NO_EXPLORATION: Settings = {"exploration": {"initial": 0.0, "least": 0.0, "most": 0.0}}

WHOLE: Mapping[str, Settings] = {
    "levi": {"name": "levi"},
    "code_evolve": {
        "name": "code_evolve",
        "archive": {"features": ["fitness", "length"]},
        "migration": {"every": 3},
    },
    "cse": {"name": "cse"},
    "context_evolve": {"name": "context_evolve"},
}
"""The algorithms as they ship, except for CodeEvolve. Its islands have 20 evaluations each in a run of 100, and send
programs after every third one, so six times, as in its published runs. Its archive does not use running times, as
nothing is run.
"""
WITHOUT: Mapping[str, Mapping[str, Settings]] = {
    "levi": {
        "diverse seeds": {"seeds": 0},
        "shifts": _NO_SHIFTS,
        "diverse seeds and shifts": {"seeds": 0, **_NO_SHIFTS},
        "advice": {"advice_every": 0},
        "inspirations": {"inspiration": 0.0},
    },
    "code_evolve": {
        "islands": {"islands": 1},
        "migration": {"migration": {"topology": "empty"}},
        "inspirations": {"inspirations": 0},
        "exploration and its instructions": _NO_EXPLORATION,
    },
    "cse": {
        "plans": {"planning": False},
        "memory": {"local_memory": False},
        "slots and crossover": {"evolution": False},
    },
    "context_evolve": {
        "summarizer": {"summarizer": False},
        "navigator": {"navigator": False},
        "sampler": {"sampler": False},
    },
}
"""The settings that turn off each part of an algorithm. LEVI without both diverse seeds and shifts was added after the
first measurement, in which it did as well without either one: each may make up for the other.
"""


def name_of(algorithm: str, part: str) -> str:
    """The name of an algorithm without a part."""
    return f"{algorithm} without {part}"


def variants(algorithms: Collection[str] = tuple(WHOLE)) -> Mapping[str, Settings]:
    """The ``[algorithm]`` table of each variant of these algorithms, and of the baselines."""
    found: dict[str, Settings] = dict(BASELINES)
    for algorithm in algorithms:
        whole = found[algorithm] = WHOLE[algorithm]
        found |= {name_of(algorithm, part): {**whole, **off} for part, off in WITHOUT[algorithm].items()}
    return found


def jobs(seeds: Sequence[int], evaluations: int, algorithms: Collection[str] = tuple(WHOLE)) -> list[Job]:
    """The runs seed by seed, in lockstep and one step at a time. A step of CodeEvolve is one step of each of its
    islands.
    """
    return [
        Job(
            PROBLEM,
            name,
            "sync",
            seed,
            {
                "clock": "virtual",
                "task": {"name": "program", "problem": PROBLEM},
                "llm": {"backend": "sim"},
                "sim": {"profile": PROFILE, "world": WORLD},
                "algorithm": {
                    **algorithm,
                    "mode": "sync",
                    **({} if algorithm["name"] == "code_evolve" else {"width": 1}),
                },
                "budget": {"evaluations": evaluations},
            },
        )
        for seed, (name, algorithm) in product(seeds, variants(algorithms).items())
    ]
