"""A prompt, some rows and a metric as a task."""

from __future__ import annotations

import inspect
import random
import reprlib
import traceback
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from flowevolve._util.clock import in_thread
from flowevolve._util.digests import code_digest, text_digest
from flowevolve._util.errors import FlowevolveError, InputError, TaskFailedError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.rows import GivenRow, Rows, Scalar, given_rows, plain_row
from flowevolve.tasks.template import Template

Judged = bool | float | tuple[float, str] | Score
Metric = Callable[[GivenRow, str], Judged | Awaitable[Judged]]
"""Scores the output for a row: from 0 to 1, and perhaps with feedback in words."""
Ask = Callable[[str, str], Awaitable[str]]
"""Sends a component's text and an input to the model, and returns the answer: ``await ask("component", "input")``."""
Program = Callable[[GivenRow, Ask], Awaitable[str]]
"""Several calls of a model that make one output of a row."""
OnError = Literal["stop", "count"]

Placed = tuple[str, GivenRow]
"""A row, and in words where the user has it: ``train row 5``."""

COMPONENT = "prompt"
ANSWERS = frozenset(
    {"answer", "answers", "label", "labels", "target", "targets", "expected", "gold", "output", "reference", "solution"}
)
"""Columns of these names, in whatever case, are taken for answers where nothing says what the model is to be shown."""
MOST_SPLIT_OFF = 100
"""The most rows that are split off for validation."""


