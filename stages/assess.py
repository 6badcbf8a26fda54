"""assess: run a candidate on all cases of a problem, level by level, and report the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from flowevolve.core.assessment import Assessment, mean_metrics
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.task import Measured, Rollout, Task
from flowevolve.programs.task import ProgramTask
from flowevolve.stages.payloads import Assessed, Written
from flowevolve.stages.rollouts import Rollouts

_SHOWN = 8
"""A candidate carries the feedback of at most this many cases."""


@dataclass(frozen=True, slots=True)
class Level:
    """Cases that are run before those of later levels, and the mean score on them that lets a candidate go on."""

    cases: tuple[str, ...]
    at_least: float


@dataclass(frozen=True)
class Assess:
    """Takes `Written`, emits `Assessed`. The cases are the task's validation examples; those of a level run
    concurrently.

    A case that was not run gets the task's worst score, like one that failed. ``levels`` may be a function, for levels
    that change during a run. ``cases`` returns the cases to run; None means every case.
    """

    rollouts: Rollouts
    task: Task
    levels: Sequence[Level] | Callable[[], Sequence[Level]] = ()
    cases: Callable[[], Sequence[str]] | None = None

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        assessed = await self.assess(item.expect(Written).candidate, context)
        yield Emit(assessed)

    async def assess(self, candidate: Candidate, context: StageContext) -> Assessed:
        """Evaluate a candidate once, for stages of which this is a part.

        Raises:
            TaskFailedError: if the task's own code has failed every time.
            InputError: if the candidate is the seed, and its score does not suit the problem.
        """
        context.begin(Cost(evaluations=1))
        cases = self._cases()
        done: dict[str, Rollout] = {}
        rejection: str | None = None
        for level in self.levels() if callable(self.levels) else self.levels:
            await self._run(candidate, level.cases, done, context)
            mean = fmean(done[case].score.value for case in level.cases)
            if mean < level.at_least:
                rejection = f"cascade: {mean:.6g} on {_names(level.cases)}, which takes {level.at_least:.6g}"
                break
        else:
            await self._run(candidate, cases, done, context)
        assessed = self._assessed(candidate, cases, done, rejection)
        score = assessed.candidate.mean_score
        context.log("candidate.assessed", candidate=candidate.id, score=score, failure=assessed.failure)
        if candidate.operator == SEED and assessed.failure is None and isinstance(self.task, ProgramTask):
            self.task.check_seed(score)
        return assessed

    def _cases(self) -> Sequence[str]:
        return tuple(example.id for example in self.task.data.val) if self.cases is None else self.cases()

    async def _run(
        self, candidate: Candidate, cases: Sequence[str], done: dict[str, Rollout], context: StageContext
    ) -> None:
        """Run those cases that have not been run before."""
        left = [case for case in cases if case not in done]
        rollouts = await self.rollouts.run(candidate, left, "val", context)
        done.update(zip(left, rollouts, strict=True))

    def _worst(self) -> float:
        return self.task.worst if isinstance(self.task, Measured) else 0.0

    def _assessed(
        self, candidate: Candidate, cases: Sequence[str], done: Mapping[str, Rollout], rejection: str | None
    ) -> Assessed:
        scores = {case: done[case].score.value if case in done else self._worst() for case in cases}
        ran = [done[case] for case in cases if case in done]
        failure = _failure(ran) or rejection
        feedback = "\n".join([*_feedback(ran), *([rejection] if rejection else [])])
        assessment = Assessment(feedback=feedback, failure=failure, metrics=mean_metrics([each.score for each in ran]))
        return Assessed(assessment.on(candidate).scored(scores), failure)


def _failure(rollouts: Sequence[Rollout]) -> str | None:
    failed = [each for each in rollouts if each.score.failure is not None]
    if not failed:
        return None
    named = (
        ""
        if len(rollouts) == 1
        else f" ({len(failed)} of {len(rollouts)} cases failed; this is case {failed[0].example_id})"
    )
    return f"{failed[0].score.failure}{named}"


def _feedback(rollouts: Sequence[Rollout]) -> list[str]:
    """The feedback on up to `_SHOWN` cases, one per line, failed cases first; of a single case, its feedback alone."""
    if len(rollouts) == 1:
        return [rollouts[0].score.feedback]
    shown = sorted(rollouts, key=lambda each: each.score.failure is None)[:_SHOWN]
    lines = [f"{each.example_id} ({each.score.value:.6g}): {each.score.feedback}" for each in shown]
    return [*lines, *([f"and {len(rollouts) - _SHOWN} more cases"] if len(rollouts) > _SHOWN else [])]


def _names(cases: Sequence[str]) -> str:
    return f"case {cases[0]}" if len(cases) == 1 else f"{len(cases)} cases"
