"""Writes the part of docs/reference/cli.md that lists commands and their options, from the commands themselves.

python tools/cli_reference.py
"""

from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from flowevolve.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BEGIN, END = "<!-- made by tools/cli_reference.py -->", "<!-- to here -->"


def commands() -> str:
    """The list of commands, as Markdown."""
    return "\n".join(_listed(typer.main.get_command(app), "flowevolve"))


def written(page: str) -> str:
    """The page with the list as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{commands()}\n{END}{after}"


def _listed(command: TyperCommand | TyperGroup, name: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for each, found in inner.items():
            yield from _listed(found, f"{name} {each}")
        return
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    yield f"### `{' '.join([name, *map(_argument, arguments)])}`"
    yield ""
    yield command.help
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    for each in arguments:
        yield f"| `{each.metavar or each.name.upper()}` | {_cell(each.help)}{_default(each)} |"
    for each in options:
        yield f"| `{_option(each)}` | {_cell(each.help)}{_default(each)} |"
    yield ""


def _argument(argument: TyperArgument) -> str:
    shown = argument.metavar or argument.name.upper()
    return shown if argument.required or shown.startswith(("[", "--")) else f"[{shown}]"


def _option(option: TyperOption) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _default(parameter: TyperArgument | TyperOption) -> str:
    shown = parameter.default
    if parameter.required or shown is None or isinstance(shown, bool) or shown == Path():
        return ""
    return f" (by default `{shown}`)"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
