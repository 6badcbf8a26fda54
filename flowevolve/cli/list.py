"""The command line's ``list``: what can be named in a config, what packages brought it, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve.cli.terminal import print_plain

if TYPE_CHECKING:
    from flowevolve._util.registry import Listed


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
        print_plain(line)


def _lines(what: Listing) -> list[str]:
    from flowevolve.archives.base import ARCHIVES
    from flowevolve.config.backends import BACKENDS
    from flowevolve.problems.catalog import PROBLEMS
    from flowevolve.runner import registries
    from flowevolve.sim.profiles import PROFILES
    from flowevolve.sim.worlds.catalog import WORLDS
    from flowevolve.sim.worlds.rules.params import PRESETS

    match what:
        case Listing.algorithms:
            return [_line(listed) for listed in registries.ALGORITHMS.listing()]
        case Listing.archives:
            return [_line(listed) for listed in ARCHIVES.listing()]
        case Listing.backends:
            return [_line(listed) for listed in BACKENDS.listing()]
        case Listing.policies:
            return [
                f"{key}: {_line(listed)}"
                for key, registry in registries.POLICIES.items()
                for listed in registry.listing()
            ]
        case Listing.problems:
            return [_line(listed) for listed in PROBLEMS.listing()]
        case Listing.profiles:
            return list(PROFILES)
        case Listing.tasks:
            return [_line(listed) for listed in registries.TASKS.listing()]
        case Listing.worlds:
            return [f"{world} (presets: {', '.join(PRESETS)})" for world in WORLDS]


def _line(listed: Listed) -> str:
    origin = "" if listed.package is None else f"  (of {listed.package})"
    problem = "" if listed.problem is None else f"  can't be used: {listed.problem}"
    return f"{listed.name}{origin}{problem}"


def _graph_lines(name: str, overrides: Sequence[str]) -> list[str]:
    from flowevolve.config.run import parse_config, with_overrides
    from flowevolve.runner.assemble import make_algorithm, make_task

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
