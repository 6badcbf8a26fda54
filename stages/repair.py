"""repair: judge a stale proposal in the light of later updates, and patch what is still useful onto the current
version.

FlashEvolve §3.2, *Reflective Async*: the judge sees the stale artifact, the parent it was made from, every update since
its version and the current version. Its verdict, reason and patch are logged for every item.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from flowevolve._util.errors import EngineError
from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import RepairJudged, RepairUnparsable
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item, Stale
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fences import ends_outside_blocks
from flowevolve.prompts.reflection import judge_prompt, parse_verdict
from flowevolve.stages.asking import ask
from flowevolve.stages.payloads import Proposed


class Began(Record, kind="repair.began"):
    """What a proposal is compared with, as ids of candidates, so that an interrupted repair asks the same again."""

    head: str
    version: int
    updates: tuple[str, ...]


@dataclass(frozen=True)
class Repair:
    """Has a model judge a stale proposal, and patches what is still useful onto the current version.

    ``head`` returns that version, usually the archive's best candidate. A proposal whose parent has failed goes on
    unchanged, because it is no longer known what it changed.
    """

    head: Callable[[], Candidate | None]

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        stale = item.expect(Stale)
        proposed = stale.item.expect(Proposed)
        began = context.decide(Began, lambda: self._now(stale.item.version, context))
        head, version = context.pool[began.head], began.version
        origin = proposed.candidate.parents[0]
        if not context.pool.keeps(origin):
            yield Emit(proposed, to=stale.back_to, version=version)
            return
        updates = [context.pool[name].artifact for name in began.updates]
        artifact = await _judge(proposed.candidate, head, updates, version - stale.item.version, context)
        if artifact is None:
            yield Emit(proposed, to=stale.back_to, version=version)
            return
        context.reject(proposed.candidate, "replaced by its repair")
        # A patch onto the head no longer descends from a parent that was revoked or has failed meanwhile.
        gone = not context.pool.keeps(origin) or context.pool.descends_from_revoked([origin])
        parents = [head] if origin == head.id or gone else [head, context.pool[origin]]
        patched = context.propose(artifact, parents=parents, operator="repair", born=version)
        yield Emit(
            replace(proposed, candidate=patched, baseline=None),
            to=stale.back_to,
            version=version,
            derives=tuple(parent.id for parent in parents),
        )

    def _now(self, since: int, context: StageContext) -> Began:
        head = self.head()
        if head is None:
            raise EngineError("an item went stale, so the pool must have a best candidate; the archive names none")
        updates = tuple(
            added.id
            for update in context.pool.updates_between(since)
            for added in update.added()
            if context.pool.status(added.id) != "revoked"
        )
        return Began(head=head.id, version=context.pool.version, updates=updates)


async def _judge(
    candidate: Candidate, head: Candidate, updates: Sequence[Artifact], gap: int, context: StageContext
) -> Artifact | None:
    """The patched artifact, or None if the judge's reply can't be read and the item goes on unchanged.

    Raises:
        Discard: if nothing of the edit is left to add.
    """
    parent = context.pool[candidate.parents[0]]
    changed = _changed_components(parent.artifact, candidate.artifact)
    prompt = judge_prompt(
        context.templates,
        _only(parent.artifact, changed),
        _only(candidate.artifact, changed),
        [_only(update, changed) for update in updates],
        _only(head.artifact, changed),
    )
    longest = context.templates.longest(*(head.artifact[name] for name in changed))
    read = partial(parse_verdict, components=changed, longest=longest)
    try:
        verdict = await ask(
            context, "reflection", prompt, read, agent="judge", candidate=candidate.id, whole=ends_outside_blocks
        )
    except UnparsableReplyError as error:
        context.log(RepairUnparsable(context.stage, context.item_id, candidate.id, gap, str(error)))
        return None
    context.log(
        RepairJudged(
            context.stage,
            context.item_id,
            candidate=candidate.id,
            parent=parent.id,
            head=head.id,
            gap=gap,
            verdict=verdict.verdict,
            reason=verdict.reason,
            patch=verdict.patch,
        )
    )
    if verdict.verdict != "orthogonal":
        raise Discard(verdict.verdict)
    artifact = head.artifact.replace(**verdict.patch)
    if artifact == head.artifact:
        raise Discard("subsumed")
    return artifact


def _changed_components(parent: Artifact, edited: Artifact) -> tuple[str, ...]:
    return tuple(name for name in edited if edited[name] != parent.get(name))


def _only(artifact: Artifact, names: tuple[str, ...]) -> Mapping[str, str]:
    return {name: artifact[name] for name in names}
