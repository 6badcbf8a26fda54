"""Runs a task's examples with an artifact, concurrently. generate, screen and evaluate share this."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

from flowevolve._util.errors import EngineError, FlowevolveError, InputError, TaskFailedError, with_line
from flowevolve._util.tasks import stray_cancellation_is_an_error
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.model import LLMError, RejectedError, server_failed
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.core.task import ChatModel, Example, Measured, Rollout, Score, Task
from flowevolve.tasks.rollout_checks import check_rollout

FAILURES_BEFORE_GIVING_UP = 10
"""If the task's own code fails this often without ever having worked, the task is broken, and the run ends with an
error; but not if it has failed for a single candidate that was made from another, with which it may have worked before
the run was resumed.
"""


@payload
@dataclass(frozen=True, slots=True)
class UnansweredRollout(Rollout):
    """A rollout that failed because the model's server gave no answer or rejected the request.

    It says nothing about a candidate for which the model has answered on this example before.
    """


class Rollouts:
    """Runs examples of one task. The stages of a run share one object, so that it notices whether the task ever works.

    Raises:
        InputError: if two examples of a split have the same id.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._measured = task if isinstance(task, Measured) else None
        self._examples = {
            "train": _by_id(task, "train", task.data.train),
            "val": _by_id(task, "val", task.data.val),
        }
        self._worked = False
        self._failures = 0
        self._failed_for: set[str] = set()
        """The ids of the candidates for which it has failed."""

    async def run(
        self, candidate: Candidate, example_ids: Sequence[str], split: str, context: StageContext
    ) -> tuple[Rollout, ...]:
        """Run examples, and return one rollout per example, in order. A failed one has the task's worst score and says
        why.

        A rollout that violates the protocol counts as failed, too, and so does one whose score is infinite or not a
        number.

        Raises:
            EngineError: if the task has no such split, or no example with one of the ids.
            OverBudgetError: if the budget has no room for all of them; then none is begun.
            TaskFailedError: if the task's own code has failed every time.
        """
        async with aclosing(self.as_completed(candidate, example_ids, split, context)) as rollouts:
            done = {index: rollout async for index, rollout in rollouts}
        return tuple(done[index] for index in range(len(example_ids)))

    async def again(
        self, candidate: Candidate, example_id: str, split: str, context: StageContext, attempt: str
    ) -> Rollout:
        """Run an example once more in the same work. ``attempt`` distinguishes its calls from those of other rollouts.

        Raises:
            EngineError, TaskFailedError: as `run`.
        """
        with context.reserved(Cost(rollouts=1)):
            (example,) = self._chosen([example_id], split)
            return await self._one(candidate, example, context, f"~{attempt}", less_urgent=False)

    async def as_completed(
        self,
        candidate: Candidate,
        example_ids: Sequence[str],
        split: str,
        context: StageContext,
        urgent: int | None = None,
    ) -> AsyncGenerator[tuple[int, Rollout]]:
        """Yield rollouts as they end, each with its example's index. All but the first ``urgent`` examples are less
        urgent.

        Use under ``contextlib.aclosing``: leaving early cancels the rest.

        Raises:
            EngineError: if the task has no such split, or no example with one of the ids.
            OverBudgetError: if the budget has no room for all of them; then none is begun.
            TaskFailedError: as `run`.
        """
        examples = self._chosen(example_ids, split)
        first = len(examples) if urgent is None else urgent
        jobs = [
            partial(self._one, candidate, example, context, "", less_urgent=index >= first)
            for index, example in enumerate(examples)
        ]
        with context.reserved(Cost(rollouts=len(jobs))):
            async with aclosing(context.side_by_side(jobs)) as rollouts:
                async for done in rollouts:
                    yield done

    def _chosen(self, example_ids: Sequence[str], split: str) -> list[Example]:
        """Raises: EngineError if the task has no such split, or no example with one of the ids."""
        if split not in self._examples:
            raise EngineError(f"Rollouts: split is {split!r}; give 'train' or 'val'")
        of_split = self._examples[split]
        for wanted in example_ids:
            if not isinstance(wanted, str):
                raise EngineError(
                    f"Rollouts: example_ids has a {type(wanted).__name__} in it; give the ids of examples, such as "
                    f"[example.id for example in task.data.{split}]"
                )
            if wanted not in of_split:
                raise EngineError(f"Rollouts: task {self._task.name!r} has no {split} example with the id {wanted!r}")
        return [of_split[wanted] for wanted in example_ids]

    async def _one(
        self, candidate: Candidate, example: Example, context: StageContext, suffix: str, *, less_urgent: bool
    ) -> Rollout:
        model = context.chat_model(example.id + suffix, candidate.id, less_urgent=less_urgent)
        make = partial(self._checked, candidate, example, model)
        try:
            if self._measured is not None and self._measured.measured:
                rollout = await context.keep("rollout.kept", make, key=f"{candidate.id}/{example.id}{suffix}")
            else:
                rollout = await make()
        except (FlowevolveError, LLMError) as error:
            if isinstance(error, FlowevolveError):
                raise
            reason = f"the server gave no answer: {error}" if server_failed(error) else f"no answer: {error}"
            unanswered = server_failed(error) or isinstance(error, RejectedError)
            rollout = self._failed(example, reason, context, UnansweredRollout if unanswered else Rollout)
        except Exception as error:  # noqa: BLE001 - a user's task code may raise anything; it must not end the run
            rollout = self._failed(example, f"the task failed with {type(error).__name__}: {error}", context)
            self._count_failure(error, candidate)
        else:
            rollout = self._ranked(rollout, candidate, context)
        context.spend(Cost(rollouts=1))
        return rollout

    async def _checked(self, candidate: Candidate, example: Example, model: ChatModel) -> Rollout:
        async with stray_cancellation_is_an_error():
            made = await self._task.rollout(candidate.artifact, example, model)
        return check_rollout(made, example, self._task)

    @property
    def _worst(self) -> float:
        return 0.0 if self._measured is None else self._measured.worst

    def _ranked(self, rollout: Rollout, candidate: Candidate, context: StageContext) -> Rollout:
        """The rollout, turned into a failed one if its score is infinite or not a number, because such scores can't be
        ranked.
        """
        score = rollout.score
        if isfinite(score.value):
            self._worked = True
            if score.failure is not None and self._measured is None:  # otherwise the measured program failed
                context.log("rollout.failed", example=rollout.example_id, reason=score.failure)
            return rollout
        reason = f"its score is {score.value}"
        context.log("rollout.failed", example=rollout.example_id, reason=reason)
        if self._measured is None:  # otherwise the measured program may be at fault, not the task
            self._count_failure(ValueError(reason), candidate)
        ranked = replace(score, value=self._worst, passed=False, failure=score.failure or reason)
        return replace(rollout, score=ranked)

    def _failed(self, example: Example, reason: str, context: StageContext, kind: type[Rollout] = Rollout) -> Rollout:
        context.log("rollout.failed", example=example.id, reason=reason)
        return kind(example.id, "", Score(self._worst, reason, passed=False, failure=reason))

    def _count_failure(self, error: Exception, candidate: Candidate) -> None:
        self._failures += 1
        self._failed_for.add(candidate.id)
        candidate_to_blame = bool(candidate.parents) and len(self._failed_for) == 1
        if not self._worked and not candidate_to_blame and self._failures >= FAILURES_BEFORE_GIVING_UP:
            raise TaskFailedError(
                f"task {self._task.name!r} failed on each of the first {self._failures} examples; "
                f"the last failure: {with_line(error)}"
            ) from error


def _by_id(task: Task, split: str, examples: Sequence[Example]) -> dict[str, Example]:
    found: dict[str, Example] = {}
    for example in examples:
        if example.id in found:
            raise InputError(f"task {task.name!r}: two {split} examples have the id {example.id!r}; give each its own")
        found[example.id] = example
    return found
