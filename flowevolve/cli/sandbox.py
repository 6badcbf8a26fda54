"""The command line's ``sandbox``: run one program that nobody trusts, and print its outcome."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util import clock
from flowevolve._util.errors import InputError

if TYPE_CHECKING:
    from flowevolve._util.json_types import JSON

sandbox_app = typer.Typer(no_args_is_help=True, help="Run programs that nobody trusts.")


@sandbox_app.callback()
def _group() -> None:
    """Run programs that nobody trusts."""


@sandbox_app.command("run")
def sandbox_run_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="a Python program, or with --command one in any language")
    ],
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="seconds it may take")] = 10.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="memory it may use")] = 512,
    call: Annotated[
        str | None, typer.Option(metavar="NAME", help="a function of it; what that returns is the result")
    ] = None,
    arguments: Annotated[str, typer.Option(metavar="JSON", help="an object or a list, for the function")] = "[]",
    command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="what runs the file, such as 'bash' or 'node'")
    ] = None,
    isolation: Annotated[
        str, typer.Option(metavar="HOW", help="bubblewrap, or limits: then nothing hides your files")
    ] = "bubblewrap",
) -> None:
    """Run FILE in a sandbox and print one line of JSON: status, times, memory, output and result."""
    from flowevolve._util.registry import validated
    from flowevolve.core.sandbox_settings import SandboxSettings
    from flowevolve.programs.evaluator import read_text
    from flowevolve.sandbox import Outcome, Sandbox

    given: dict[str, object] = {
        "isolation": isolation,
        "timeout": timeout,
        "memory_mb": memory,
        "concurrency": 1,
    }
    if command is not None:
        given["preload"] = ()
    settings = validated(SandboxSettings, given, "sandbox")
    source, values, words = read_text(file), _arguments(arguments), None if command is None else _words(command)

    async def go() -> Outcome:
        async with Sandbox(settings) as sandbox:
            return await sandbox.run(source, call=call, arguments=values, command=words, name=file.name)

    typer.echo(json.dumps(clock.run(go).to_json()))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--command {command!r} can't be read: {str(error).lower()}") from None
    if not words:
        raise InputError("--command is empty; name what runs the file, or leave it out for Python")
    return words


def _arguments(text: str) -> dict[str, JSON] | list[JSON]:
    from flowevolve.sandbox.outcome import read_json

    try:
        values = read_json(os.fsencode(text), "--arguments")
    except ValueError as error:
        raise InputError(str(error)) from None
    if not isinstance(values, dict | list):
        raise InputError(f"--arguments is {text:.80}; give a JSON object (by name) or list (by place)")
    return values
