"""Rollouts through a gepa adapter: in whole batches, or chunks of them, instead of one example at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from gepa.core.adapter import EvaluationBatch

from flowevolve._util.errors import InputError, TaskFailedError
from flowevolve.compat.gepa.data import Examples
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.threads import AdapterThreads, Batch
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.task import Rollout, Score, Task
from flowevolve.stages.rollouts import Rollouts


@payload("gepa_adapter.AdapterRollout")
@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRollout(Rollout):
    """One example of a batch that an adapter evaluated. ``output`` is empty: the adapter's output is in ``batch``."""

    batch: Batch
    place: int


class AdapterRollouts(Rollouts):
    """As `Rollouts`, for an adapter. ``chunk`` is the most examples that one call gets; None: all of them.

    With ``raising``, an exception of the adapter ends the run; otherwise it ends the item. A batch that does not fit
    the request always ends the run.
    """

    def __init__(
        self, task: Task, adapter: AdapterThreads, examples: Mapping[str, Examples], mirror: Mirror, *,
        chunk: int | None, raising: bool,
    ) -> None:  # fmt: skip
        super().__init__(task)
        self._adapter = adapter
        self._loaders = examples
        self._mirror = mirror
        self._chunk = chunk
        self._raising = raising

    def as_completed(
        self,
        candidate: Candidate,
        example_ids: Sequence[str],
        split: str,
        context: StageContext,
        urgent: int | None = None,
    ) -> AsyncGenerator[tuple[int, Rollout]]:
        """Rollouts as their calls end. Adapters have no notion of urgency, so ``urgent`` has no effect.

        Raises:
            Discard: if the adapter raised and that does not end the run.
        """
        return self._in_chunks(candidate, example_ids, split, context)

    async def _in_chunks(
        self, candidate: Candidate, example_ids: Sequence[str], split: str, context: StageContext
    ) -> AsyncGenerator[tuple[int, Rollout]]:
        size = self._chunk or max(1, len(example_ids))
        jobs = [
            partial(self._call, candidate, example_ids[start : start + size], split, context, str(start))
            for start in range(0, len(example_ids), size)
        ]
        with context.reserved(Cost(rollouts=len(example_ids))):
            async with aclosing(context.side_by_side(jobs)) as calls:
                async for number, rollouts in calls:
                    for place, rollout in enumerate(rollouts):
                        yield number * size + place, rollout

    async def _call(
        self, candidate: Candidate, example_ids: Sequence[str], split: str, context: StageContext, start: str
    ) -> tuple[AdapterRollout, ...]:
        loader = self._loaders[split]
        # As in gepa: with traces in iterations, without for the seed and for the test of a merge.
        traced = candidate.operator != SEED and not (split == "val" and context.stage == "screen")
        fetch = partial(loader.fetch, tuple(example_ids))
        paid = False

        def pay(batch: Batch) -> None:
            nonlocal paid
            made = batch.num_metric_calls
            calls = len(example_ids) if split == "val" or made is None else int(made)
            context.spend(Cost(rollouts=calls))
            self._mirror.count(calls)
            paid = True

        async def evaluate() -> Batch:
            batch = await self._adapter.evaluate(
                candidate.artifact, fetch, traced=traced or split == "train", notes_state=split == "val"
            )
            pay(batch)  # at once: if another part of the evaluation fails, waiting for the disk is cancelled
            return batch if split == "train" else replace(batch, trajectories=None)

        try:
            batch = await context.keep("gepa.evaluated", evaluate, key=f"{split}/{candidate.id}/{start}")
        except Exception as error:
            if candidate.operator == SEED and split == "val":
                raise  # as in gepa: without the seed's scores there is nothing to build on
            # A result that does not fit its batch was paid for but can't be counted: going on would pass the limit.
            ends_run = self._raising or isinstance(error, InputError | TaskFailedError)
            self._mirror.failed(error, will_continue=not ends_run)
            if ends_run:
                raise
            reason = f"adapter.evaluate failed with {type(error).__name__}: {error}"
            context.log("rollout.failed", example=example_ids[0], reason=reason)
            raise Discard(f"the adapter failed with {type(error).__name__}") from error
        if not paid:  # the batch is from before the run was interrupted
            pay(batch)
        return tuple(
            AdapterRollout(example_id, "", Score(score, "", self._mirror.perfect(score)), batch=batch, place=place)
            for place, (example_id, score) in enumerate(zip(example_ids, batch.scores, strict=True))
        )


def joined(rollouts: Sequence[Rollout]) -> Batch:
    """The batch that these rollouts, in order, make up: the adapter's own if they are all of one call."""
    parts = [rollout for rollout in rollouts if isinstance(rollout, AdapterRollout)]
    first = parts[0].batch
    if (
        [part.place for part in parts if part.batch is first]
        == list(range(len(first.scores)))
        == list(range(len(parts)))
    ):
        return first
    traced = all(part.batch.trajectories for part in parts)
    objectives = all(part.batch.objective_scores for part in parts)
    return EvaluationBatch(
        outputs=[part.batch.outputs[part.place] for part in parts],
        scores=[part.batch.scores[part.place] for part in parts],
        trajectories=[(part.batch.trajectories or [])[part.place] for part in parts] if traced else None,
        objective_scores=[(part.batch.objective_scores or [])[part.place] for part in parts] if objectives else None,
    )
