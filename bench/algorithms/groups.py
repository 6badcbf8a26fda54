"""What `bench.algorithms` runs: algorithms in groups, each on the problems it is made for, at equal tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from bench._lib.algorithm_runs import MODES, Job, Mode, Settings
from bench._lib.paths import DATA
from bench._lib.searches import BASELINES, METHODS, PROFILE, WIDTH, measured_problem, program_problem
from bench.ace import runs as ace
from bench.meta_harness import runs as meta_harness
from bench.quality.methods import METHODS as GEPA, OTHERS
from bench.quality.runs import SYNC as GEPA_SYNC

HARNESSES = "harnesses"
"""The group that reads rows of public data sets."""
BASELINE = "one_plus_lambda"
"""The search that the other searches over programs are compared with."""
PUBLISHED_WIDTHS = {"cse": 1, "context_evolve": 1}
"""The widths of searches whose published form takes one step at a time."""
ACE_WIDTH = 16
HARNESS = meta_harness.Setting(minutes=30.0, width=16, workers=8, data=DATA)
"""The setting that `bench.meta_harness` reports, except for the minutes: here tokens end a run."""


@dataclass(frozen=True, slots=True)
class Group:
    """Algorithms that are compared on the same problems, each run with the same number of tokens.

    ``problems`` maps each name to sections of a configuration, and ``algorithms`` maps each name and mode to such
    sections.
    """

    problems: Mapping[str, Settings]
    algorithms: Mapping[str, Mapping[Mode, Settings]]
    tokens: int
    quick_tokens: int
    quick_problems: Sequence[str]
    measured: bool = False
    """Whether scores depend on the machine's other load; if so, the runs are made one at a time."""

    def jobs(self, seeds: int, *, quick: bool) -> list[Job]:
        """The runs seed by seed, both modes of an algorithm one after the other."""
        tokens = self.quick_tokens if quick else self.tokens
        problems = self.quick_problems if quick else tuple(self.problems)
        return [
            Job(
                problem,
                algorithm,
                mode,
                seed,
                {"clock": "virtual", **self.problems[problem], **modes[mode], "budget": {"tokens": tokens}},
            )
            for seed, problem, (algorithm, modes), mode in product(
                range(seeds), problems, self.algorithms.items(), MODES
            )
        ]


def search(settings: Settings, width: int = WIDTH) -> Mapping[Mode, Settings]:
    """A search over programs in both modes. ``width`` is the stream's, and lockstep's if no width is published."""
    name = str(settings["name"])
    lockstep = {} if name == "code_evolve" else {"width": PUBLISHED_WIDTHS.get(name, width)}
    return {
        "sync": {"algorithm": {**settings, "mode": "sync", **lockstep}},
        "stream": {"algorithm": {**settings, "mode": "stream", "max_in_flight": width}},
    }


SEARCHES: Mapping[str, Settings] = {
    **BASELINES,
    **METHODS,
    "cse": {"name": "cse"},
    "context_evolve": {"name": "context_evolve"},
}
"""The ``[algorithm]`` tables of all algorithms that evolve programs."""
PROGRAMS: Mapping[str, Settings] = {
    "circle_packing_32": {},
    "min_max_distance_2d": {},
    "transaction_scheduling": {"transactions": 60, "instances": 1},
}
"""Two problems of mathematics and one of ADRS."""


def groups(processes: int) -> Mapping[str, Group]:
    """All groups by name."""
    searches = {name: search(settings) for name, settings in SEARCHES.items()}
    return {
        "prompts": Group(
            {"house_style": {"sim": {"profile": PROFILE, "world": "rules"}, "llm": {"concurrency": 256}}},
            {
                "gepa": {"sync": GEPA_SYNC, "stream": GEPA["careful"]},
                "combee": {"sync": OTHERS["combee 10"], "stream": OTHERS["combee 10, stream"]},
                "ace": {mode: {"algorithm": ace.algorithm(mode, ACE_WIDTH)} for mode in MODES},
            },
            tokens=2_000_000,
            quick_tokens=500_000,
            quick_problems=("house_style",),
        ),
        HARNESSES: Group(
            {"text_classification": {}},
            {"meta_harness": {mode: meta_harness.sections(mode, HARNESS) for mode in MODES}},
            tokens=2_000_000,
            quick_tokens=600_000,
            quick_problems=("text_classification",),
        ),
        "programs": Group(
            {name: program_problem(name, settings, processes) for name, settings in PROGRAMS.items()},
            searches,
            tokens=80_000,
            quick_tokens=30_000,
            quick_problems=("circle_packing_32",),
        ),
        "efficiency": Group(
            {"efficiency_distances": measured_problem("efficiency_distances")},
            searches,
            tokens=60_000,
            quick_tokens=20_000,
            quick_problems=("efficiency_distances",),
            measured=True,
        ),
    }
