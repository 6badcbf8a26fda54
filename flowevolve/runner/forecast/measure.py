"""What is measured before a run: lengths of an earlier run's answers, and how long the first program takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

from flowevolve._util.errors import InputError
from flowevolve.core.calls import HELD_OUT
from flowevolve.core.model import Message
from flowevolve.journal.reading import RecordedRun
from flowevolve.programs.task import ProgramTask
from flowevolve.sim.lengths import MeasuredLengths
from flowevolve.sim.scores import SeedRun
from flowevolve.sim.service_model import count_tokens

LEAST_ANSWERS = 5
"""With fewer answers nothing is known of their lengths."""
MOST_ANSWERS = 2000
"""Of each role and stage, so many are kept."""
MOST_CASES = 5
"""So many cases are run to see how long a program takes."""


def read_lengths(directory: Path) -> MeasuredLengths:
    """The lengths of the answers of a recorded run.

    Raises:
        InputError: if it is no run directory, or has too few answers.
    """
    by_work: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    hidden: defaultdict[str, list[int]] = defaultdict(list)
    counted = estimated = answers = 0
    with RecordedRun(directory) as recorded:
        for call in recorded.calls():
            if call.usage is None or call.error is not None or call.cached or call.stage == HELD_OUT:
                continue
            if not call.usage.completion_tokens:  # an embedding
                continue
            answers += 1
            if len(of_work := by_work[call.role, call.stage]) < MOST_ANSWERS:
                of_work.append(call.usage.completion_tokens)
                visible = 0 if call.reply is None else count_tokens(call.reply)
                hidden[call.role].append(max(0, call.usage.completion_tokens - visible))
            if call.messages is not None:
                counted += call.usage.prompt_tokens
                estimated += _estimated(call.messages)
    if answers < LEAST_ANSWERS:
        raise InputError(
            f"--lengths {directory}: has {answers} answers, and it takes {LEAST_ANSWERS} to know how long they are; "
            "name a longer run"
        )
    ratio = counted / estimated if estimated else 1.0
    return MeasuredLengths(dict(by_work), dict(hidden), ratio)


def _estimated(messages: Sequence[Message]) -> int:
    return count_tokens("\n".join(message.content for message in messages))


async def run_seed(task: ProgramTask) -> SeedRun:
    """Run the program that evolution starts from on some of its cases, one after the other."""

    async def ask(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        raise InputError(f"task {task.name!r}: asks a model to score a program, so it can't be planned")

    scores, seconds = list[float](), list[float]()
    async with task:
        await task.find_trust()
        for example in task.data.val[:MOST_CASES]:
            began = time.perf_counter()
            rollout = await task.rollout(task.seed(), example, ask)
            seconds.append(time.perf_counter() - began)
            scores.append(rollout.score.value)
    return SeedRun(fmean(scores), median(seconds))
