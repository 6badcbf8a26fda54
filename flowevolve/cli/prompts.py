"""The command line's ``prompts``: what is sent to models, and what the readers make of replies."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util.errors import InputError

if TYPE_CHECKING:
    from flowevolve.prompts.reading.kinds import Recorded

prompts_app = typer.Typer(no_args_is_help=True, help="Look at what is sent to models, and at what is read of replies.")


@prompts_app.callback()
def _group() -> None:
    """Look at what is sent to models, and at what is read of their replies."""


class ReplyKind(StrEnum):
    answer = "answer"
    instruction = "instruction"
    program = "program"
    edits = "edits"
    json = "json"
    verdict = "verdict"


@prompts_app.command("show")
def show_command(
    algorithm: Annotated[
        str, typer.Argument(metavar="ALGORITHM", help="its name, as `flowevolve list algorithms` has it")
    ],
    role: Annotated[str | None, typer.Option(metavar="NAME", help="only what is sent to this role")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="your configuration; by default an example's")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a setting; may be repeated")
    ] = None,
) -> None:
    """Print the prompts that an algorithm sends, the first of each kind, from a short run against simulated models.

    Nothing is sent to a real model. The answers and scores that prompts show are those of the simulated ones.
    """
    from flowevolve.config.run import parse_config
    from flowevolve.config.table import load_table
    from flowevolve.runner.sent_prompts import example_prompts, sent_by, simulated

    if config is None and overrides:
        raise InputError("--set overrides a setting of a configuration; name the configuration with --config")
    if config is None:
        sent = example_prompts(algorithm)
    else:
        table = simulated(load_table(config, overrides or ()), algorithm)
        sent = sent_by(parse_config(table, str(config)))
    shown = [each for each in sent if role in (None, each.role)]
    if not shown:
        roles = ", ".join(dict.fromkeys(each.role for each in sent)) or "no role"
        raise InputError(f"--role {role}: nothing is sent to this role in so short a run, which calls only {roles}")
    sys.stdout.write("\n\n".join(map(str, shown)) + "\n")


@prompts_app.command("read")
def read_command(
    kind: Annotated[
        ReplyKind, typer.Argument(metavar="KIND", help=f"what the replies were asked for: {', '.join(ReplyKind)}")
    ],
    rows: Annotated[
        str, typer.Option("--jsonl", metavar="FILE", help='rows {"reply", "parent"?, "language"?}; - is standard input')
    ],
) -> None:
    """Print for each reply one line of JSON with what the readers make of it: ok, result, reason."""
    from flowevolve.prompts.reading.kinds import outcome

    for recorded in [_recorded(number, line) for number, line in enumerate(_lines(rows), 1)]:
        sys.stdout.write(f"{outcome(kind.value, recorded)}\n")


def _lines(name: str) -> list[str]:
    """The lines of a file, without the empty one after its last line break.

    Raises:
        InputError: if it can't be read.
    """
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = content.decode()
    except OSError as error:
        raise InputError(f"--jsonl {name} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"--jsonl {name}: line {line} is not UTF-8") from error
    return text.removesuffix("\n").split("\n") if text else []


def _recorded(number: int, line: str) -> Recorded:
    """Raises: InputError if the line is no row, naming its number."""
    from flowevolve.prompts.reading.kinds import Recorded

    where = f"--jsonl: line {number}:"
    if not line.strip():
        raise InputError(f"{where} is blank")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("reply"), str):
        raise InputError(f'{where} has to be an object with a text "reply"')
    for name in ("parent", "language"):
        if not isinstance(row.get(name), str | None):
            raise InputError(f"{where} {name!r} has to be a text")
    return Recorded(row["reply"], row.get("parent"), row.get("language"))
