"""rebase: an edit is made again on the best candidate there is, as it is about to be validated.

It is the form of group commit for those who have no model to merge edits with: they are validated one at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit, StageFunction
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.stages.line_edits import edit_again
from flowevolve.stages.payloads import Proposed

OPERATOR = "rebase"


class Rebased(Record, kind="candidate.rebased"):
    """Onto which candidate an edit was rebased; None where it was validated as it is."""

    head: str | None


@dataclass(frozen=True)
class Rebase:
    """Rebases an edit onto the best candidate, which ``best`` gives, and hands it to ``evaluate``.

    A component that the edit left alone is the best candidate's. One that it changed is made again line by line, or,
    where it was written anew, is taken as it is. An edit that the best candidate has already is discarded. What has no
    single parent, such as a merge, stays as it is.
    """

    best: Callable[[], Candidate | None]
    evaluate: StageFunction

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        proposed = item.expect(Proposed)
        name = context.decide(Rebased, lambda: Rebased(head=self._head(proposed.candidate))).head
        derives = item.derives
        if name is not None and context.pool.keeps(name):
            candidate = self._rebased(proposed.candidate, context.pool[name], item, context)
            proposed, derives = replace(proposed, candidate=candidate), (name,)
        async with aclosing(self.evaluate(replace(item, payload=proposed, derives=derives), context)) as emissions:
            async for emission in emissions:
                yield emission

    def _head(self, candidate: Candidate) -> str | None:
        best = self.best()
        return None if best is None or len(candidate.parents) != 1 or best.id in candidate.parents else best.id

    def _rebased(self, edit: Candidate, head: Candidate, item: Item[object], context: StageContext) -> Candidate:
        origin = context.pool[edit.parents[0]].artifact
        artifact = _made_again(origin, edit.artifact, head.artifact)
        if artifact == head.artifact:
            raise Discard("nothing new")
        if artifact == edit.artifact:
            return edit
        candidate = context.propose(
            artifact, parents=[head], operator=OPERATOR, attributes={"edits": [edit.id]}, born=item.version
        )
        context.reject(edit, f"rebased as {candidate.id}")
        return candidate


def _made_again(origin: Artifact, edited: Artifact, head: Artifact) -> Artifact:
    texts = {}
    for name, text in edited.items():
        if text != origin[name]:
            again = edit_again(origin[name], text, head[name])
            texts[name] = text if again is None else again
    return head.replace(**texts)
