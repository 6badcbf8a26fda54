"""A prompt, some rows and a metric as a task."""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from flowevolve._util.digests import code_digest, text_digest
from flowevolve._util.errors import FlowevolveError, InputError, reason_of
from flowevolve._util.registry import did_you_mean
from flowevolve._util.tasks import stray_cancellation_is_an_error
from flowevolve._util.user_warnings import warn_user
from flowevolve._util.waits import Wait
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import LLMError, Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout
from flowevolve.tasks.doubts import ANSWERS, warn_of_doubts
from flowevolve.tasks.judging import FunctionErrors, Judge, Metric, OnError, check_arity, row_in_words, value_in_words
from flowevolve.tasks.rows import GivenRow, Rows, RowType, given_rows, plain_row
from flowevolve.tasks.template import Template
from flowevolve.tasks.trial import Trial

Ask = Callable[[str, str], Awaitable[str]]
"""Sends a component's text and an input to the model, and returns the answer: ``await ask("component", "input")``."""
Program = Callable[[RowType, Ask], Awaitable[str]]
"""Makes one output from a row, with any number of calls of the model."""

Placed = tuple[str, GivenRow]
"""In words, where the user has a row (``train row 5``), and the row."""

_TRIAL: ContextVar[Trial | None] = ContextVar("flowevolve_trial", default=None)
"""The trial of the current run, since several runs may share a task."""

COMPONENT = "prompt"
MOST_SPLIT_OFF = 100
"""The most rows that are split off for validation."""

_ADVICE = "if the model's reply is at fault, return it all the same, and let the metric say what is wrong with it"
UNASKED_BEFORE_GIVING_UP = 10
"""If a program has answered this many rows and has never used a component's text, there is nothing to evolve."""


