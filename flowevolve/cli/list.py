"""The command line's ``list``: what can be named in a config, which packages provide it, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util.errors import InputError
from flowevolve.cli.terminal import aligned, print_plain

if TYPE_CHECKING:
    from flowevolve._util.registry import Registry


_WIDTH = 116


class Listing(StrEnum):
    algorithms = "algorithms"
    archives = "archives"
    backends = "backends"
    policies = "policies"
    presets = "presets"
    problems = "problems"
    profiles = "profiles"
    tasks = "tasks"
    worlds = "worlds"


ABOUT_PRESETS: Mapping[str, str] = {
    "default": "What is recommended: of gepa in the stream, with edits merged and validated in groups, validations "
    "that are losing stopped, and the winner chosen on fresh examples. Of other algorithms it is plain.",
    "plain": "The algorithm's own rules in the stream and nothing else.",
    "flashevolve": "Of gepa, as in its paper: candidates go on after half of their rollouts, stale proposals are "
    "judged and repaired, workers go where work waits.",
    "careful": "Of gepa: six flows, one validation at a time, and up to three repairs of an edit whose parent is no "
    "longer the best.",
    "lockstep": "The published loop, with a barrier after every stage.",
}
LISTINGS: Mapping[Listing, str] = {
    Listing.algorithms: "how to search",
    Listing.archives: "where algorithms keep candidates",
    Listing.backends: "what answers calls of an LLM",
    Listing.policies: "how a run decides: on staleness, racing, workers, order, admission",
    Listing.presets: "what decides what a config leaves open",
    Listing.problems: "what programs can be evolved for",
    Listing.profiles: "how fast a simulated server is",
    Listing.tasks: "what prompts can be evolved for",
    Listing.worlds: "what a simulated model knows",
}


def list_command(
    what: Annotated[
        Listing | None, typer.Argument(metavar="WHAT", help=f"{', '.join(Listing)}; without it, what these are")
    ] = None,
    graph: Annotated[str | None, typer.Option(metavar="NAME", help="print an algorithm's stage graph")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="with --graph: a setting, such as a task")
    ] = None,
) -> None:
    """List what can be named in a config. What other packages provide is shown with its package and its problems."""
    if graph is None and overrides:
        raise InputError("list: --set changes how the graph of an algorithm is drawn; name an algorithm with --graph")
    if graph is not None:
        lines: Iterable[str] = _graph_lines(graph, overrides or ())
    elif what is None:
        lines = aligned([(f"flowevolve list {each}", about) for each, about in LISTINGS.items()])
    else:
        lines = _lines(what)
    for line in lines:
        print_plain(line)


def _lines(what: Listing) -> Iterator[str]:
    from flowevolve.archives.base import ARCHIVES
    from flowevolve.config.backends import BACKENDS
    from flowevolve.problems.catalog import PROBLEMS
    from flowevolve.runner import registries
    from flowevolve.sim.profiles import ABOUT_PROFILES, PROFILES
    from flowevolve.sim.worlds.catalog import ABOUT_WORLDS, WORLDS
    from flowevolve.sim.worlds.rules.params import PRESETS

    match what:
        case Listing.algorithms:
            yield from _entries(registries.ALGORITHMS)
        case Listing.archives:
            yield from _entries(ARCHIVES)
        case Listing.backends:
            yield from _entries(BACKENDS)
        case Listing.policies:
            for key, registry in registries.POLICIES.items():
                yield from _entries(registry, f"{key}: ")
        case Listing.presets:
            for name, about in ABOUT_PRESETS.items():
                yield from _entry(name, about)
        case Listing.problems:
            yield from _entries(PROBLEMS)
        case Listing.profiles:
            for name in PROFILES:
                yield from _entry(name, ABOUT_PROFILES[name])
        case Listing.tasks:
            yield from _entries(registries.TASKS)
        case Listing.worlds:
            for name in WORLDS:
                yield from _entry(f"{name} (presets: {', '.join(PRESETS)})", ABOUT_WORLDS[name])


def _entries(registry: Registry[object], where: str = "") -> Iterator[str]:
    for listed in registry.listing():
        origin = "" if listed.package is None else f"  (of {listed.package})"
        problem = "" if listed.problem is None else f"  can't be used: {listed.problem}"
        yield from _entry(f"{where}{listed.name}{origin}{problem}", listed.about)


def _entry(name: str, about: str) -> Iterator[str]:
    """A name, and below it its description."""
    yield name
    yield from wrap(about, _WIDTH, initial_indent="    ", subsequent_indent="    ")


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