class MetricTask:
    """Evolves a prompt, or several by name, so that a metric rises.

    Without ``val``, half of ``train`` is split off for validation, at most `MOST_SPLIT_OFF` rows. ``input`` is a
    template over the columns of a row (`flowevolve.tasks.template.Template`), such as ``"{question}"``, by default the
    one column that is no answer; or ``program`` calls the model itself. With ``on_error`` ``"count"`` a row on which
    the metric fails has the score 0; else the run ends.

    Raises:
        InputError: saying what is wrong with the arguments, and how to mend it.
    """

    name = "prompt"

    def __init__(
        self,
        prompt: str | Path | Mapping[str, str],
        train: Rows,
        metric: Metric,
        *,
        val: Rows | None = None,
        test: Rows | None = None,
        input: str | None = None,  # noqa: A002 - the word that everybody uses
        program: Program | None = None,
        on_error: OnError = "stop",
        seed: int = 0,
    ) -> None:
        self._prompt = _components(prompt)
        self._metric, self._program = metric, program
        _check_metric(metric)
        if on_error not in ("stop", "count"):
            raise InputError(f"on_error: is {on_error!r}; it is 'stop' or 'count'")
        self._on_error = on_error
        self._rows: dict[str, GivenRow] = {}
        self._places: dict[str, str] = {}
        """Where the user has each row, by its example's id, which numbers the rows of a split."""
        splits = {"train": _placed(train, "train")}
        if val is None:
            splits |= _split(splits["train"], seed)
        else:
            splits["val"] = _placed(val, "val")
        if test is not None:
            splits["test"] = _placed(test, "test")
        self.data = Dataset(**{split: self._examples(split, rows) for split, rows in splits.items()})
        self._warn_of_blank_answers()
        self._input = None if program is not None else _template(input, list(splits["train"][0][1]))
        if program is not None:
            _check_program(program, input)
        self._check_columns()
        if program is None and len(self._prompt) > 1:
            raise InputError(
                f"prompt: has {len(self._prompt)} components, and without a program there is one call; give "
                "program=, an async function that says which of them each call uses"
            )

    def seed(self) -> Artifact:
        return Artifact(self._prompt)

    def digests(self) -> Mapping[str, str]:
        """Of the input and of the functions that were given, so that a run that goes on can tell what has changed."""
        functions = {"metric": self._metric, "program": self._program}
        found = {name: code_digest(each) for name, each in functions.items() if each is not None}
        return {
            "input": text_digest(["" if self._input is None else self._input.text]),
            **{name: digest for name, digest in found.items() if digest is not None},
        }

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        row, calls = self._rows[example.id], list[Call]()

        async def ask(component: str, text: str) -> str:
            if component not in artifact:
                raise InputError(f"program: there is no component {component!r}; there are {', '.join(artifact)}")
            output = await llm([Message("system", artifact[component]), Message("user", str(text))])
            calls.append(Call(component, {"input": str(text)}, output))
            return output

        if self._program is not None:
            output = await self._program(row, ask)
        else:
            assert self._input is not None
            output = await ask(next(iter(artifact)), self._input.filled(example.data))
        if not isinstance(output, str):
            raise InputError(
                f"program: {self._places[example.id]}: returned {_said(output)}; it returns the output, a text"
            )
        return Rollout(example.id, output, await self._score(example, output), tuple(calls))

    async def _score(self, example: Example, output: str) -> Score:
        row = self._rows[example.id]
        try:
            asynchronous = inspect.iscoroutinefunction(self._metric)
            judged = self._metric(row, output) if asynchronous else await in_thread(self._metric, row, output)
            if inspect.isawaitable(judged):
                judged = await judged
        except FlowevolveError:
            raise
        except Exception as error:  # a user's metric may raise anything
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = (
                f"metric: {self._places[example.id]}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            )
            if self._on_error == "count":
                return Score(0.0, said, passed=False, failure=said)
            raise TaskFailedError(
                f"{said}; {_row_said(example)}; on_error='count' scores such rows 0 instead"
            ) from error
        return _as_score(judged, self._places[example.id], example, self._expected(example))

    def _expected(self, example: Example) -> str:
        """What the row has beside the input, in words for feedback."""
        shown = () if self._input is None else self._input.names
        rest = {name: value for name, value in example.data.items() if name not in shown and value is not None}
        return "\n".join(f"{name}: {value}" for name, value in rest.items())

    def _examples(self, split: str, rows: Sequence[Placed]) -> list[Example]:
        examples = [Example(f"{split} row {number}", plain_row(row, place)) for number, (place, row) in enumerate(rows)]
        for example, (place, row) in zip(examples, rows, strict=True):
            self._rows[example.id], self._places[example.id] = row, place
        return examples

    def _warn_of_blank_answers(self) -> None:
        """A metric often takes such a row for solved, as ``"" in output`` is true of any output."""
        rows = list(self.data)
        for name in sorted({name for row in rows for name in row.data if name.lower() in ANSWERS}):
            blank = [row.id for row in rows if _blank(row.data.get(name))]
            if 0 < len(blank) < len(rows):
                such = f"{len(blank)} of {len(rows)} rows (such as {self._places[blank[0]]})"
                said = f"column {name!r} is blank in {such}"
                warnings.warn(f"{said}; see that the metric can do with that", stacklevel=4)

    def _check_columns(self) -> None:
        """Raises: InputError if a row lacks a column of the input, or has nothing but blanks in all of them."""
        names = () if self._input is None else self._input.names
        for example in self.data:
            place = self._places[example.id]
            for name in names:
                if example.data.get(name) is None:
                    raise InputError(
                        f"{place}: has nothing in column {name!r}, which input= names; its columns are "
                        f"{', '.join(example.data)}"
                    )
            if names and not any(str(example.data[name]).strip() for name in names):
                raise InputError(
                    f"{place}: the model would be shown nothing, for all that input= names is empty; "
                    f"{_row_said(example)}; leave it out, or let input= name more columns"
                )


def _blank(value: JSON) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _components(prompt: object) -> Mapping[str, str]:
    if isinstance(prompt, Path):
        try:
            return {COMPONENT: prompt.read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"prompt: {prompt}: can't be read: {error}") from None
    if isinstance(prompt, str):
        return {COMPONENT: prompt}
    if isinstance(prompt, Mapping):
        return Artifact(prompt).components
    raise InputError(
        f"prompt: is {_said(prompt)}; give a text, the Path of a file, or texts by the names of components"
    )


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
        raise InputError(f'input: is {_said(given)}; it is a text with columns in braces, such as "{{question}}"')
    return Template(given, columns)


def _placed(rows: Rows, split: str) -> list[Placed]:
    return [(f"{split} row {number}", row) for number, row in enumerate(given_rows(rows, split))]


def _split(rows: Sequence[Placed], seed: int) -> dict[str, list[Placed]]:
    if len(rows) < 2:
        raise InputError("train: has one row; give at least two, or val= as well")
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    val = sorted(order[: min(MOST_SPLIT_OFF, len(rows) // 2)])
    return {
        "train": [row for number, row in enumerate(rows) if number not in set(val)],
        "val": [rows[number] for number in val],
    }


def _check_metric(metric: object) -> None:
    if inspect.isclass(metric) or not callable(metric):
        raise InputError(f"metric: is {_said(metric)}; give a function of a row and an output that returns a score")
    _check_arity(metric, "metric", "a row and an output")


def _check_program(program: Program, given: str | None) -> None:
    if given is not None:
        raise InputError("input: a program asks the model itself; leave input= out, or program=")
    if not inspect.iscoroutinefunction(program):
        raise InputError(f"program: is {_said(program)}; give an async function: async def program(row, ask): …")
    _check_arity(program, "program", "a row and ask")


def _check_arity(function: Callable[..., object], what: str, takes: str) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise InputError(f"{what}: takes {inspect.signature(function)}; it is called with {takes}") from None
    except ValueError:  # a builtin without a signature
        return


def _as_score(judged: object, place: str, example: Example, expected: str) -> Score:
    """Raises: InputError if a metric's result is no score."""
    if isinstance(judged, Score):
        return judged
    value, feedback = judged if isinstance(judged, tuple) and len(judged) == 2 else (judged, "")
    value = value.item() if isinstance(value, Scalar) else value
    if not isinstance(value, bool | int | float) or not isinstance(feedback, str):
        hint = "; did it forget to return?" if judged is None else ""
        raise InputError(
            f"metric: {place}: returned {_said(judged)}; it returns a bool, a number from 0 to 1, or such a "
            f"number with feedback in words{hint}; {_row_said(example)}"
        )
    if not 0 <= value <= 1:
        raise InputError(f"metric: {place}: returned {value}; scores are from 0 to 1; {_row_said(example)}")
    said = feedback or f"Score: {float(value):g} of 1." + (f"\n{expected}" if expected else "")
    return Score(float(value), said, passed=value == 1)


def _row_said(example: Example) -> str:
    return f"the row is {reprlib.repr(dict(example.data))}"


def _said(value: object) -> str:
    return "a class" if inspect.isclass(value) else f"{value!r:.60} ({type(value).__name__})"
