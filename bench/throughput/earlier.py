"""Reads an earlier result to add further repeats to, so that many hours of runs can be split into parts.

Only those of the requested methods and repeats that are still missing are run. The new result then covers all of them,
as if they had been run at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench._lib.history import last_change
from bench._lib.methods.environments import versions
from bench._lib.methods.process import CEILING
from bench._lib.text import Content
from bench.throughput.kept import DECISIVE
from bench.throughput.measurements import Plan
from flowevolve._util.errors import InputError


def read(file: Path, plan: Plan) -> Content:
    """Read a result that was made as this plan says, but with fewer repeats or methods.

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
        "code": found["code"],
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
    return found


def _conditions(plan: Plan) -> dict[str, object]:
    """What must be equal for repeats to belong to one result."""
    return {
        "minutes": plan.seconds / 60,
        "concurrency": plan.concurrency,
        "seed": plan.seed,
        "code": last_change(DECISIVE),
        "workloads": sorted(plan.workloads),
        "versions": versions(plan.methods),
    }


def repeats_of(found: Content) -> Mapping[tuple[str, str, str], int]:
    """How many repeats a result has, by server, workload and method."""
    return {(row["server"], row["workload"], row["method"]): row["repeats"] for row in found["rows"]}
