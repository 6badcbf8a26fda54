"""The command line's ``branch``: a new run that begins with a candidate of another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve.cli.terminal import print_plain, show_logs

if TYPE_CHECKING:
    from flowevolve.runner.clients import SideTask
    from flowevolve.runner.result import Result
    from flowevolve.runner.run import Watchers


def branch_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="a run directory; the run may be going on")],
    candidate: Annotated[
        str, typer.Option(metavar="ID", help="the candidate whose texts, or programs, the new run begins with")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="the new run directory")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a setting; may be repeated")
    ] = None,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="only write the configuration; `flowevolve resume` begins the run")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="serve the new run's live page while it goes on")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object at the end and nothing else; progress goes to stderr")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="log what happens on standard error")] = False,
) -> None:
    """Begin a new run with a candidate of another one, under the same configuration, and carry it out."""
    from flowevolve.cli.runs import failure_as_json, make_output, show, title
    from flowevolve.runner.branch import branch_config, write_branch
    from flowevolve.runner.run import run

    show_logs(verbose=verbose)
    output = make_output(as_json=as_json)
    with failure_as_json(output, out):
        changes = [*(overrides or ()), *(["watch=true"] if watch else [])]
        config = branch_config(directory, candidate, changes)
        if no_start:
            write_branch(config, out)
            print_plain(f"written to {out}/config.toml; to begin the run: flowevolve resume {out}")
            return
        output.say(f"branched off {candidate} of {directory}: {title(config)}")

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            return await run(config, out=out, watchers=watchers, side_task=side_task)

        show(go, config, out, None, output)
