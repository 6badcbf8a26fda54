"""Which benches have a page, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.report.bench import Bench
from bench.report.benches.algorithms import ALGORITHMS
from bench.report.benches.machinery import MACHINERY
from bench.report.benches.scores import SCORES
from bench.report.benches.simulator import SIMULATOR
from bench.report.benches.speed import SPEED

GROUPS: Mapping[str, Sequence[Bench]] = {
    "Speed beside gepa": SPEED,
    "Scores beside gepa and lockstep": SCORES,
    "Whether simulated figures hold": SIMULATOR,
    "Other algorithms": ALGORITHMS,
    "What the machinery costs and holds": MACHINERY,
}
"""The benches by what they are about."""
BENCHES: Sequence[Bench] = tuple(bench for group in GROUPS.values() for bench in group)
