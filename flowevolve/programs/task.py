"""A problem as a task: each case is an example, and a rollout runs the program on it in the sandbox."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import ClassVar, Self

from flowevolve._util.errors import EngineError, InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import CASE
from flowevolve.core.artifact import Artifact
from flowevolve.core.events import Log
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score, Task
from flowevolve.programs.evaluator import EvaluatorProblem, without_evaluator
from flowevolve.programs.problem import Case, Problem, Verdict
from flowevolve.programs.scoring_code import scoring_digest
from flowevolve.programs.trust import Trial, trust_by_settings
from flowevolve.sandbox import Sandbox, SandboxPair, SandboxSettings
from flowevolve.sandbox.evaluators import Evaluators, Tell, tell_nobody
from flowevolve.sandbox.opening import check_evaluators, open_evaluators


class ProgramTask:
    """A task whose candidates are programs. A context manager: the sandbox exists inside of its block.

    Raises:
        InputError: if the problem has no cases, two cases with one id, or a ``worst`` that is not finite.
    """

    description: ClassVar[str] = "programs that solve a problem, run in a sandbox"
    measured = True

    def __init__(self, problem: Problem, sandbox: SandboxSettings | None = None) -> None:
        self._cases = {case.id: case for case in problem.cases}
        if not problem.cases or len(self._cases) < len(problem.cases):
            raise InputError(f"problem {problem.name!r}: it needs cases, each with an id of its own")
        if not math.isfinite(problem.worst):
            raise InputError(
                f"problem {problem.name!r}: worst, the score of programs that fail, is {problem.worst}; give a finite "
                "number below all scores of working programs"
            )
        self.problem = problem
        self.name = problem.name
        self.worst = problem.worst
        self.settings = sandbox or SandboxSettings()
        rows = tuple(Example(case.id, {"arguments": _plain(case)}) for case in problem.cases)
        self.data = Dataset(train=rows, val=rows)
        self.trust = trust_by_settings(problem, self.settings)
        """Whether programs could forge their scores. None if that is unknown before `find_trust`; until then they
        could.
        """
        self._tell: Tell = tell_nobody
        self._evaluators: Evaluators | None = None
        self._sandbox: Sandbox | None = None
        self._apart: Sandbox | None = None
        """The sandbox of programs that are isolated from their evaluator."""

    async def __aenter__(self) -> Self:
        """Start the sandbox.

        Raises:
            InputError: if the sandbox does not work on this machine, or on no node of the cluster.
            EngineError: if another run uses the task already.
        """
        if self._sandbox is not None:
            raise EngineError(f"task {self.name!r} is in use by a run already: give each run a task of its own")
        evaluators = open_evaluators(self.settings, self._tell)
        sandbox, apart = Sandbox(self.settings, evaluators), None
        if isinstance(self.problem, EvaluatorProblem) and (self.trust is None or self.trust.kind == "isolated"):
            apart = Sandbox(without_evaluator(self.settings, self.problem), evaluators)
        await evaluators.__aenter__()
        self._evaluators, self._sandbox, self._apart = evaluators, sandbox, apart
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        evaluators, self._evaluators, self._sandbox, self._apart = self._evaluators, None, None, None
        if evaluators is not None:
            await evaluators.__aexit__(kind, error, trace)

    async def check(self, note: Callable[[str], None]) -> None:
        """Check that programs can run, as far as possible without submitting jobs or running one of them; ``note`` gets
        what was not checked.

        Raises:
            InputError, BackendUnreachableError: if they can't.
        """
        await check_evaluators(self.settings, note)
        if isinstance(self.problem, EvaluatorProblem):
            note(
                "no program was run: a run scores the seed first, and ends at once if a working seed scores less than "
                f"task.worst, the {self.worst:.6g} of a program that fails"
            )

    @property
    def slots(self) -> int:
        return self.settings.concurrency if self._evaluators is None else self._evaluators.capacity

    @property
    def measured_on(self) -> str:
        return "" if self._evaluators is None else self._evaluators.measured_on

    def watch_machines(self, tell: Tell) -> None:
        self._tell = tell

    def log_machines(self, log: Log) -> None:
        if self._evaluators is not None:
            self._evaluators.log_nodes(log)

    def seed(self) -> Artifact:
        return self.problem.seed()

    def adjustable(self) -> Mapping[str, str]:
        digest = scoring_digest(self.problem)
        return {} if digest is None else {"the evaluator": digest}

    def check_seed(self, score: float) -> None:
        """Raises:
        InputError: if the problem has an evaluator, and this score of a working seed is below that of a failure.
        """
        if isinstance(self.problem, EvaluatorProblem):
            self.problem.check_seed(score)

    async def find_trust(self, before: ScoreTrust | None = None) -> ScoreTrust:
        """Return whether programs could forge their scores: as found ``before``, or as running the seed shows.

        From then on, programs are isolated from their evaluator if it works that way.
        """
        if before is not None and self.trust is None:
            self.trust = before
        if self.trust is None:
            assert isinstance(self.problem, EvaluatorProblem), "what has no evaluator needs no trial"
            self.trust = await Trial(self.problem, self._started(), self._apart or self._started()).run()
        return self.trust

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        """Run and score the program on one case; ``llm`` is not used."""
        of_case = CASE.set(example.id)
        try:
            verdict = await self._judge(artifact, self._cases[example.id])
        finally:
            CASE.reset(of_case)
        score = Score(
            verdict.value,
            verdict.feedback,
            passed=False,
            failure=verdict.failure,
            metrics=dict(verdict.metrics),
            measured_on=verdict.measured_on,
        )
        return Rollout(example.id, "", score)

    async def _judge(self, artifact: Artifact, case: Case) -> Verdict:
        sandbox, problem = self._started(), self.problem
        isolated = self.trust is not None and self.trust.kind == "isolated"
        if isolated and isinstance(problem, EvaluatorProblem) and self._apart is not None:
            return (await problem.judged(artifact[problem.file], SandboxPair(sandbox, self._apart))).verdict
        return await problem.judge(artifact, case, sandbox)

    def failure_said(self, failure: str) -> str:
        """Why a program fails, as it is told to the user: with the paths of the folders outside of the sandbox."""
        return failure if self._sandbox is None else self._sandbox.with_own_paths(failure)

    def _started(self) -> Sandbox:
        if self._sandbox is None:
            raise EngineError(f"task {self.name!r} has no sandbox yet: use it inside of its `async with` block")
        return self._sandbox


def check_programs(task: Task, algorithm: str) -> ProgramTask:
    """Return the task after checking that it is a task of programs, for an algorithm that evolves nothing else.

    Raises:
        InputError: if the task is of another kind.
    """
    if not isinstance(task, ProgramTask):
        raise InputError(
            f"task {task.name!r}: algorithm {algorithm} evolves programs; "
            'set task.name = "program", or in Python give flowevolve.programs.ProgramTask(problem)'
        )
    return task


def seed_fails(task: ProgramTask, failure: str | None) -> InputError:
    """The error of an algorithm that needs a seed that works, where the seed fails."""
    return InputError(
        f"problem {task.name!r}: the seed fails: {task.failure_said(failure or 'it does not say why')}; mend it, or "
        'what scores it; levi can begin with a seed that fails (algorithm.name = "levi")'
    )


def check_no_programs(task: Task, algorithm: str) -> None:
    """Check that an algorithm that reflects on the LLM calls of rollouts gets no task of programs, which make none.

    Raises:
        InputError: if it is a task of programs.
    """
    if isinstance(task, ProgramTask):
        raise InputError(
            f"task {task.name!r}: algorithm {algorithm} learns from the LLM calls that texts are used in, but programs "
            'make none; set algorithm.name = "levi", or another that evolves programs'
        )


def _plain(case: Case) -> JSON:
    return dict(case.arguments) if isinstance(case.arguments, Mapping) else list(case.arguments)
