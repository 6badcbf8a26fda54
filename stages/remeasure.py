"""remeasure: measures the best candidate again, if scores vary between repeats.

The best of many candidates was also a lucky one. Later candidates have to beat its luck, so better ones are rejected.
So when edits no longer help, the best candidate is run on the validation set again, and its scores become the means of
all its runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass

from flowevolve._util.json_types import JSON
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import Annotate, Candidate, Update
from flowevolve.stages.payloads import Proposed, Remeasured
from flowevolve.stages.rollouts import Rollouts, UnansweredRollout

MOST = 5
"""The most times that a candidate is run on the validation set, including the first."""
FIRST = 10
"""This many examples are run first: if all of them score the same as before, scores don't vary."""
MEASUREMENTS = "measurements"
"""The attribute that says how often a candidate was run on the validation set; if it is missing, once."""


def measurements(candidate: Candidate) -> int:
    """Over how many runs a candidate's scores are means."""
    known = candidate.attributes.get(MEASUREMENTS)
    return known if isinstance(known, int) else 1


class Remeasuring:
    """Decides when the best candidate is measured again. It is a function of the log.

    That is due when ``every`` flows have begun since it became the best and since it was last measured. After a repeat
    without result, because scores don't vary or there was no room for it, nothing is ever due again.
    """

    def __init__(self, best: Callable[[], Candidate | None], every: int) -> None:
        self._best = best
        self._every = every
        self._idle = 0
        """Flows since another candidate became the best or one was measured, whichever was later."""
        self._last: str | None = None
        self._open: set[int] = set()
        self._vary = True

    def begin(self, flow: int, *, again: bool) -> None:
        """Note that a flow begins. ``again`` says whether it measures the best candidate again."""
        self._idle += 1
        if again:
            self._open.add(flow)

    def apply(self, update: Update) -> None:
        best = self._best()
        measured = any(isinstance(change, Annotate) and change.scores is not None for change in update.changes)
        if measured:
            self._open.discard(flow_of(update.cause))
        if measured or (best is not None and best.id != self._last):
            self._last, self._idle = None if best is None else best.id, 0

    def apply_event(self, event: Event) -> None:
        match event.body:
            case FlowClosed(flow) if flow in self._open:  # it has committed nothing
                self._open.discard(flow)
                self._vary = False
            case _:
                pass

    def due(self) -> Candidate | None:
        """The candidate to measure again now, if any."""
        best = self._best()
        if best is None or self._open or not self._vary:
            return None
        return best if self._idle >= self._every and measurements(best) < MOST else None


@dataclass(frozen=True)
class Remeasure:
    """Runs a confirmed candidate on the validation set again, beginning with the first `FIRST` examples.

    If the budget has no room for this besides another validation, it is skipped. An example for which the server gives
    no answer or rejects the request keeps its score.
    """

    rollouts: Rollouts
    example_ids: Sequence[str]

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Proposed).candidate
        known = candidate.scores
        ids = [name for name in self.example_ids if name in known]
        try:
            with context.reserved(Cost(rollouts=2 * len(ids), evaluations=2)):
                context.spend(Cost(evaluations=1))
        except OverBudgetError:
            raise Discard("no room in the budget") from None
        found: dict[str, float] = {}
        with context.reserved(Cost(rollouts=max(0, len(ids) - FIRST))):
            found |= await self._run(candidate, ids[:FIRST], context)
        if all(found.get(name) == known[name] for name in ids[:FIRST]):
            raise Discard("scores do not vary")
        found |= await self._run(candidate, ids[FIRST:], context)
        yield Emit(Remeasured(candidate, found), derives=(candidate.id,))

    async def _run(self, candidate: Candidate, ids: Sequence[str], context: StageContext) -> Mapping[str, float]:
        rollouts = await self.rollouts.run(candidate, ids, "val", context)
        return {each.example_id: each.score.value for each in rollouts if not isinstance(each, UnansweredRollout)}


def averaged(candidate: Candidate, found: Mapping[str, float]) -> Annotate:
    """The change that sets a candidate's scores to the means of all its runs."""
    runs = measurements(candidate)
    means = {
        name: score if name not in found else score + (found[name] - score) / (runs + 1)
        for name, score in candidate.scores.items()
    }
    noted: dict[str, JSON] = {MEASUREMENTS: runs + 1 if found else runs}
    return Annotate(candidate.id, noted, means)
