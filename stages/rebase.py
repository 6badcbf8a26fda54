"""rebase: an edit of a candidate that is no longer the best is applied to the one that is, before it is validated.

This is for edits that are validated one at a time while others are being made.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import PoolReader, StageContext
from flowevolve.core.discard_reasons import OVERTAKEN
from flowevolve.core.graph import Discard, Emit, StageFunction
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.stages.line_edits import edit_again
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.rollouts import Rollouts

OPERATOR = "rebase"


class Rebased(Record, kind="candidate.rebased"):
    """The candidate onto which an edit was rebased (None: it was validated unchanged), and whether the edit was new."""

    head: str | None
    is_new: bool = True


@dataclass(frozen=True)
class Rebase:
    """Rebases an edit whose parent was the best candidate but is no longer, and hands it to ``evaluate``.

    ``best`` returns the current best candidate, and ``was_best`` says whether a candidate was the best at a version of
    the pool. A component that the edit left unchanged gets the best candidate's text, and the change of any other is
    applied to that text line by line. If that is impossible, because the text was written anew, the best candidate is
    run on the edit's minibatch, and the edit is discarded unless it does better there; if the budget has no room for
    this besides the ``price`` of a validation in rollouts, the edit is validated untested. An edit is also discarded if
    the best candidate already contains it, or if another edit led to the same texts meanwhile. All other proposals stay
    unchanged: edits of other parents, and merges of several.
    """

    best: Callable[[], Candidate | None]
    was_best: Callable[[str, int], bool]
    evaluate: StageFunction
    rollouts: Rollouts
    price: int

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        proposed = item.expect(Proposed)
        rebased = context.decide(Rebased, lambda: self._onto(proposed.candidate, context))
        if not rebased.is_new:
            raise Discard(OVERTAKEN)
        derives = item.derives
        if rebased.head is not None and context.pool.keeps(rebased.head):
            head = context.pool[rebased.head]
            candidate = self._rebased(proposed.candidate, head, item, context)
            if candidate is proposed.candidate and not await self._beats(head, proposed, context):
                raise Discard(OVERTAKEN)
            proposed, derives = replace(proposed, candidate=candidate), (head.id,)
        async with aclosing(self.evaluate(replace(item, payload=proposed, derives=derives), context)) as emissions:
            async for emission in emissions:
                yield emission

    def _onto(self, candidate: Candidate, context: StageContext) -> Rebased:
        best = self.best()
        if best is None or len(candidate.parents) != 1:
            return Rebased(head=None)
        if entered_since(candidate.artifact, candidate.born, context.pool):
            return Rebased(head=None, is_new=False)
        (parent,) = candidate.parents
        overtaken = best.id != parent and self.was_best(parent, candidate.born)
        return Rebased(head=best.id if overtaken else None)

    def _rebased(self, edit: Candidate, head: Candidate, item: Item[object], context: StageContext) -> Candidate:
        origin = context.pool[edit.parents[0]].artifact
        artifact = _made_again(origin, edit.artifact, head.artifact)
        if artifact == head.artifact:
            raise Discard(OVERTAKEN)
        if artifact == edit.artifact:
            return edit
        candidate = context.propose(
            artifact, parents=[head], operator=OPERATOR, attributes={"edits": [edit.id]}, born=item.version
        )
        context.reject(edit, f"rebased as {candidate.id}")
        return candidate

    async def _beats(self, head: Candidate, edit: Proposed, context: StageContext) -> bool:
        """Whether an edit does better than the head on the edit's minibatch; true if there is no room to find out."""
        if not edit.scores:
            return True
        try:
            with context.reserved(Cost(rollouts=self.price)):
                ran = await self.rollouts.run(head, edit.batch, edit.split, context)
        except OverBudgetError:
            return True
        return sum(edit.scores) > sum(rollout.score.value for rollout in ran)


def entered_since(artifact: Artifact, version: int, pool: PoolReader) -> bool:
    """Whether a candidate with exactly these texts has entered the pool since this version."""
    return any(each.artifact == artifact for update in pool.updates_between(version) for each in update.added())


def _made_again(origin: Artifact, edited: Artifact, head: Artifact) -> Artifact:
    texts = {}
    for name, text in edited.items():
        if text != origin[name]:
            again = edit_again(origin[name], text, head[name])
            texts[name] = text if again is None else again
    return head.replace(**texts)
