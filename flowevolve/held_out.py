"""Scoring artifacts on the test split, which evolution never sees, once a run has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flowevolve.concurrency import run_all
from flowevolve.context import ChatFunction, ScopedModel
from flowevolve.llm.calls import CallScope
from flowevolve.llm.types import LLMError
from flowevolve.pool import Candidate
from flowevolve.tasks.base import Example, Task

HELD_OUT = "held_out"
"""What its calls have in place of a stage's name."""


async def score_held_out(task: Task, candidates: Sequence[Candidate], chat: ChatFunction) -> list[float]:
    """Each candidate's mean score over the test split; an example that gets no answer scores 0."""
    jobs = [partial(_score, task, candidate, example, chat) for candidate in candidates for example in task.data.test]
    scores = await run_all(jobs)
    size = len(task.data.test)
    return [sum(scores[start : start + size]) / size for start in range(0, len(scores), size)]


async def _score(task: Task, candidate: Candidate, example: Example, chat: ChatFunction) -> float:
    scope = CallScope(HELD_OUT, f"{candidate.id}/{example.id}", candidate.id, priority=0, index=0)
    try:
        rollout = await task.rollout(candidate.artifact, example, ScopedModel(chat, "task", scope))
    except LLMError:
        return 0.0
    return rollout.score.value
