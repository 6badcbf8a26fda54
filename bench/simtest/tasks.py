"""What the runs of cases work on: three small tasks, with evaluations that fail in a share of the cases."""

from __future__ import annotations

import ast
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import Self

import anyio

from bench._lib.house_style import make_rows
from bench.simtest.case import FaultKind
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import validated
from flowevolve.algorithms.meta_harness import driver
from flowevolve.algorithms.meta_harness.algorithm import MetaHarness
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Runner
from flowevolve.config.run import Config
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score, Task
from flowevolve.programs.problem import PROGRAM, Case as Instance, Verdict
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.assemble import make_algorithm, make_tuning
from flowevolve.sandbox import Outcome, Sandbox
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.labelling import HarnessTask, labelled_set

SECONDS = 1.0
"""Seconds that the evaluation of a program on one case takes."""
SLOW_SECONDS = 90.0
SOURCE = """\
import math

# EVOLVE-BLOCK-START
POINT = [9.0, -7.5, 4.0, 20.0]
SCALE = 3.0


def scaled(x):
    if x > 100.0:
        return 100.0
    return SCALE * x


def guess(shift):
    point = []
    for x in POINT:
        point.append(scaled(x))
    return [math.floor(8 * x) / 8 + shift for x in point]
# EVOLVE-BLOCK-END
"""
_ROWS = [("itchy red skin", "rash"), ("skin rash spreads", "rash"), ("cough and cold", "flu"), ("fever, cough", "flu")]


class Mishaps:
    """Draws what goes wrong in the evaluation of an artifact on an example, by both and by how often it was tried."""

    def __init__(self, faults: Mapping[FaultKind, float], seed: int) -> None:
        self._faults = faults
        self._seed = seed
        self._tries: dict[str, int] = {}

    async def fails(self, what: str) -> bool:
        """Whether the evaluation fails. Some evaluations take long.

        Raises:
            ValueError: if it breaks.
        """
        tried = self._tries[what] = self._tries.get(what, 0) + 1
        place = fraction(f"{self._seed}\x1f{tried}\x1f{what}")
        if place < self._faults.get("evaluation raises", 0.0):
            raise ValueError("the evaluation broke")
        if 1 - place < self._faults.get("evaluation is slow", 0.0):
            await anyio.sleep(SLOW_SECONDS)
        return abs(place - 0.5) < self._faults.get("evaluation fails", 0.0) / 2


class Prompts:
    """The task ``house_style`` on a few rows."""

    def __init__(self, mishaps: Mishaps) -> None:
        self._task = _house_style()
        self._mishaps = mishaps
        self.name = self._task.name
        self.data: Dataset = self._task.data

    def seed(self) -> Artifact:
        return self._task.seed()

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        failed = await self._mishaps.fails(f"{artifact.id} {example.id}")
        rollout = await self._task.rollout(artifact, example, llm)
        return replace(rollout, score=replace(rollout.score, value=float("nan"))) if failed else rollout


class _Guess:
    """A problem whose scores are drawn from the program's text. Programs are never run."""

    name = "guess"
    statement = "Write guess(shift), which returns a list of four numbers. The score grows as they get near."
    worst = -1.0
    cases: Sequence[Instance] = (Instance("one"), Instance("two"))

    def seed(self) -> Artifact:
        return Artifact({PROGRAM: SOURCE}, kind="program")

    async def judge(self, artifact: Artifact, case: Instance, sandbox: Sandbox) -> Verdict:
        raise NotImplementedError("programs are not run")


class Programs(ProgramTask):
    """Programs that are scored by their text, without a sandbox."""

    def __init__(self, mishaps: Mishaps) -> None:
        super().__init__(_Guess())
        self._mishaps = mishaps

    async def __aenter__(self) -> Self:
        return self

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        failed = await self._mishaps.fails(f"{artifact.id} {example.id}")
        await anyio.sleep(SECONDS)
        seconds = {"seconds": fraction(f"seconds {artifact.id}")}
        if failed or not _compiles(artifact[PROGRAM]):
            score = Score(self.worst, "It failed.", passed=False, failure="error: it failed", metrics=seconds)
        else:
            value = fraction(f"{artifact.id} {example.id}")
            score = Score(value, f"It is {value:.3f}.", passed=False, metrics=seconds)
        return Rollout(example.id, "", score)


class Harnesses:
    """Runs the harnesses of the simulated coder in this process, because that coder is ours."""

    def __init__(self, mishaps: Mishaps) -> None:
        self._mishaps = mishaps

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Runner]:
        yield self._run

    async def _run(self, source: str, call: str, arguments: Mapping[str, JSON], seconds: float) -> Outcome:
        harness = str(arguments["harness"])
        if "while True" in harness:
            await anyio.sleep(seconds)
            return Outcome("timeout", seconds, seconds, 1.0, "", "")
        try:
            failed = await self._mishaps.fails(f"{call} {harness} {len(str(arguments))}")
        except ValueError:  # a sandbox would report it like this
            return Outcome("killed", 0.0, 0.0, 1.0, "", "")
        await anyio.sleep(SECONDS)
        if failed:
            return Outcome("error", SECONDS, SECONDS, 1.0, "", "it failed")
        state = random.getstate()
        try:
            result = driver.check(**arguments) if call == "check" else driver.run(**arguments)  # type: ignore[arg-type]
        finally:
            random.setstate(state)
        return Outcome("ok", SECONDS, SECONDS, 1.0, "", "", result)


def make_case_task(algorithm: str, mishaps: Mishaps, *, prompts: bool) -> Task:
    """What an algorithm works on. If it can be either prompts or programs, ``prompts`` says which."""
    if algorithm == "meta_harness":
        return _harness_task()
    return Prompts(mishaps) if algorithm in ("gepa", "combee", "ace") or prompts else Programs(mishaps)


def make_case_algorithm(config: Config, task: Task, mishaps: Mishaps) -> Algorithm:
    """The algorithm of a configuration. Meta-Harness gets harnesses that run without a sandbox."""
    if config.algorithm.name != "meta_harness":
        return make_algorithm(config, task)
    settings = validated(MetaHarnessConfig, config.algorithm.settings, "algorithm")
    return MetaHarness(task, settings, make_tuning(config), evaluator=Harnesses(mishaps))


def changed(seed: Artifact, number: int) -> Artifact:
    """An artifact from outside, a different one for each number."""
    mark = f"\n# {number}\n" if seed.kind == "program" else f" Mind point {number}."
    return Artifact({name: text + mark for name, text in seed.items()}, seed.kind)


def fraction(text: str) -> float:
    """A number in [0, 1) that is drawn from a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest(), "big") / 2**48


@cache
def _house_style() -> Task:
    return house_style_task(make_rows(rules=5, per_example=2, overlap=0.3, rows=15, seed=1))


@cache
def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


@cache
def _harness_task() -> HarnessTask:
    rows = [
        Example(f"{number}", {"question": text, "answer": label}) for number, (text, label) in enumerate(_ROWS * 3, 1)
    ]
    data = Dataset(train=rows[:6], val=rows[6:10], test=rows[10:])
    return HarnessTask([labelled_set("symptoms", data, ("question",), "answer")])