class MetricTask:
    """Evolves a prompt, or several by name, so that a metric rises.

    Without ``val``, half of ``train`` is split off for validation, at most `MOST_SPLIT_OFF` rows. ``input`` is a
    template over the columns of a row (`flowevolve.tasks.template.Template`), such as ``"{question}"``; by default it
    is the one column that is not an answer. Instead of it, ``program`` may call the model itself. If the metric or the
    program fails on a row, the run ends or, with ``on_error`` ``"count"``, the row has the score 0; the run still ends
    if all of the first ten rows fail.

    Raises:
        InputError: saying what is wrong with the arguments, and how to fix it.
    """

    name = "prompt"

    def __init__(
        self,
        prompt: str | Path | Mapping[str, str],
        train: Rows[RowType],
        metric: Metric[RowType],
        *,
        val: Rows[RowType] | None = None,
        test: Rows[RowType] | None = None,
        input: str | None = None,  # noqa: A002 - the word that everybody uses
        program: Program[RowType] | None = None,
        on_error: OnError = "stop",
        seed: int = 0,
    ) -> None:
        self._seed = Artifact(_components(prompt))
        self._judge = Judge(metric, on_error)
        self._program: Program[Any] | None = program
        self._errors = FunctionErrors("program", _ADVICE, on_error)
        self._asked, self._unasked = set[str](), 0
        """The components that the program asked for while the seed was validated, and the rows on which it asked for
        none.
        """
        self._validated: set[str] = set()
        """The examples on which the seed was validated."""
        self._use_checked = False
        self._rows: dict[str, GivenRow] = {}
        self._places: dict[str, str] = {}
        """Where the user has each row, by the id of its example. Ids number the rows of each split."""
        splits = {"train": _placed(train, "train")}
        if val is None:
            splits |= _split(splits["train"], seed)
        else:
            splits["val"] = _placed(val, "val")
        if test is not None:
            splits["test"] = _placed(test, "test")
        self.data = Dataset(**{split: self._examples(split, rows) for split, rows in splits.items()})
        self._validating = {example.id for example in self.data.val}
        self._input = None if program is not None else _template(input, list(splits["train"][0][1]))
        if program is not None:
            _check_program(program, input)
        self._check_columns()
        if program is None and len(self._seed) > 1:
            raise InputError(
                f"prompt has {len(self._seed)} components, but without a program there is only one call; give "
                "program=, an async function that says which of them each call uses"
            )
        warn_of_doubts(self._seed.components, self.data, self._places, val_given=val is not None)

    def seed(self) -> Artifact:
        return self._seed

    def digests(self) -> Mapping[str, str]:
        """Digests of the input and of the user's functions, so that a resumed run can tell what has changed."""
        functions = {"metric": self._judge.metric, "program": self._program}
        found = {name: code_digest(each) for name, each in functions.items() if each is not None}
        return {
            "input": text_digest(["" if self._input is None else self._input.text]),
            **{name: digest for name, digest in found.items() if digest is not None},
        }

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        """The first rollout of a run goes alone, so that a metric that can't be used is found after one answer."""
        trial, work = _TRIAL.get(), partial(self._rollout, artifact, example, llm)
        return await (work() if trial is None else trial.run(work))

    async def __aenter__(self) -> Self:
        """Begin the trial of a run, in the context that all of its work inherits."""
        _TRIAL.set(Trial())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _TRIAL.set(None)

    async def _rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        given, place, calls = self._rows[example.id], self._places[example.id], list[Call]()
        # The user's functions may note something in a row, which may be in use by other rollouts at the same time.
        row = copy(given) if isinstance(given, dict) else given
        of_seed, unanswered = artifact == self._seed, list[FlowevolveError | LLMError]()
        validates_seed = of_seed and example.id in self._validating
        wait = Wait(f"program, {place}")

        async def ask(component: str, text: object = None) -> str:
            try:
                return await answer(component, text)
            except (FlowevolveError, LLMError) as error:
                unanswered.append(error)
                raise

        async def answer(component: str, text: object) -> str:
            if text is None:
                raise InputError(
                    f"program: {place}: ask was given no text, or None; it takes a component and a text, as in "
                    f"{_example_of_ask(artifact, row)}"
                )
            if component not in artifact:
                raise InputError(
                    f"program: there is no component {component!r}; {did_you_mean(component, list(artifact))}"
                )
            _check_awaited(text, f"{place}: ask was given")
            if validates_seed:
                self._asked.add(component)
            with wait.suspended():
                output = await llm([Message("system", artifact[component]), Message("user", str(text))])
            calls.append(Call(component, {"input": str(text)}, output))
            return output

        if self._program is not None:
            if validates_seed:
                self._validated.add(example.id)
            else:
                self._warn_of_unused()
            try:
                async with stray_cancellation_is_an_error():
                    with wait:
                        output = await self._program(row, ask)
            except (FlowevolveError, LLMError):
                raise
            except Exception as error:  # noqa: BLE001 - a user's program may raise anything
                if unanswered:  # not the program's fault; it may have got the error in a group of tasks
                    raise _gravest(unanswered) from None
                score = self._errors.score(error, example, place, of_seed=of_seed)
                return Rollout(example.id, "", score, tuple(calls))
            _check_awaited(output, f"{place}: it returned")
            if validates_seed:
                self._count_asked(calls, artifact, row, place)
        else:
            assert self._input is not None
            output = await ask(next(iter(artifact)), self._input.filled(example.data))
        if not isinstance(output, str):
            raise InputError(
                f"program: {place}: it returned {value_in_words(output)}, but has to return the output, which is a text"
            )
        self._errors.worked()
        expected = self._expected(example)
        score = await self._judge.score(row, output, example=example, place=place, expected=expected, of_seed=of_seed)
        return Rollout(example.id, output, score, tuple(calls))

    def _count_asked(self, calls: Sequence[Call], artifact: Artifact, row: GivenRow, place: str) -> None:
        """Check that a program uses components at all; it may answer some rows without. Only the seed's validation
        counts, with which runs begin.

        Raises:
            InputError: if it has asked for none on any of the first rows.
        """
        self._unasked += not calls
        if not self._asked and self._unasked >= min(UNASKED_BEFORE_GIVING_UP, len(self.data.val)):
            raise InputError(
                f"program: {place}: it returned without asking for any component, as on every row so far, so the "
                f"prompt has no effect on the output; ask for one of {', '.join(artifact)}, as in "
                f"{_example_of_ask(artifact, row)}"
            )

    def _warn_of_unused(self) -> None:
        """Warn once, after the seed's validation, of components that the program has never asked for."""
        # In a resumed run the seed was validated before.
        if self._use_checked or self._validated != self._validating:
            return
        self._use_checked = True
        unused = [component for component in self._seed if component not in self._asked]
        if unused:
            warn_user(
                f"the program never asked for {', '.join(map(repr, unused))} while the first prompt was validated, so "
                "changing that has no effect; ask for it in the program, or leave it out of prompt"
            )

    def _expected(self, example: Example) -> str:
        """The columns of the row that are not in the input, in words for feedback."""
        shown = () if self._input is None else self._input.names
        rest = {name: value for name, value in example.data.items() if name not in shown and value is not None}
        return "\n".join(f"{name}: {value}" for name, value in rest.items())

    def _examples(self, split: str, rows: Sequence[Placed]) -> list[Example]:
        examples = [Example(f"{split} row {number}", plain_row(row, place)) for number, (place, row) in enumerate(rows)]
        for example, (place, row) in zip(examples, rows, strict=True):
            self._rows[example.id], self._places[example.id] = row, place
        return examples

    def _check_columns(self) -> None:
        """Raises: InputError if a row lacks a column of the input, or has nothing but blanks in all of them."""
        names = () if self._input is None else self._input.names
        for example in self.data:
            place = self._places[example.id]
            for name in names:
                if example.data.get(name) is None:
                    raise InputError(
                        f"{place} has nothing in column {name!r}, which input= names; its columns are "
                        f"{', '.join(example.data)}"
                    )
            if names and not any(str(example.data[name]).strip() for name in names):
                raise InputError(
                    f"{place}: the model would be shown nothing, as all columns that input= names are empty; "
                    f"{row_in_words(example.data)}; leave this row out, or let input= name more columns"
                )


