"""A screen for scores that vary between repeats: a sequential test of the proposal against its parent.

A single run of each on a minibatch says little if the same prompt scores differently each time. So while the comparison
is open, both are run again on the same examples; a repeat is paid for only if it can decide something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve._util.tasks import run_all
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.events import Event
from flowevolve.core.record import Record
from flowevolve.core.task import Rollout
from flowevolve.policies.acceptance import Paired
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.screen import Screen, scores_of

KNOWN = 12
"""From this many repeats on, it is known how much scores vary between them."""
Runs = tuple[tuple[float, ...], ...]
"""The scores of each run on the same examples, in the same order."""


class Compared(Record, kind="screen.compared"):
    """A comparison of a proposal and its parent: the scores of all their runs so far, and whether another run may
    decide it.
    """

    candidate: str
    scores: Runs
    baseline: Runs
    open: bool


class Noise:
    """How much scores vary between repeats of one candidate on one example: a function of the log."""

    def __init__(self) -> None:
        self._squares = 0.0
        self._repeats = 0

    def apply_event(self, event: Event) -> None:
        match event.body:
            case OwnEvent(kind=Compared.kind, data=data):
                compared = Compared.from_json(data)
                self._take(compared.scores)
                self._take(compared.baseline)
            case _:
                pass

    def _take(self, runs: Runs) -> None:
        """Count the last of the runs by its distance from the mean of the earlier ones, if there are any."""
        *before, last = runs
        if not before:
            return
        for score, earlier in zip(last, zip(*before, strict=True), strict=True):
            mean = sum(earlier) / len(earlier)
            self._squares += (score - mean) ** 2 * len(earlier) / (len(earlier) + 1)
            self._repeats += 1

    @property
    def variance(self) -> float | None:
        """The variance of one score between repeats; None while too little is known."""
        return self._squares / self._repeats if self._repeats >= KNOWN else None


@dataclass(frozen=True, kw_only=True)
class PairedScreen(Screen):
    """Like `Screen`, but repeats comparisons that ``acceptance`` finds open. A merged candidate is not repeated."""

    acceptance: Paired
    noise: Noise

    async def decide(
        self, proposed: Proposed, rollouts: Sequence[Rollout], baseline: Sequence[float], context: StageContext
    ) -> bool:
        if proposed.split != "train":
            return await super().decide(proposed, rollouts, baseline, context)
        mine: Runs = (scores_of(rollouts),)
        its: Runs = (tuple(baseline),)
        while context.decide(Compared, partial(self._look, proposed, mine, its, context)).open:
            if not context.pool.keeps(proposed.candidate.parents[0]):
                break  # the run was resumed, and the parent had failed before that
            try:
                scores = await self._repeat(proposed, len(mine), context)
            except OverBudgetError:
                break
            size = len(proposed.batch)
            mine, its = (*mine, scores[:size]), (*its, scores[size:])
        return self.acceptance.accepts([*map(sum, zip(*mine, strict=True))], [*map(sum, zip(*its, strict=True))])

    def _look(self, proposed: Proposed, mine: Runs, its: Runs, context: StageContext) -> Compared:
        """Compare the runs. The comparison is not open if the parent is gone, such as a group that failed meanwhile."""
        parent = proposed.candidate.parents[0]
        is_open = context.pool.keeps(parent) and self.acceptance.is_open(mine, its, self.noise.variance)
        return Compared(candidate=proposed.candidate.id, scores=mine, baseline=its, open=is_open)

    async def _repeat(self, proposed: Proposed, number: int, context: StageContext) -> tuple[float, ...]:
        """The scores of one more run of the proposal, followed by those of one more run of its parent.

        Raises:
            OverBudgetError: if there is no room for both runs; then none is begun.
        """
        both = (proposed.candidate, context.pool[proposed.candidate.parents[0]])
        with context.reserved(Cost(rollouts=len(both) * len(proposed.batch))):
            pass  # only to check that there is room: each rollout reserves its own
        jobs = [
            partial(self.rollouts.again, each, name, "train", context, f"{each.id}~{number}")
            for each in both
            for name in proposed.batch
        ]
        return scores_of(await run_all(jobs))
