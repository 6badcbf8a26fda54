"""The command line's ``watch``: the live page of runs, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.signals import until_ended
from flowevolve.cli.listening import listening
from flowevolve.cli.options import Port
from flowevolve.cli.terminal import print_plain

POLITENESS = 5
"""How much the niceness of the process of a run's page is raised, so that the run takes precedence."""
FROM_ENVIRONMENT = "FLOWEVOLVE_PAGE_TOKEN"


def watch_command(
    places: Annotated[
        list[str],
        typer.Argument(metavar="DIR|URL...", help="run directories, folders of them, or addresses of live pages"),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="where it listens; other than on loopback only with a token")
    ] = "127.0.0.1",
    port: Port = 0,
    token: Annotated[
        str | None,
        typer.Option(envvar=FROM_ENVIRONMENT, metavar="TEXT", help="who asks must know it; by default a new one"),
    ] = None,
    until_closed: Annotated[
        bool,
        typer.Option(
            "--until-closed",
            help="what a run starts for its own page: end with standard input, and steer the run through the pipe",
        ),
    ] = False,
) -> None:
    """Show runs in the browser as they go on, or as they ended, until Ctrl-C. Nothing is written."""
    from flowevolve._util.addresses import is_loopback
    from flowevolve.page.live.run_pipe import RunPipe
    from flowevolve.page.live.server import serve_page
    from flowevolve.runner.watching import ANSWER

    runs = list(dict.fromkeys(run for place in places for run in _runs_at(place)))
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)

    if until_closed and hasattr(os, "nice"):  # which Windows lacks
        os.nice(POLITENESS)

    async def go() -> None:
        pipe = RunPipe(sys.stdin.buffer, sys.stdout.buffer) if until_closed else None
        served = serve_page(runs, host, port, token, pipe)
        async with listening(served, "watch", host, port) as address:
            print_plain(f"{ANSWER}{address}")
            await (until_ended() if pipe is None else pipe.listen())

    clock.run(go, clock="real")


def _runs_at(place: str) -> list[str]:
    """A run directory itself, the run directories in a folder, or an address."""
    from flowevolve.journal.files import looking
    from flowevolve.journal.opening import JOURNAL
    from flowevolve.page.live.following import is_address
    from flowevolve.runner.overview import run_directories

    if is_address(place):
        return [place]
    directory = Path(place)
    with looking(directory):
        if (directory / JOURNAL).is_file():
            return [place]
    found = run_directories(directory)
    if not found:
        raise InputError(f"{place} holds no run, and neither do the folders in it; give the directory of a run")
    return list(map(str, found))
