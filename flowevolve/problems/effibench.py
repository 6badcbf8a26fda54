"""Problems of EffiBench-X, read from a file of its rows."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.problems.efficiency import EfficiencyProblem, Procedure, Trial, rules
from flowevolve.problems.rows import Row, read_rows
from flowevolve.programs.evaluator import read_text

FRAME = '''\
import sys


def read_input() -> list[str]:
    """The lines of the test."""
    return sys.stdin.read().splitlines()


def solve(lines: list[str]) -> str:
    """The answer."""
    return ""


def main() -> None:
    print(solve(read_input()))


if __name__ == "__main__":
    main()
'''
"""The program that evolution starts from if none is given. It fails all tests."""


class TrialRow(Row):
    input: str
    output: str


class EffiBenchRow(Row):
    """A problem, with the fields of the data set. Its own limits are ignored, as CSE sets the same for all problems."""

    id: str = Field(coerce_numbers_to_str=True)
    title: str
    description: str
    type: str
    tests: tuple[TrialRow, ...] = Field(min_length=1)


def effibench(
    data: Path,
    id: str | int | None = None,  # noqa: A002 - the setting's name
    row: int | None = None,
    program: Path | None = None,
    reference: Path | None = None,
    tests: int | None = None,
    timeout: float = 10.0,
    memory_mb: int = 1024,
    runs: int = 5,
    together: int | None = None,
) -> EfficiencyProblem:
    """Make a problem of one row of ``data``: the one with this ``id``, or the one with number ``row``, by default 1.

    ``program`` is the file that evolution starts from. ``reference`` is the file whose figures others are divided by;
    it is the program unless it is given. Only the first ``tests`` of the row are used, if that is given. The other
    settings are those of `Procedure`.

    Raises:
        InputError: if there is no such row or file, or the row's programs read no standard input.
    """
    chosen = _chosen(read_rows(data, EffiBenchRow), data, id, row)
    if chosen.type != "io":
        raise InputError(f"{data}: problem {chosen.id!r} is of type {chosen.type!r}; those of type 'io' can be run")
    if tests is not None and tests < 1:
        raise InputError(f"task.tests: must be above 0 (got {tests})")
    procedure = Procedure(timeout, memory_mb, runs, together)
    started = None if program is None else read_text(program)
    trials = [Trial(each.input, each.output) for each in chosen.tests[:tests]]
    return EfficiencyProblem(
        name=f"effibench_{chosen.id}",
        statement=f"{chosen.title}\n\n{chosen.description.strip()}\n\n{rules(len(trials), procedure)}",
        source=started or FRAME,
        tests=trials,
        reference=started if reference is None else read_text(reference),
        procedure=procedure,
    )


def _chosen(rows: list[EffiBenchRow], data: Path, name: str | int | None, number: int | None) -> EffiBenchRow:
    if name is not None and number is not None:
        raise InputError("task: give id or row, not both")
    if name is None:
        number = 1 if number is None else number
        if not 1 <= number <= len(rows):
            raise InputError(f"{data}: there is no row {number}; there are {len(rows)}, and the first is 1")
        return rows[number - 1]
    for each in rows:
        if each.id == str(name):
            return each
    raise InputError(f"{data}: no problem has id {str(name)!r}; {did_you_mean(str(name), [each.id for each in rows])}")
