"""The trials, and the result file made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from bench._lib.environment import environment
from bench._lib.stats import Content
from bench.program_peers.figures import figures
from bench.program_peers.folders import PROBLEMS
from bench.program_peers.systems import SYSTEMS
from bench.program_peers.trial import Plan, perform

PROFILE, SPEED = "gpt-4o-mini-api", 4.0
CALLS, WIDTH, SEEDS = 60, 8, 3
TIMEOUT, PATIENCE = 60.0, 900.0
"""Seconds: for one evaluation, and for a whole run."""
HANG_TIMEOUT = 20.0
"""The time limit of an evaluation if one never ends; importing LEVI takes seconds of it each time."""
HANG_PATIENCE = 120.0
ENDLESS_AT = 10
WITH_TROUBLE = "function_minimization"
"""The problem on which runs are killed, or given a program that never ends."""
ONE_PROBLEM = ("shinka_two_cores",)
"""Systems that run on `WITH_TROUBLE` only, because they are the same software as another one."""


def plans(systems: Sequence[str], problems: Sequence[str], seeds: int, calls: int, width: int) -> Iterator[Plan]:
    """All trials, seed by seed. Each kind of trouble comes once, with the first seed."""
    for seed in range(seeds):
        for problem, name in product(problems, systems):
            if name in ONE_PROBLEM and problem != WITH_TROUBLE:
                continue
            plan = Plan(name, problem, seed, calls, width, PROFILE, SPEED, TIMEOUT, PATIENCE)
            yield plan
            if problem == WITH_TROUBLE and seed == 0 and name not in ONE_PROBLEM:
                yield replace(plan, kill_at=calls // 2)
                yield replace(plan, endless_at=ENDLESS_AT, timeout=HANG_TIMEOUT, patience=HANG_PATIENCE)


def perform_all(wanted: Iterable[Plan]) -> Iterator[Content]:
    """Perform the trials one after the other, because each is measured in real time."""
    for plan in wanted:
        found = figures(perform(SYSTEMS[plan.system], plan))
        print(line(found), flush=True)
        yield found


def line(trial: Content) -> str:
    lives = trial["lives"]
    assert isinstance(lives, list)
    trouble = "killed" if trial["kill_at"] else "endless" if trial["endless_at"] else ""
    told = "; ".join(
        f"{life['calls']} calls, {life['evaluations']} evaluations in {life['seconds']:.0f} s, "
        f"{life['mean_in_flight']:.1f} in flight, {life['cpu_ms_per_call']:.0f} ms CPU a call, ended: {life['ended']}"
        for life in lives
    )
    named = f"{trial['system']:16} {trial['problem']:22} seed {trial['seed']} {trouble:8}"
    return f"{named} {told}; best {trial['best_rescored']}"


def report(trials: Sequence[Content], *, alone: bool, note: str = "") -> Content:
    """The content of the result file. ``alone`` says that nothing else slowed these runs, so that times can be trusted.

    ``note`` is what the page says about the circumstances.
    """
    return {
        "trials": list(trials),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "speed": SPEED,
            "calls": trials[0]["calls"],
            "width": trials[0]["width"],
            "timeout": TIMEOUT,
            "hang_timeout": HANG_TIMEOUT,
            "patience": HANG_PATIENCE,
            "endless_at": ENDLESS_AT,
            "problem_with_trouble": WITH_TROUBLE,
            "problems": list(PROBLEMS),
            "systems": {
                name: {"version": system.version, "settings": list(system.settings)} for name, system in SYSTEMS.items()
            },
            "alone": alone,
            "note": note,
        },
        **environment(),
    }
