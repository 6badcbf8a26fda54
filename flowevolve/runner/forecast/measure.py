"""What is measured before a run: lengths of an earlier run's answers, and how long the first program takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from flowevolve._util.errors import InputError
from flowevolve.config.roles import ResolvedRole, model_names
from flowevolve.core.calls import HELD_OUT
from flowevolve.core.model import Message
from flowevolve.core.task import Task
from flowevolve.journal.reading import RecordedRun
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.llm import EMBEDDING
from flowevolve.sim.lengths import MeasuredLengths
from flowevolve.sim.scores import SeedRun
from flowevolve.sim.service_model import count_tokens

LEAST_ANSWERS = 5
"""The fewest answers from which something is known of their lengths."""
MOST_ANSWERS = 2000
"""The most answers that are kept for each role and stage."""
MOST_CASES = 5
"""The most cases that are run to see how long a program takes."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """How long the answers of a recorded run were, and which task and models they are from."""

    lengths: MeasuredLengths
    task: str | None
    models: Mapping[str, Collection[str]]
    """The models that answered, by role."""

    def unlike(self, task: Task, roles: Mapping[str, ResolvedRole]) -> Iterator[str]:
        """How it differs from a run to come, in words."""
        if self.task not in (None, task.name):
            yield f"that run is of task {self.task!r}, but this one is of task {task.name!r}"
        for name, role in roles.items():
            there, here = self.models.get(name, ()), model_names([role])
            if name == EMBEDDING:
                continue
            if not there:
                yield f"there are no answers of {name}; they are taken to be like those of the others"
            elif not set(here) & set(there):
                yield f"the answers of {name} there are of {_listed(there)}, and here of {_listed(here)}"


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, names))


def read_earlier(directory: Path) -> EarlierRun:
    """Read the lengths of a recorded run's answers.

    Raises:
        InputError: if it is no run directory, or has too few answers.
    """
    models: defaultdict[str, dict[str, None]] = defaultdict(dict)
    by_work: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    hidden: defaultdict[str, list[int]] = defaultdict(list)
    counted = estimated = answers = 0
    with RecordedRun(directory) as recorded:
        start = recorded.start
        for call in recorded.calls():
            if call.usage is None or call.error is not None or call.cached or call.stage == HELD_OUT:
                continue
            if not call.usage.completion_tokens:  # an embedding
                continue
            answers += 1
            models[call.role][call.model] = None
            if len(of_work := by_work[call.role, call.stage]) < MOST_ANSWERS:
                of_work.append(call.usage.completion_tokens)
                visible = 0 if call.reply is None else count_tokens(call.reply)
                hidden[call.role].append(max(0, call.usage.completion_tokens - visible))
            if call.messages is not None:
                counted += call.usage.prompt_tokens
                estimated += _estimated(call.messages)
    if answers < LEAST_ANSWERS:
        raise InputError(
            f"--lengths: {directory} has {answers} answers, but it takes {LEAST_ANSWERS} to know how long they are; "
            "name a longer run"
        )
    ratio = counted / estimated if estimated else 1.0
    lengths = MeasuredLengths(dict(by_work), dict(hidden), ratio)
    return EarlierRun(lengths, None if start is None else start.task, models)


def _estimated(messages: Sequence[Message]) -> int:
    return count_tokens("\n".join(message.content for message in messages))


async def run_seed(task: ProgramTask) -> SeedRun:
    """Run the program that evolution starts from on some of its cases, one after the other."""

    async def ask(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        raise InputError(f"task {task.name!r} asks a model to score a program, so it can't be planned")

    scores, seconds = list[float](), list[float]()
    async with task:
        await task.find_trust()
        for example in task.data.val[:MOST_CASES]:
            began = time.perf_counter()
            rollout = await task.rollout(task.seed(), example, ask)
            seconds.append(time.perf_counter() - began)
            scores.append(rollout.score.value)
    return SeedRun(fmean(scores), median(seconds))
