"""The command line's ``init``: writes a folder to begin with, after some questions or as flags say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from flowevolve._util.errors import InputError
from flowevolve.cli.terminal import print_error, print_plain

if TYPE_CHECKING:
    from flowevolve.cli.starter import Wish

T = TypeVar("T")


class Evolves(StrEnum):
    prompt = "prompt"
    program = "program"


def init_command(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="where to; nothing there is overwritten")] = Path(),
    kind: Annotated[
        Evolves | None, typer.Option(metavar="KIND", help="what is to get better: prompt (the default) or program")
    ] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="a prompt's rows: .csv, .jsonl or .parquet")] = None,
    shown: Annotated[
        str | None,
        typer.Option("--input", metavar="TEMPLATE", help='what the model is shown of a row, such as "{question}"'),
    ] = None,
    answer: Annotated[str | None, typer.Option(metavar="COLUMN", help="the column with the right answer")] = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="the prompt to begin with")] = None,
    program: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the program to begin with, a Python file")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="the model's name; without one it is simulated")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="its server, if it is not OpenAI's: http://localhost:8000/v1")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help='such as "10 minutes", "200 proposals" or "5 dollars"')
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="by default the first to try for what is to get better")
    ] = None,
) -> None:
    """Write a configuration with comments, and the task that it names, ready to run. Asks what flags don't say."""
    from flowevolve.cli.starter import BUDGET, Wish, write_starter

    if rows is not None and program is not None:
        raise InputError("init: --rows is for a prompt, and --program for a program; give one of the two")
    if (program is not None and kind is Evolves.prompt) or (rows is not None and kind is Evolves.program):
        raise InputError(
            f"init: --kind {kind} and {'--program' if program else '--rows'} don't go together; leave out one"
        )
    wish = Wish(rows=rows, input=shown, answer=answer, prompt=prompt, program=program, model=model, url=url)
    wish = replace(wish, algorithm=algorithm, kind="program" if program or kind is Evolves.program else "prompt")
    if sys.stdin.isatty():
        wish = _asked(wish, asks_kind=kind is None and rows is None and program is None, budget=budget)
    else:
        wish = replace(wish, budget=budget or BUDGET)
    for path in write_starter(folder, wish):
        print_plain(f"written: {path}")
    _print_what_to_know(wish)
    _print_next_steps(wish, folder)


def _print_what_to_know(wish: Wish) -> None:
    """Print what the model is shown of rows, and which model it is."""
    from flowevolve.cli.starter import TASK, find_columns

    if wish.rows is not None:
        shown, answer = find_columns(wish)
        print_plain(f"the model is shown {shown!r} of a row, and {answer!r} is the right answer: see {TASK}")
    elif wish.kind == "prompt":
        print_plain("the rows are a sample; to begin with your own: flowevolve init --rows FILE --prompt TEXT")
    if wish.model is None:
        print_plain(
            "the model is simulated" + (" and knows nothing of your rows, so scores mean nothing" if wish.rows else "")
        )
    elif wish.url is None:
        print_plain("the key for OpenAI's server is read from the environment variable OPENAI_API_KEY")


def _print_next_steps(wish: Wish, folder: Path) -> None:
    from flowevolve.cli.starter import CONFIG, SCORING, program_entry

    if wish.program is not None:
        entry = program_entry(wish.program)
        cases = f", and in {CONFIG} the cases that {entry.name} is called with" if entry.needed else ""
        print_plain(f"to fill in: in {SCORING} what a result is worth{cases}")
    if wish.budget_unit == "dollars":
        print_plain(f"to fill in: in {CONFIG} what {wish.model} costs, as the budget is in dollars")
    steps = [] if folder == Path() else [f"cd {folder}"]
    steps += [] if wish.model is None else [f"flowevolve check {CONFIG}"]
    print_plain(f"next: {' && '.join([*steps, f'flowevolve run {CONFIG}'])}")


def _asked(wish: Wish, *, asks_kind: bool, budget: str | None) -> Wish:
    """The wish, completed by asking for what the flags leave open."""
    from flowevolve.cli.starter import BUDGET, PROMPT, check_rows, program_entry, read_budget

    if asks_kind:
        kind = _ask("What is to get better: a prompt or a program?", "prompt", lambda typed: Evolves(typed).value)
        wish = replace(wish, kind="program" if kind == "program" else "prompt")
    if wish.kind == "prompt" and wish.rows is None:

        def with_rows(typed: str) -> Wish:
            completed = replace(wish, rows=Path(typed) if typed else None)
            if typed:
                check_rows(completed)
            return completed

        wish = _ask("File with rows, .csv, .jsonl or .parquet (none: a sample)", "", with_rows)
    if wish.rows is not None and wish.prompt is None:
        wish = replace(wish, prompt=_ask("The prompt to begin with", PROMPT, str))
    if wish.kind == "program" and wish.program is None:

        def with_program(typed: str) -> Wish:
            if typed:
                program_entry(Path(typed))
            return replace(wish, program=Path(typed) if typed else None)

        wish = _ask("Python program to begin with (none: a sample)", "", with_program)
    if wish.model is None:
        wish = replace(wish, model=_ask("Model, such as gpt-5-mini (none: simulated, without a key)", "", str) or None)
        if wish.model is not None and wish.url is None:
            wish = replace(
                wish, url=_ask("Its server, such as http://localhost:8000/v1 (none: OpenAI's)", "", str) or None
            )
    if budget is None:
        budget = _ask("Budget", BUDGET, lambda typed: " ".join(reversed(read_budget(typed))))
    return replace(wish, budget=budget)


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read."""
    while True:
        typed = typer.prompt(question, default=default, show_default=bool(default))
        try:
            return read(typed.strip())
        except (InputError, ValueError) as error:
            print_error(f"{error}")
