"""Reads an earlier result to add further repeats to, so that many hours of runs can be split into parts.

Only those of the requested methods and repeats that are still missing are run. The new result then covers all of them,
as if they had been run at once. If our code has changed since, only the repeats of other projects' methods are taken
from the earlier result, and ours are run again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench._lib.methods.environments import versions
from bench._lib.methods.process import CEILING
from bench._lib.text import Content
from bench._lib.time_to_score import Row
from bench.throughput.kept import codes, project_of
from bench.throughput.measurements import SIMULATED, Plan, speed_of
from flowevolve._util.errors import InputError


def read(file: Path, plan: Plan) -> Content:
    """Read a result that was made as this plan says, but with fewer repeats or methods. Rows of methods whose code has
    changed since are left out. ``taken`` says whose methods the others are.

    Raises:
        InputError: if the file has no result, or one that was made otherwise.
    """
    try:
        found: Content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"--add: {file} is no result that can be read: {error}") from error
    asked, had = _conditions(plan), {name: found["settings"][name] for name in ("minutes", "concurrency")}
    had |= {
        "seed": found["settings"].get("seed", 0),
        "workloads": sorted(found["workloads"]),
        "versions": {name: found["versions"].get(name, newest) for name, newest in versions(plan.methods).items()},
    }
    if other := [f"{name}: {had[name]} there, {asked[name]} here" for name in asked if had[name] != asked[name]]:
        raise InputError(f"--add: {file} was made otherwise: {'; '.join(other)}")
    if left_out := {row["method"] for row in found["rows"]} - {*plan.methods, CEILING}:
        raise InputError(f"--add: {file} has methods that were not asked for: {', '.join(sorted(left_out))}")
    counts = found["settings"]
    if more := [f"{name} {counts[name]}" for name, most in plan.counts.items() if counts[name] > most]:
        raise InputError(f"--add: {file} has more repeats than were asked for: {', '.join(more)}")
    now = codes()
    taken = sorted(project for project, code in now.items() if found["code"].get(project) == code)
    if not taken:
        raise InputError(f"--add: {file} was made with other code: {found['code']} there, {dict(now)} here")
    kept: list[Row] = []
    left: list[Row] = []
    for row in found["rows"]:
        (kept if project_of(row["method"]) in taken else left).append(row)
    minutes = counts["real_minutes"] - _real_minutes(left, plan)
    return {**found, "rows": kept, "taken": taken, "settings": {**counts, "real_minutes": minutes}}


def _real_minutes(rows: Sequence[Row], plan: Plan) -> float:
    """How long the runs of these rows took, as far as they ran in real time."""
    seconds = (
        int(row["repeats"]) * plan.seconds / speed_of(place, row["workload"], row["method"])
        for place in SIMULATED
        for row in rows
        if row["server"] == place.name and row["method"] in plan.real(place)
    )
    return math.fsum(seconds) / 60


def _conditions(plan: Plan) -> dict[str, object]:
    """What must be equal for repeats to belong to one result."""
    return {
        "minutes": plan.seconds / 60,
        "concurrency": plan.concurrency,
        "seed": plan.seed,
        "workloads": sorted(plan.workloads),
        "versions": versions(plan.methods),
    }


def repeats_of(found: Content) -> Mapping[tuple[str, str, str], int]:
    """How many repeats a result has, by server, workload and method."""
    return {(row["server"], row["workload"], row["method"]): row["repeats"] for row in found["rows"]}
