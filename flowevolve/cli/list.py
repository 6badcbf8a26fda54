"""The command line's ``list``: what can be named in a config, what packages brought it, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from flowevolve._util.registry import Listed
from flowevolve.archives.catalog import ARCHIVES
from flowevolve.cli.terminal import plain_console
from flowevolve.config.backends import BACKENDS
from flowevolve.config.run import parse_config, with_overrides
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

console = plain_console()

POLICIES: Mapping[str, Callable[[], list[Listed]]] = {
    "staleness": STALENESS.listing,
    "racing": RACING.listing,
    "allocation": ALLOCATION.listing,
    "scheduler.order": ORDERINGS.listing,
    "scheduler.admission": ADMISSIONS.listing,
    "llm.roles.NAME.bandit": BANDITS.listing,
}
"""By where a config names them."""


class Listing(StrEnum):
    algorithms = "algorithms"
    archives = "archives"
    backends = "backends"
    policies = "policies"
    problems = "problems"
    profiles = "profiles"
    tasks = "tasks"
    worlds = "worlds"


def list_command(
    what: Annotated[Listing, typer.Argument(help="what can be named in a config")],
    graph: Annotated[str | None, typer.Option(metavar="NAME", help="print an algorithm's stage graph")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="with --graph: a setting, such as a task")
    ] = None,
) -> None:
    """List what can be named in a config. Of what other packages bring it says which, and what is wrong with it."""
    lines = _lines(what) if graph is None else _graph_lines(graph, overrides or ())
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _lines(what: Listing) -> list[str]:
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
            from flowevolve.problems.catalog import PROBLEMS  # noqa: PLC0415 - slow to load

            return [_line(listed) for listed in PROBLEMS.listing()]
        case Listing.profiles:
            return list(PROFILES)
        case Listing.tasks:
            return [_line(listed) for listed in TASKS.listing()]
        case Listing.worlds:
            from flowevolve.sim.worlds.catalog import WORLDS  # noqa: PLC0415
            from flowevolve.sim.worlds.rules.params import PRESETS  # noqa: PLC0415 - slow to load

            return [f"{world} (presets: {', '.join(PRESETS)})" for world in WORLDS]


def _line(listed: Listed) -> str:
    origin = "" if listed.package is None else f"  (of {listed.package})"
    problem = "" if listed.problem is None else f"  can't be used: {listed.problem}"
    return f"{listed.name}{origin}{problem}"


def _graph_lines(name: str, overrides: Sequence[str]) -> list[str]:
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