def _components(prompt: object) -> Mapping[str, str]:
    if isinstance(prompt, Path):
        try:
            return {COMPONENT: prompt.read_text(encoding="utf-8-sig")}
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"prompt: {prompt} can't be read: {reason_of(error)}") from None
    if isinstance(prompt, str):
        if _is_file(prompt):
            raise InputError(
                f"prompt: {prompt!r} is the name of a file here, but would be sent as the prompt itself; give "
                f"pathlib.Path({prompt!r}) to have the file read"
            )
        return {COMPONENT: prompt}
    if isinstance(prompt, Mapping):
        try:
            return Artifact(prompt).components
        except InputError as error:
            raise InputError(f"prompt: {error}") from None
    raise InputError(
        f"prompt is {value_in_words(prompt)}; give a text, the Path of a file, or texts by the names of components"
    )


def _is_file(text: str) -> bool:
    """Whether a text that might be meant as a path is that of a file."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or not one at all
        return False


def _template(given: str | None, columns: Sequence[str]) -> Template:
    if given is None:
        candidates = [name for name in columns if name.lower() not in ANSWERS]
        if len(candidates) != 1:
            raise InputError(
                f'input: say what the model is shown of a row, such as input="{{{columns[0]}}}"; the columns are '
                f"{', '.join(columns)}"
            )
        return Template(f"{{{candidates[0]}}}", columns)
    if not isinstance(given, str):
        raise InputError(
            f'input is {value_in_words(given)}; give a text with columns in braces, such as "{{question}}"'
        )
    return Template(given, columns)


def _placed(rows: Rows[Any], split: str) -> list[Placed]:
    return [(f"{split} row {number}", row) for number, row in enumerate(given_rows(rows, split))]


def _split(rows: Sequence[Placed], seed: int) -> dict[str, list[Placed]]:
    if len(rows) < 2:
        raise InputError("train has only one row; give at least two, or give val= as well")
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    val = sorted(order[: min(MOST_SPLIT_OFF, len(rows) // 2)])
    return {
        "train": [row for number, row in enumerate(rows) if number not in set(val)],
        "val": [rows[number] for number in val],
    }


def _check_program(program: Program[Any], given: str | None) -> None:
    if given is not None:
        raise InputError("input: a program asks the model itself; leave out input= or program=")
    if not inspect.iscoroutinefunction(program):
        what = f"{program.__name__}, which is not async" if inspect.isfunction(program) else value_in_words(program)
        raise InputError(f"program is {what}; give an async function: async def program(row, ask): …")
    check_arity(program, "program", "a row and ask")


def _check_awaited(value: object, where: str) -> None:
    """Raises: InputError if the value is what `ask` returns before it is awaited."""
    if not inspect.isawaitable(value):
        return
    if inspect.iscoroutine(value):
        value.close()  # otherwise Python warns that it was never awaited
    raise InputError(
        f"program: {where} what ask returns without await; write await before each call, as in "
        'return await ask("component", text)'
    )


def _gravest(errors: Sequence[FlowevolveError | LLMError]) -> FlowevolveError | LLMError:
    """The first error that ends a run or, if none does, the first one."""
    return next((error for error in errors if isinstance(error, FlowevolveError)), errors[0])


def _example_of_ask(artifact: Artifact, row: GivenRow) -> str:
    shown = next((name for name in row if name.lower() not in ANSWERS), next(iter(row)))
    return f'await ask("{next(iter(artifact))}", row["{shown}"])'
