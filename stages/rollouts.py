"""Running a task's examples with an artifact, side by side: what generate, screen and evaluate share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from flowevolve.budget import Cost
from flowevolve.context import StageContext
from flowevolve.errors import FlowevolveError, TaskFailedError
from flowevolve.llm.types import LLMError
from flowevolve.pool import Candidate
from flowevolve.tasks.base import Example, Measured, Rollout, Score, Task

FAILURES_BEFORE_GIVING_UP = 10
"""A task whose own code failed this often and never once worked is broken: the run ends instead of spending on."""


class Rollouts:
    """Runs examples of one task. Shared by the stages of a run, so that it sees whether the task ever works."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._measured = task if isinstance(task, Measured) else None
        self._examples = {
            "train": {example.id: example for example in task.data.train},
            "val": {example.id: example for example in task.data.val},
        }
        self._worked = False
        self._failures = 0

    async def run(
        self, candidate: Candidate, example_ids: Sequence[str], split: str, context: StageContext
    ) -> tuple[Rollout, ...]:
        """One rollout per example, in order. A failed one has the task's worst score and says why in its feedback.

        Raises:
            TaskFailedError: if the task's own code has failed every time.
        """
        async with aclosing(self.as_completed(candidate, example_ids, split, context)) as rollouts:
            done = {index: rollout async for index, rollout in rollouts}
        return tuple(done[index] for index in range(len(example_ids)))

    async def again(
        self, candidate: Candidate, example_id: str, split: str, context: StageContext, attempt: str
    ) -> Rollout:
        """One more rollout of an example in the same work; ``attempt`` tells its calls from those of other ones.

        Raises:
            TaskFailedError: as `run`.
        """
        return await self._one(candidate, self._examples[split][example_id], context, f"~{attempt}", less_urgent=False)

    def as_completed(
        self,
        candidate: Candidate,
        example_ids: Sequence[str],
        split: str,
        context: StageContext,
        urgent: int | None = None,
    ) -> AsyncGenerator[tuple[int, Rollout]]:
        """Rollouts as they end, each with its example's index. All but the first ``urgent`` are less urgent.

        Use under ``contextlib.aclosing``: leaving early cancels the rest.

        Raises:
            TaskFailedError: as `run`.
        """
        examples = [self._examples[split][example_id] for example_id in example_ids]
        first = len(examples) if urgent is None else urgent
        jobs = [
            partial(self._one, candidate, example, context, "", less_urgent=index >= first)
            for index, example in enumerate(examples)
        ]
        return context.side_by_side(jobs)

    async def _one(
        self, candidate: Candidate, example: Example, context: StageContext, suffix: str, *, less_urgent: bool
    ) -> Rollout:
        model = context.chat_model(example.id + suffix, candidate.id, less_urgent=less_urgent)
        make = partial(self._task.rollout, candidate.artifact, example, model)
        try:
            if self._measured is not None and self._measured.measured:
                rollout = await context.keep("rollout.kept", make, key=f"{candidate.id}/{example.id}{suffix}")
            else:
                rollout = await make()
        except (FlowevolveError, LLMError) as error:
            if isinstance(error, FlowevolveError):
                raise
            rollout = self._failed(example, f"no answer: {error}", context)
        except Exception as error:  # noqa: BLE001 - a user's task code may raise anything; it must not end the run
            rollout = self._failed(example, f"the task failed with {type(error).__name__}: {error}", context)
            self._count_failure(error)
        else:
            self._worked = True
        context.spend(Cost(rollouts=1))
        return rollout

    def _failed(self, example: Example, reason: str, context: StageContext) -> Rollout:
        context.log("rollout.failed", example=example.id, reason=reason)
        worst = 0.0 if self._measured is None else self._measured.worst
        return Rollout(example.id, "", Score(worst, reason, passed=False, failure=reason))

    def _count_failure(self, error: Exception) -> None:
        self._failures += 1
        if not self._worked and self._failures >= FAILURES_BEFORE_GIVING_UP:
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            place = f" ({where.tb_frame.f_code.co_filename}:{where.tb_lineno})" if where is not None else ""
            raise TaskFailedError(
                f"task {self._task.name!r} failed on each of the first {self._failures} examples; "
                f"last: {type(error).__name__}: {error}{place}"
            ) from error
