"""The command line's ``new``: a package of one's own to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowevolve.cli.terminal import print_plain

new_app = typer.Typer(no_args_is_help=True, help="Write a small working package to start from.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="what a config will name it by, such as hill_climb")]
Folder = Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="where to; by default a folder NAME here")]


@new_app.command("algorithm")
def new_algorithm(name: Name, folder: Folder = None) -> None:
    """Write a package with an algorithm, its entry point and a test on the simulated server."""
    _scaffold("algorithm", name, folder)


@new_app.command("task")
def new_task(name: Name, folder: Folder = None) -> None:
    """Write a package with a task, its entry point and a test."""
    _scaffold("task", name, folder)


def _scaffold(kind: str, name: str, folder: Path | None) -> None:
    from flowevolve.cli.scaffold import scaffold

    written = scaffold(kind, name, folder)
    print_plain(f"written to {written}; try it: cd {written} && pip install -e '.[dev]' && pytest")
