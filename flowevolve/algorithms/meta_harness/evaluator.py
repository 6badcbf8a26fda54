"""Scoring a harness on one data set: its code runs in the sandbox, its LLM calls are made here.

The labels to predict never enter the sandbox, and a report can't ask for more than a run of the driver would. So a
harness can forge only its answers and the time at which it asks, since its process has the texts while it learns.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol

import anyio
from pydantic import TypeAdapter, ValidationError

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.algorithms.meta_harness import driver
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.core.context import StageContext
from flowevolve.core.model import Message
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.core.task import Example
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pool import Sandbox
from flowevolve.tasks.labelling import COMPONENT, LabelledSet
from flowevolve.tasks.scoring import stated_label

_DRIVER = Path(driver.__file__).read_text(encoding="utf-8")
_Phase = Literal["learning", "predicting"]
_ERRORS = 1500
"""At most this many characters from the end of a program's error output are kept."""


class Runner(Protocol):
    """Runs a function of an untrusted program, and kills the program and all that it started when time is up."""

    async def __call__(self, source: str, call: str, arguments: Mapping[str, JSON], seconds: float) -> Outcome: ...


class Evaluator(Protocol):
    """Provides runners. To run programs elsewhere than in the sandbox, plug in another evaluator."""

    def open(self) -> AbstractAsyncContextManager[Runner]: ...


class SandboxEvaluator:
    """Runs programs in `flowevolve.sandbox`: one interpreter per evaluation, and as many at a time as the settings
    allow.

    Raises:
        InputError: if the settings ask for another place than this machine.
    """

    def __init__(self, settings: SandboxSettings) -> None:
        if settings.on != "here":
            raise InputError(
                f"sandbox.on: {settings.on!r} is only for programs, and harnesses run on this machine; leave it out"
            )
        self._settings = settings.model_copy(update={"concurrency": 1})
        self._slots = anyio.Semaphore(settings.concurrency)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Runner]:
        async with Sandbox(self._settings) as sandbox:

            async def run(source: str, call: str, arguments: Mapping[str, JSON], seconds: float) -> Outcome:
                async with self._slots:
                    return await sandbox.run(source, call=call, arguments=arguments, timeout=seconds)

            yield run


class HarnessError(Exception):
    """A harness can't be used. The message says why, for whoever wrote it."""


@payload("meta_harness.Prediction")
@dataclass(frozen=True, slots=True)
class Prediction:
    asked: tuple[str, ...] = ()
    answer: str | None = None
    problem: str | None = None


@payload("meta_harness.Ran")
@dataclass(frozen=True, slots=True)
class Ran:
    """The report of one run of the driver. A harness could forge it, so it is plain data and is checked."""

    problem: str | None = None
    learning: tuple[str, ...] = ()
    predictions: tuple[Prediction, ...] = ()


_RAN = TypeAdapter(Ran)


@dataclass(frozen=True, slots=True)
class SetScores:
    """How a harness did on one data set: scores by example id (``set/row``), its mistakes, and how long its prompts
    were.
    """

    scores: Mapping[str, float]
    mistakes: tuple[Mapping[str, JSON], ...]
    context_chars: float
    """The characters of all prompts answered while predicting, divided by the number of predictions."""


async def check(evaluator: Evaluator, harness: str, labels: Sequence[str], seconds: float) -> str | None:
    """Why a harness can't be run; None if it can."""
    async with evaluator.open() as run:
        outcome = await run(_DRIVER, "check", {"harness": harness, "labels": list(labels)}, seconds)
    if outcome.status != "ok":
        return _last_words(outcome)
    if not isinstance(outcome.result, dict) or "problem" not in outcome.result:
        return "the check ended without a report: a harness must not end or replace its process"
    problem = outcome.result["problem"]
    return None if problem is None else str(problem)


