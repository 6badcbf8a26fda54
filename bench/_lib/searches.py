"""The settings and the problems of the searches for programs that several benches run."""

from __future__ import annotations

from collections.abc import Mapping

from bench._lib.algorithm_runs import Settings
from flowevolve._util.cores import usable_cores

PROFILE, WORLD = "qwen3-8b-h100", "code"
WIDTH = 10
"""The flows of a stream, and of a step in lockstep, so that both have equally many requests in flight at best."""
BASELINES: Mapping[str, Settings] = {
    "best_of_n": {"name": "best_of_n"},
    "one_plus_lambda": {"name": "one_plus_lambda"},
}
_CODE_EVOLVE: Settings = {
    "name": "code_evolve",
    "epoch": 2,
    "archive": {"features": ["fitness", "length"]},
    "migration": {"every": 12},
}
METHODS: Mapping[str, Settings] = {"levi": {"name": "levi"}, "code_evolve": _CODE_EVOLVE}
"""LEVI has its default settings. An epoch of CodeEvolve has two evaluations, so that a step of its lockstep is `WIDTH`
wide; islands send programs six times a run, as in the published runs. By default its archive uses running times as a
feature. Here it does not, because these would make runs differ that should be equal.
"""

TIMEOUT = 5.0
"""Seconds that a program may take for one case."""


def program_problem(problem: str, settings: Settings, processes: int) -> Settings:
    """The sections of a configuration for a problem, if ``processes`` runs share the machine's cores."""
    return {
        "task": {"name": "program", "problem": problem, **settings},
        "sandbox": {"timeout": TIMEOUT, "concurrency": max(1, len(usable_cores()) // processes)},
        "sim": {"profile": PROFILE, "world": WORLD},
    }


def measured_problem(problem: str) -> Settings:
    """An efficiency problem with few tests and runs, so that an evaluation takes a fraction of a second."""
    return program_problem(problem, {"tests": 3, "runs": 3}, 1)
