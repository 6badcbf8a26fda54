"""The package ``gepa`` (0.1.4) on one of our tasks: synchronous, or PxN batched proposals.

Its engine, sampler, Pareto front and acceptance are used as they are. Everything it offers for speed is used, too: an
adapter with ``batch_evaluate``, so that all rollouts of a stage run side by side, and a reflector with
``reflect_many``, so that all reflections of a step do. 0.1.4 has hooks for a ComBEE-style reflector, but comes without
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from gepa.api import optimize
from gepa.core.adapter import EvaluationBatch, GEPAAdapter, ProposalFn
from gepa.core.callbacks import CandidateAcceptedEvent, GEPACallback, ProposalEndEvent, ValsetEvaluatedEvent
from gepa.core.state import GEPAState
from gepa.proposer.reflective_mutation.reflection_lm import ReflectionJob, ReflectionProposal
from gepa.strategies.proposal_sampling import PxNSampling

from bench.peers.chats import Chats
from bench.peers.examples import reflect, roll_out
from bench.peers.progress import Listener, tell_width
from flowevolve.core.task import Example, Rollout, Task

Texts = dict[str, str]
Batch = EvaluationBatch[Rollout, str]


def evolve(
    task: Task,
    chats: Chats,
    tell: Listener,
    *,
    proposals: int | None,
    parents: int = 1,
    mutations: int = 1,
    seed: int = 0,
) -> None:
    """Run GEPA until this many ``proposals`` were made; if that is None, until the process is ended.

    ``parents`` x ``mutations`` proposals are made side by side.
    """
    watch = Watch(tell, proposals)
    with ThreadPoolExecutor(chats.concurrency) as pool:
        tell("began")
        tell_width(tell, parents * mutations)
        optimize(
            seed_candidate=dict(task.seed()),
            trainset=list(task.data.train),
            valset=list(task.data.val),
            adapter=Adapter(task, chats, pool),
            reflection_strategy=Reflector(chats, pool),
            sampling_strategy=None if parents * mutations == 1 else PxNSampling(parents, mutations),
            reflection_minibatch_size=3,
            stop_callbacks=[watch],
            callbacks=[cast(GEPACallback, watch)],
            logger=_Silent(),
            track_best_outputs=False,
            seed=seed,
        )


class Adapter(GEPAAdapter[Example, Rollout, str]):
    """One of our tasks as a gepa adapter."""

    propose_new_texts: ProposalFn | None = None

    def __init__(self, task: Task, chats: Chats, pool: ThreadPoolExecutor) -> None:
        self._task, self._chats, self._pool = task, chats, pool

    def evaluate(self, batch: list[Example], candidate: Texts, capture_traces: bool = False) -> Batch:
        return self.batch_evaluate([(candidate, batch)])[0]

    def batch_evaluate(self, items: list[tuple[Texts, list[Example]]]) -> list[Batch]:
        """Run all examples of all items side by side."""
        jobs = [
            [self._pool.submit(roll_out, self._task, candidate, example, self._chats) for example in batch]
            for candidate, batch in items
        ]
        return [_batch([job.result() for job in each]) for each in jobs]

    def make_reflective_dataset(
        self, candidate: Texts, eval_batch: Batch, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {name: [{"rollout": each} for each in eval_batch.trajectories or ()] for name in components_to_update}


def _batch(rollouts: list[Rollout]) -> Batch:
    return EvaluationBatch(
        outputs=[rollout.output for rollout in rollouts],
        scores=[rollout.score.value for rollout in rollouts],
        trajectories=rollouts,
    )


class Reflector:
    """`gepa`'s ``BatchReflectionLM``: our reflection prompt, all jobs side by side."""

    def __init__(self, chats: Chats, pool: ThreadPoolExecutor) -> None:
        self._chats, self._pool = chats, pool

    def reflect(
        self,
        candidate: Texts,
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> tuple[ReflectionProposal, Reflector]:
        return self.reflect_many([(candidate, reflective_dataset, components_to_update)])[0]

    def reflect_many(self, jobs: list[ReflectionJob]) -> list[tuple[ReflectionProposal, Reflector]]:
        asked = [
            {name: self._pool.submit(self._one, name, candidate[name], data[name]) for name in components}
            for candidate, data, components in jobs
        ]
        return [(self._read({name: job.result() for name, job in each.items()}), self) for each in asked]

    def _one(self, name: str, text: str, records: Sequence[Mapping[str, Any]]) -> str | None:
        return reflect(name, text, [record["rollout"] for record in records], self._chats)

    def _read(self, texts: Mapping[str, str | None]) -> ReflectionProposal:
        """Texts that could not be read are left out, which ends the proposal."""
        return ReflectionProposal(new_texts={name: text for name, text in texts.items() if text is not None})


class Watch:
    """Reports progress from the callbacks of `gepa`, which calls those that exist, and is its stopper."""

    def __init__(self, tell: Listener, proposals: int | None) -> None:
        self._tell = tell
        self._left = proposals

    def on_proposal_end(self, event: ProposalEndEvent) -> None:
        self._tell("proposed", None)
        if self._left is not None:
            self._left -= 1

    def on_valset_evaluated(self, event: ValsetEvaluatedEvent) -> None:
        self._tell("validated", None)
        if event["iteration"] == 0:
            self._tell("accepted", event["average_score"])
        self._score = event["average_score"]
        if event["is_best_program"]:
            (text,) = event["candidate"].values()
            self._tell("best", event["average_score"], text)

    def on_candidate_accepted(self, event: CandidateAcceptedEvent) -> None:
        self._tell("accepted", self._score)

    def __call__(self, gepa_state: GEPAState[Any, Any]) -> bool:
        """Whether `gepa` is to stop."""
        return self._left is not None and self._left <= 0


class _Silent:
    def log(self, message: str) -> None:
        """Discard the message."""
