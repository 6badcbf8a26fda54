"""The content of the result file, from simulated runs or from runs on a real server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import getloadavg
from typing import Any, cast

from bench._lib.algorithm_runs import Run, configure, perform_all
from bench._lib.environment import environment
from bench._lib.paths import DATA
from bench._lib.stats import Content
from bench.algorithms.figures import Row
from bench.algorithms.groups import Group
from bench.algorithms.real_model import perform_real
from flowevolve._util.errors import InputError
from flowevolve.runner.assemble import make_task


def simulated(found: Mapping[str, Group], seeds: int, *, quick: bool, processes: int) -> Content:
    wanted = {name: group.jobs(seeds, quick=quick) for name, group in found.items()}
    for jobs in wanted.values():
        make_task(configure(jobs[0]))  # so that a mistake in the settings shows now and not after minutes
    runs: list[Run] = []
    for name, jobs in wanted.items():
        if found[name].measured:
            runs += [run.over_seed() for run in perform_all(jobs, 1)]
        else:
            runs += perform_all(jobs, processes)
    settings = {
        "seeds": seeds,
        "quick": quick,
        "groups": {name: described(group, runs, quick=quick) for name, group in found.items()},
    }
    return {"rows": [run.row() for run in runs], "simulated": True, "settings": settings, **environment()}


def beside(content: Content, before: Content) -> Content:
    """The content together with an earlier file's results for the groups that were not run this time.

    Raises:
        InputError: if that file is of another bench, or its runs had other settings.
    """
    settings, old = cast("dict[str, Any]", content["settings"]), cast("dict[str, Any]", before.get("settings", {}))
    if "groups" not in old or any(old[name] != settings[name] for name in ("seeds", "quick")):
        raise InputError("--json: that file has no runs with as many seeds; write the figures into another one")
    kept = {name: group for name, group in old["groups"].items() if name not in settings["groups"]}
    problems = {problem for group in kept.values() for problem in group["problems"]}
    rows = [row for row in cast("list[Row]", before["rows"]) if row["problem"] in problems]
    groups = {**kept, **settings["groups"]}
    return {
        **content,
        "rows": [*rows, *cast("list[Row]", content["rows"])],
        "settings": {**settings, "groups": groups},
    }


def described(group: Group, runs: Sequence[Run], *, quick: bool) -> Content:
    """Describe what was run of a group. If its scores are measured, this includes the load of the last quarter of an
    hour.
    """
    problems = group.quick_problems if quick else list(group.problems)
    return {
        "problems": problems,
        "tokens": group.quick_tokens if quick else group.tokens,
        "algorithms": {name: _from_the_data_on(modes) for name, modes in group.algorithms.items()},
        "seed_scores": {
            problem: next((run.seed_score for run in runs if run.problem == problem), None) for problem in problems
        },
        **({"load": getloadavg()[-1]} if group.measured else {}),
    }


def _from_the_data_on(settings: object) -> object:
    """The settings, with ``shared/data/`` in place of the path that the data folder has on this machine."""
    if isinstance(settings, Mapping):
        return {name: _from_the_data_on(each) for name, each in settings.items()}
    return settings.replace(f"{DATA}/", "shared/data/") if isinstance(settings, str) else settings


def real(server: str, minutes: float, seeds: int) -> Content:
    model, runs = perform_real(server, minutes, seeds)
    return {
        "rows": [run.row() for run in runs],
        "simulated": False,
        "settings": {
            "seeds": seeds,
            "minutes": minutes,
            "model": model,
            "server": server,
            "seed_score": runs[0].seed_score,
        },
        **environment(),
    }
