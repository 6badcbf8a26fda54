"""ACE's repair: an edit of the playbook made from an old version is compared with what was changed meanwhile.

What counts is what an edit read and writes, not how many commits it missed, because nearly every sample commits. A
bullet that was added meanwhile may say the same as the edit (then the bullet is credited) or have nothing to do with
it. Where the similarity lies in between, one LLM call decides. An edit that contradicts such a bullet is tested: the
questions it was learnt from are answered again with it and without it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from flowevolve._util.clock import in_thread
from flowevolve._util.tasks import run_all
from flowevolve.algorithms.ace.payloads import Edit
from flowevolve.algorithms.ace.playbook import Bullet, Operation
from flowevolve.algorithms.ace.playbook_reading import Reader
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item, Stale
from flowevolve.core.model import LLMError
from flowevolve.core.pool import Candidate
from flowevolve.experience.embedders import Embedder
from flowevolve.policies.similarity import Likeness, Relation, Vector
from flowevolve.prompts.playbook import compare_prompt, parse_comparison
from flowevolve.stages import Rollouts, ask


@dataclass
class _Sorted:
    """A stale edit's operations, sorted by what becomes of them, and its counts with the credits added."""

    counts: dict[str, tuple[int, int]]
    kept: list[Operation] = field(default_factory=list)
    contested: list[Operation] = field(default_factory=list)
    subsumed: int = 0
    dropped: int = 0

    def credit(self, bullet: Bullet) -> None:
        helpful, harmful = self.counts.get(bullet.id, (0, 0))
        self.counts[bullet.id] = helpful + 1, harmful
        self.subsumed += 1


@dataclass(frozen=True)
class Reconcile:
    """Works what is still useful of a stale edit into the current version."""

    rollouts: Rollouts
    reader: Reader
    likeness: Likeness
    embedder: Embedder

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        stale = item.expect(Stale)
        edit = stale.item.expect(Edit)
        version, bullets = self.reader.now(context)
        found = _rebased(edit, {bullet.id: bullet for bullet in bullets})
        adds = [operation for operation in edit.operations if operation.verb == "ADD"]
        await self._sort(adds, [each for each in bullets if each.changed > stale.item.version], found, context)
        accepted = await self._stands(edit, found.contested, bullets, context)
        context.log(
            "edit.reconciled",
            kept=len(found.kept),
            subsumed=found.subsumed,
            contested=len(found.contested),
            accepted=accepted,
            dropped=found.dropped,
        )
        operations = (*found.kept, *(found.contested if accepted else ()))
        yield Emit(replace(edit, operations=operations, counts=found.counts), to=stale.back_to, version=version)

    async def _sort(
        self, adds: Sequence[Operation], changed: Sequence[Bullet], found: _Sorted, context: StageContext
    ) -> None:
        """Sort each addition: it stays, is said already by a bullet that changed, or contradicts one."""
        try:
            relations = await self._relations(adds, changed, context)
            between = [place for place, (relation, _) in enumerate(relations) if relation == "between"]
            words = dict(zip(between, await _compare([adds[each] for each in between], changed, context), strict=True))
        except LLMError as error:
            context.log("reconcile.failed", error=str(error))
            found.kept += adds
            return
        for place, (operation, (relation, nearest)) in enumerate(zip(adds, relations, strict=True)):
            word = words.get(place, "same" if relation == "duplicate" else "new")
            if word == "same" and nearest is not None:
                found.credit(changed[nearest])
            else:
                (found.contested if word == "conflict" else found.kept).append(operation)

    async def _relations(
        self, adds: Sequence[Operation], changed: Sequence[Bullet], context: StageContext
    ) -> list[tuple[Relation, int | None]]:
        if not adds or not changed:
            return [("unlike", None) for _ in adds]
        texts = [*(each.text for each in adds), *(each.text for each in changed)]
        vectors = await self.embedder.vectors(texts, context)
        return await in_thread(partial(_all_relations, self.likeness, vectors[: len(adds)], vectors[len(adds) :]))

    async def _stands(
        self, edit: Edit, contested: Sequence[Operation], bullets: Sequence[Bullet], context: StageContext
    ) -> bool:
        """Whether the examples that the edit was learnt from are answered better with the contested operations than
        without.
        """
        if not contested or not edit.sources:
            return False
        jobs = [
            partial(self._score, edit.sources, shown, context, attempt)
            for attempt, shown in (("without", bullets), ("with", _after(contested, bullets)))
        ]
        without, with_it = await run_all(jobs)
        return with_it > without

    async def _score(
        self, example_ids: Sequence[str], bullets: Sequence[Bullet], context: StageContext, attempt: str
    ) -> float:
        candidate = Candidate("playbook@trial", self.reader.artifact(bullets, context))
        jobs = [partial(self.rollouts.again, candidate, name, "train", context, attempt) for name in example_ids]
        rollouts = await run_all(jobs)
        return sum(rollout.score.value for rollout in rollouts)


def _all_relations(
    likeness: Likeness, new: Sequence[Vector], noted: Sequence[Vector]
) -> list[tuple[Relation, int | None]]:
    return [likeness.relation(vector, noted) for vector in new]


def _rebased(edit: Edit, bullets: Mapping[str, Bullet]) -> _Sorted:
    """Sort the operations on existing bullets. An operation is kept if its bullets are unchanged. Otherwise an update
    or deletion is contested, and now refers to the bullet's current text; it is dropped if the bullet is gone. A merge
    of a bullet that has changed is dropped.
    """
    found = _Sorted(dict(edit.counts))
    for operation in edit.operations:
        now = {name: bullets[name].digest for name in operation.seen if name in bullets}
        if operation.verb == "ADD":
            continue
        if now == operation.seen:
            found.kept.append(operation)
        elif operation.verb != "MERGE" and now:
            found.contested.append(replace(operation, seen=now))
        else:
            found.dropped += 1
    return found


async def _compare(adds: Sequence[Operation], changed: Sequence[Bullet], context: StageContext) -> list[str]:
    """Ask a model, in one call, whether each addition is ``same``, ``new`` or ``conflict``."""
    if not adds:
        return []
    prompt = compare_prompt(context.templates, [each.text for each in adds], [each.text for each in changed])
    read = partial(parse_comparison, count=len(adds))
    return [*await ask(context, "reflection", prompt, read, agent="compare")]


def _after(operations: Sequence[Operation], bullets: Sequence[Bullet]) -> list[Bullet]:
    """The bullets as they would be after these operations."""
    texts = {name: each.text for each in operations if each.verb == "UPDATE" for name in each.seen}
    gone = {name for each in operations if each.verb == "DELETE" for name in each.seen}
    left = [replace(each, text=texts.get(each.id, each.text)) for each in bullets if each.id not in gone]
    new = [each for each in operations if each.verb == "ADD"]
    return [*left, *(Bullet(f"new-{number:05d}", each.section, each.text) for number, each in enumerate(new, 1))]
