"""Makes a case that fails smaller, as long as it breaks the same rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from bench.simtest.case import Case, Life
from flowevolve._util.json_types import JSON

_NEEDED = ("clock", "preset", "algorithm.name", "sim.world", "sim.profile")
_SIMPLER: Mapping[str, JSON] = {
    "algorithm.mode": "sync",
    "algorithm.width": 1,
    "algorithm.max_in_flight": 1,
    "llm.concurrency": 1,
}


def shrink(case: Case, fails: Callable[[Case], bool], tries: int = 300) -> Case:
    """The smallest case found that still fails, in at most ``tries`` tries. ``case`` itself is known to fail."""
    left = tries
    smaller = True
    while smaller:
        smaller = False
        for candidate in _simpler(case):
            if left == 0:
                return case
            left -= 1
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Cases that are a step simpler, the largest steps first."""
    lives = case.lives
    for end in range(1, len(lives)):
        yield replace(case, lives=lives[:end])
    for place in range(1, len(lives) - 1):
        yield replace(case, lives=lives[:place] + lives[place + 1 :])
    if case.faults:
        yield replace(case, faults={})
    for kind in case.faults:
        yield replace(case, faults={name: rate for name, rate in case.faults.items() if name != kind})
    for place, life in enumerate(lives):
        for each in _simpler_life(life):
            yield replace(case, lives=(*lives[:place], each, *lives[place + 1 :]))
    if case.disk_seconds:
        yield replace(case, disk_seconds=0.0)
    if case.profile != "even":
        yield replace(case, profile="even")
    for name, value in case.settings.items():
        if name not in _NEEDED and not (name.startswith("budget.") and _limits(case) == 1):
            yield replace(case, settings={key: each for key, each in case.settings.items() if key != name})
        if name in _SIMPLER and value != _SIMPLER[name]:
            yield replace(case, settings={**case.settings, name: _SIMPLER[name]})


def _simpler_life(life: Life) -> Iterator[Life]:
    if life.faults:
        yield replace(life, faults=None)
        yield replace(life, faults={})
    for place in range(len(life.acts)):
        yield replace(life, acts=life.acts[:place] + life.acts[place + 1 :])
    for name in life.changes:
        yield replace(life, changes={key: value for key, value in life.changes.items() if key != name})


def _limits(case: Case) -> int:
    return sum(name.startswith("budget.") for name in case.settings)
