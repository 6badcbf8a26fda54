"""Problems of EffiBench-X, read from a file of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import AliasChoices, Field, field_validator

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.problems.efficiency import SUBMISSION, EfficiencyProblem, Procedure, Trial, rules
from flowevolve.problems.languages import Language, LanguageName, usable
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs.evaluator import read_text


class TrialRow(Row):
    input: str
    output: str


class Solution(Row):
    code: str


class EffiBenchRow(Row):
    """A problem, with the fields of the data set. Its own limits are ignored; CSE sets the same for all problems."""

    id: str = Field(coerce_numbers_to_str=True)
    title: str
    description: str
    type: str
    tests: tuple[TrialRow, ...] = Field(min_length=1, validation_alias=AliasChoices("tests", "generated_tests"))
    test_runners: Mapping[str, str] = Field(default_factory=dict)
    """By language, for problems of type ``functional``: a program that calls the one that is evolved."""
    starter_code: Mapping[str, str] = Field(default_factory=dict)
    solutions: Mapping[str, Solution | str] = Field(default_factory=dict)
    """By language: a program written by people, with which evolved programs are compared."""

    @field_validator("tests", "test_runners", "starter_code", "solutions", mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        """Some copies of the data set have these fields as JSON."""
        return json.loads(value) if isinstance(value, str) else {} if value is None else value

    def solution(self, language: Language) -> str | None:
        found = self.solutions.get(language.key)
        return found.code if isinstance(found, Solution) else found


def effibench(
    data: Path,
    id: str | int | None = None,  # noqa: A002 - the setting's name
    row: int | None = None,
    language: LanguageName = "python",
    program: Path | None = None,
    reference: Path | None = None,
    tests: int | None = None,
    timeout: float = 10.0,
    memory_mb: int = 1024,
    runs: int = 5,
    together: int | None = None,
) -> EfficiencyProblem:
    """Make a problem from one row of ``data``: the one with this ``id``, or the one with number ``row``, by default 1.

    ``program`` is the file that evolution starts from. ``reference`` is the file of the program that others are
    compared with; by default, this is the row's solution in the language or, without one, ``program``. If ``tests`` is
    given, only this many of the row's tests are used, from the first on. The other settings are those of `Procedure`.

    Raises:
        InputError: if there is no such row or file, or the row can't be run in the language.
    """
    chosen = _chosen(read_rows(data, EffiBenchRow), data, id, row)
    spoken = usable(language)
    runner = _runner(chosen, spoken, data)
    if tests is not None:
        check_least(1, tests=tests)
    procedure = Procedure(timeout, memory_mb, runs, together)
    started = None if program is None else read_text(program)
    trials = [Trial(each.input, each.output) for each in chosen.tests[:tests]]
    starter = chosen.starter_code.get(spoken.key, "")
    return EfficiencyProblem(
        name=f"effibench_{chosen.id}",
        statement=f"{chosen.title}\n\n{chosen.description.strip()}\n\n{_called(runner, starter)}"
        f"{rules(len(trials), procedure, spoken)}",
        source=started or (spoken.frame if runner is None else starter),
        tests=trials,
        reference=read_text(reference) if reference is not None else chosen.solution(spoken) or started,
        procedure=procedure,
        language=spoken,
        runner=runner,
    )


def _runner(row: EffiBenchRow, language: Language, data: Path) -> str | None:
    """The program that calls the evolved one; None if the evolved one is complete.

    Raises:
        InputError: if the row needs one and has none, or is of a type that can't be run.
    """
    if row.type == "io":
        return None
    if row.type != "functional":
        raise InputError(
            f"{data}: problem {row.id!r} is of type {row.type!r}; only those of type 'io' or 'functional' can be run"
        )
    runner = row.test_runners.get(language.key, "")
    if SUBMISSION not in runner:
        raise InputError(
            f"{data}: problem {row.id!r} is of type 'functional', which needs test_runners.{language.key} with "
            f"{SUBMISSION!r} in it; the row has none"
        )
    return runner


def _called(runner: str | None, starter: str) -> str:
    """What a statement says about programs that a runner calls; empty without a runner."""
    if runner is None:
        return ""
    shape = f" It must have the form of\n\n{starter.strip()}\n" if starter else ""
    return (
        "Reading the test and printing the answer is done by a program around yours, which calls it; write what is "
        f"called, and nothing that reads or prints.{shape}\n"
    )


def _chosen(rows: list[EffiBenchRow], data: Path, name: str | int | None, number: int | None) -> EffiBenchRow:
    if name is not None and number is not None:
        raise InputError("task.id and task.row are both given; give only one of them")
    if name is None:
        number = 1 if number is None else number
        if not 1 <= number <= len(rows):
            raise InputError(f"{data}: there is no row {number}; give one from 1 to {len(rows)}")
        return rows[number - 1]
    for each in rows:
        if each.id == str(name):
            return each
    raise InputError(f"{data}: no problem has id {str(name)!r}; {did_you_mean(str(name), [each.id for each in rows])}")
