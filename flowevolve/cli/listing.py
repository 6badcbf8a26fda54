"""The lines that ``flowevolve list`` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowevolve._util.registry import Listed
from flowevolve.archives.catalog import ARCHIVES
from flowevolve.cli.list import Listing
from flowevolve.config.backends import BACKENDS
from flowevolve.config.run import parse_config, with_overrides
from flowevolve.problems.catalog import PROBLEMS
from flowevolve.runner.assemble import (
    ADMISSIONS,
    ALGORITHMS,
    ALLOCATION,
    BANDITS,
    ORDERINGS,
    RACING,
    STALENESS,
    TASKS,
    make_algorithm,
    make_task,
)
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.worlds.catalog import WORLDS
from flowevolve.sim.worlds.rules.params import PRESETS

POLICIES: Mapping[str, Callable[[], list[Listed]]] = {
    "staleness": STALENESS.listing,
    "racing": RACING.listing,
    "allocation": ALLOCATION.listing,
    "scheduler.order": ORDERINGS.listing,
    "scheduler.admission": ADMISSIONS.listing,
    "llm.roles.NAME.bandit": BANDITS.listing,
}
"""By where a config names them."""


def lines(what: Listing) -> list[str]:
    match what:
        case Listing.algorithms:
            return [_line(listed) for listed in ALGORITHMS.listing()]
        case Listing.archives:
            return [_line(listed) for listed in ARCHIVES.listing()]
        case Listing.backends:
            return [_line(listed) for listed in BACKENDS.listing()]
        case Listing.policies:
            return [f"{key}: {_line(listed)}" for key, listing in POLICIES.items() for listed in listing()]
        case Listing.problems:
            return [_line(listed) for listed in PROBLEMS.listing()]
        case Listing.profiles:
            return list(PROFILES)
        case Listing.tasks:
            return [_line(listed) for listed in TASKS.listing()]
        case Listing.worlds:
            return [f"{world} (presets: {', '.join(PRESETS)})" for world in WORLDS]


def _line(listed: Listed) -> str:
    origin = "" if listed.package is None else f"  (of {listed.package})"
    problem = "" if listed.problem is None else f"  can't be used: {listed.problem}"
    return f"{listed.name}{origin}{problem}"


def graph_lines(name: str, overrides: Sequence[str]) -> list[str]:
    plain = parse_config({"algorithm": {"name": name}, "budget": {"seconds": 1}}, "list")
    settings = with_overrides(plain, overrides)
    graph = make_algorithm(settings, make_task(settings)).graph()
    lines = []
    for stage in graph.stages:
        marks = [f"{stage.workers} worker{'s' if stage.workers > 1 else ''}", f"queue {stage.capacity}"]
        marks += ["entry"] if stage.name == graph.entry else []
        marks += ["commits"] if stage.commits else []
        marks += [f"stale items via {graph.repair} to {stage.repair_to}"] if stage.repair_to else []
        arrow = f" -> {', '.join(stage.to)}" if stage.to else ""
        lines.append(f"{stage.name}{arrow}  ({'; '.join(marks)})")
    return lines
