"""The command line's ``list``: what can be named in a config, what packages brought it, and what is wrong with that."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from flowevolve.cli.terminal import plain_console

console = plain_console()


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
    from flowevolve.cli.listing import graph_lines, lines  # noqa: PLC0415 - loads the engine

    for line in lines(what) if graph is None else graph_lines(graph, overrides or ()):
        console.print(line, highlight=False, soft_wrap=True)