class Benchmark:
    """Scores one candidate on one data set."""

    def __init__(
        self, candidate: Candidate, each: LabelledSet, config: MetaHarnessConfig, rows: Sequence[Example], key: str
    ) -> None:
        self._candidate = candidate
        self._set = each
        self._config = config
        self._rows = rows
        self._key = key
        self._replies: dict[str, str] = {}
        self._prompt_chars = 0
        calls = config.calls_per_text
        self._rounds_left: dict[_Phase, int] = {"learning": calls * len(each.data.train), "predicting": calls}

    async def score(self, evaluator: Evaluator, context: StageContext) -> SetScores:
        """Run the harness, answer its prompts and run it again, until it asks nothing more.

        Raises:
            HarnessError: if the harness fails as a whole.
            LLMError: if a call fails for good.
        """
        async with evaluator.open() as run:
            number = 0
            ran = await self._run(run, context, number)
            while asked := self._asked(ran):
                await self._answer(asked, context, "learning" if ran.learning else "predicting")
                number += 1
                ran = await self._run(run, context, number)
        return self._scored(ran)

    async def _run(self, run: Runner, context: StageContext, number: int) -> Ran:
        async def make() -> Ran:
            outcome = await run(_DRIVER, "run", self._arguments(), self._config.run_seconds)
            return self._read(outcome)

        ran = await context.keep("harness.ran", make, key=f"{self._key}/{number}")
        if ran.problem is not None and not ran.learning:
            raise HarnessError(ran.problem)
        return ran

    def _arguments(self) -> dict[str, JSON]:
        each, size = self._set, self._config.batch
        seen: list[JSON] = [{"text": each.text(row), "label": each.label(row)} for row in each.data.train]
        return {
            "harness": self._candidate.artifact[COMPONENT],
            "labels": list(each.labels),
            "batches": [seen[start : start + size] for start in range(0, len(seen), size)],
            "texts": [each.text(row) for row in self._rows],
            "replies": dict(self._replies),
        }

    def _read(self, outcome: Outcome) -> Ran:
        if outcome.status != "ok":
            return Ran(problem=_last_words(outcome))
        try:
            ran = _RAN.validate_python(outcome.result)
        except ValidationError:
            return Ran(problem="the run ended without a report: a harness must not end or replace its process")
        if len(ran.learning) > 1 or (ran.learning and ran.predictions):
            return Ran(problem="the report asks more than one run can: a harness must not write it")
        if not ran.learning and ran.problem is None and len(ran.predictions) != len(self._rows):
            return Ran(problem=f"{len(ran.predictions)} predictions for {len(self._rows)} texts")
        return ran

    def _asked(self, ran: Ran) -> list[str]:
        """The prompts to answer, each once, in order."""
        prompts = [*ran.learning, *(prompt for prediction in ran.predictions for prompt in prediction.asked[:1])]
        asked = list(dict.fromkeys(prompts))
        if any(prompt in self._replies for prompt in asked):
            raise HarnessError("the harness asked again what had been answered")
        if any(len(prompt) > self._config.prompt_chars for prompt in asked):
            raise HarnessError(f"a prompt is longer than {self._config.prompt_chars} characters")
        return asked

    async def _answer(self, asked: Sequence[str], context: StageContext, what: _Phase) -> None:
        if not self._rounds_left[what]:
            raise HarnessError(f"more LLM calls one after another for {what} than it may make")
        self._rounds_left[what] -= 1
        jobs = [partial(self._ask, prompt, context) for prompt in asked]
        self._replies.update(zip(asked, await run_all(jobs), strict=True))
        if what == "predicting":
            self._prompt_chars += sum(map(len, asked))

    async def _ask(self, prompt: str, context: StageContext) -> str:
        key = f"{self._key}/{sha256(prompt.encode()).hexdigest()[:16]}"
        return await context.chat_model(key, self._candidate.id)([Message("user", prompt)])

    def _scored(self, ran: Ran) -> SetScores:
        scores: dict[str, float] = {}
        mistakes: list[Mapping[str, JSON]] = []
        for row, prediction in zip(self._rows, ran.predictions, strict=True):
            right = self._set.label(row)
            said = None if prediction.answer is None else stated_label(prediction.answer, self._set.labels)
            scores[f"{self._set.name}/{row.id}"] = float(said == right)
            if said != right:
                found = prediction.problem or prediction.answer or ""
                mistakes.append({"text": self._set.text(row), "answer": found, "label": right})
        return SetScores(scores, tuple(mistakes), self._prompt_chars / len(self._rows))


def _last_words(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.stderr[-_ERRORS:].strip()}"
