"""Meta-Harness (Lee et al., arXiv 2603.28052) as a graph.

propose ─▶ check ─▶ benchmark ─▶ update
             └──── (invalid) ───────▲
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel

from flowevolve._util.errors import InputError
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Evaluator, SandboxEvaluator
from flowevolve.algorithms.meta_harness.frontier import Frontier
from flowevolve.algorithms.meta_harness.payloads import Checked
from flowevolve.algorithms.meta_harness.proposer import ROLE, FileReader, Proposer
from flowevolve.algorithms.meta_harness.stages import Evaluation, Propose, update
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, wrong_components
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import Emit, Graph
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Task
from flowevolve.stages import Written, committing
from flowevolve.tasks.labelling import BASELINES, COMPONENT, HarnessTask, harness

DEFAULT_WORKERS: Mapping[str, Workers] = {"propose": Workers(8), "check": Workers(4), "benchmark": Workers(8)}


class MetaHarness(Algorithm[MetaHarnessConfig]):
    """``proposer`` and ``evaluator`` replace the built-in ones.

    Raises:
        InputError: if the task is not one of harnesses, or the tuning does not suit it.
    """

    name = "meta_harness"
    description = (
        "The Python code around a model that classifies texts: what it remembers and what it shows.\n"
        "For a few dozen proposals, with a proposer that writes code well. Needs bubblewrap."
    )
    config_type: ClassVar[type[BaseModel]] = MetaHarnessConfig
    roles: ClassVar[Sequence[str]] = ("task", ROLE)
    staleness = "full"

    def __init__(
        self,
        task: Task,
        config: MetaHarnessConfig | None = None,
        tuning: Tuning | None = None,
        *,
        proposer: Proposer | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        if not isinstance(task, HarnessTask):
            raise InputError(f'task {task.name!r}: algorithm meta_harness evolves harnesses; set task.name = "harness"')
        super().__init__(task, config or MetaHarnessConfig(), tuning or Tuning())
        self._task = task
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._evaluator = evaluator or SandboxEvaluator(self.tuning.sandbox)
        self._frontier = Frontier()
        self._propose = Propose(proposer or FileReader(task, self.config, self._evaluator), self._frontier, self.config)
        self.archives = (self._frontier,)

    def best(self) -> Candidate | None:
        return self._frontier.best()

    def frontier(self) -> Sequence[Candidate]:
        return self._frontier.front()

    def inject(self, candidate: Candidate) -> Emit:
        if set(candidate.artifact) != {COMPONENT}:
            raise InputError(wrong_components(candidate.artifact, [COMPONENT]))
        return Emit(Written(candidate), to="check")

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        rows = len(self._task.data.val)
        count = 1 if trigger == "inject" else self.config.candidates
        return Cost(proposals=count, rollouts=count * rows, evaluations=count)

    def estimate_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """Scoring on the test splits: the frontier, and the candidates that one more flow may add to it."""
        rows = sum(len(each.data.test) for each in self._task.sets.values()) if self.config.test else 0
        if not rows:
            return Cost()
        count = len(self.frontier()) + self.config.candidates
        return Cost(rollouts=count * rows, evaluations=count)

    def graph(self) -> Graph:
        evaluation = Evaluation(self._evaluator, self._task, self.config)
        return Graph(
            (
                self._workers.stage("propose", self._propose, "check"),
                self._workers.stage("check", evaluation.check, "benchmark", "update"),
                self._workers.stage("benchmark", evaluation.benchmark, "update"),
                committing("update", update),
            ),
            entry="propose",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Send the baselines to be checked and scored."""
        for name, source in BASELINES.items():
            yield self.inject(context.propose(harness(source), parents=[], operator=f"baseline_{name}"))

    async def fit(self, context: UpdateContext) -> None:
        if self.best() is None and not context.stopping:
            raise InputError(f"task {self._task.name!r}: no baseline could be scored; {SEE_LOG}")

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Score the frontier, and nothing else, on the hidden test splits."""
        if self.config.test and any(each.data.test for each in self._task.sets.values()):
            for candidate in self.frontier():
                yield Emit(Checked(candidate, "test"), to="benchmark")

    def apply_event(self, event: Event) -> None:
        self._propose.apply_event(event)
