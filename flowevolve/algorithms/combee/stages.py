"""Combee's own stages: one reflects without proposing yet, the other merges many reflections into one proposal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve._util.tasks import run_all
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import UNCHANGED
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Gathered, Item
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.prompts.reflection import WriteReflection, merge_prompt, reflect_on
from flowevolve.stages import Proposed, Rolled, Selected, scan, try_merging
from flowevolve.stages.propose import reflect_all, rewritten


@payload("combee.Reflected")
@dataclass(frozen=True, slots=True)
class Reflected:
    """What one agent learnt from its minibatch: a new text for each selected component, None where it got none, and the
    parent's scores on the minibatch.
    """

    selected: Selected
    texts: tuple[str | None, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Reflect:
    """Makes one reflection call for each selected component and hands on the new texts, without a candidate yet."""

    write: WriteReflection = reflect_on

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        rolled = item.expect(Rolled)
        selected = rolled.selected
        texts = await reflect_all(rolled, context, self.write)
        if rewritten(selected, texts) == selected.parent.artifact:
            raise Discard(UNCHANGED)
        yield Emit(Reflected(selected, texts, tuple(rollout.score.value for rollout in rolled.rollouts)))


def same_texts(item: Item[object]) -> Hashable:
    """The key of reflections that can be merged: they are about the same texts."""
    selected = item.expect(Reflected).selected
    return selected.parent.id, selected.components


@dataclass(frozen=True)
class Aggregate:
    """Merges reflections on one parent into one proposal, which is screened on all their minibatches."""

    copies: int
    fan_in: int

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        reflected = [each.expect(Reflected) for each in item.expect(Gathered).items]
        selected = reflected[0].selected
        parent = selected.parent
        jobs = [
            partial(self._merged, parent, component, _existing(each.texts[place] for each in reflected), context)
            for place, component in enumerate(selected.components)
        ]
        texts = await run_all(jobs)
        artifact = rewritten(selected, texts)
        if artifact == parent.artifact:
            raise Discard(UNCHANGED)
        context.begin(Cost(proposals=1))
        candidate = context.propose(
            artifact,
            parents=[parent],
            operator="aggregate",
            attributes={"reflections": len(reflected)},
            born=item.version,
        )
        # If the minibatches are from several epochs, an example may occur twice; it is run once.
        baseline = {
            name: score
            for each in reversed(reflected)
            for name, score in zip(each.selected.batch, each.scores, strict=True)
        }
        proposed = Proposed(candidate, tuple(baseline), tuple(baseline.values()), origin=parent.artifact)
        yield Emit(proposed, derives=(parent.id,))

    async def _merged(
        self, parent: Candidate, component: str, texts: Sequence[str], context: StageContext
    ) -> str | None:
        """Merge all texts into one; None if there are none. If the last merge could not be read, take the first of the
        texts left.

        Raises:
            Discard: if no merge could be read.
        """
        if not texts:
            return None
        left = await scan(
            texts,
            partial(_merge, parent=parent, component=component, context=context),
            copies=self.copies,
            most=self.fan_in,
            rng=context.derive_random("scan", context.item_id, component),
        )
        if not left:
            raise Discard("no merge could be read")
        return left[0]


async def _merge(
    texts: Sequence[str], name: str, *, parent: Candidate, component: str, context: StageContext
) -> str | None:
    """One call; None if it fails or its reply can't be read."""
    return await try_merging(
        merge_prompt(context.templates, component, parent.artifact[component], texts),
        before=parent.artifact[component],
        key=f"{component}/{name}",
        candidate=parent.id,
        context=context,
        component=component,
        merge=name,
        texts=len(texts),
    )


def _existing(texts: Iterable[str | None]) -> list[str]:
    return [text for text in texts if text is not None]
