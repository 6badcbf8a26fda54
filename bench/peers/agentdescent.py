"""The package ``agentdescent`` (0.7.0) on one of our tasks: its GEPA port on its barrier-free engine.

The port gives each worker one task at a time. So that it works on minibatches of three, as all others do, its training
tasks are groups of three examples, which run side by side and whose reward is their mean. Its settings are chosen for
speed: enough workers to fill the client's limit, a lag budget that keeps none of them waiting, no discarding of stale
work (a proposal is a whole text, so none is out of date), and validation as wide as the client allows. Which candidates
are validated is its own rule: those that did no worse than their parents on the minibatch, where gepa and our engine
require them to do better.

With its merging, which its authors advise for many workers, a model merges the proposals since the last validation into
one text, and only this is validated. It gets our prompt for merging, as it gets ours for reflection, and may merge as
many texts as it has workers; by default it takes the first six and drops the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from statistics import fmean

from agentdescent import Diff, EvolvingArtifact, ReflectiveFusion, SingleSlot, Task as Work
from agentdescent.algorithms.gepa import ParetoAggregator
from agentdescent.async_evolve import async_evolve
from agentdescent.staleness import FullStaleness

from bench.peers.chats import Chats
from bench.peers.examples import merge, reflect, roll_out
from bench.peers.progress import Best, Listener, tell_width
from flowevolve.core.task import Example, Rollout, Task

MINIBATCH = 3
EPOCHS = 4
"""How many different partitions of the training examples into minibatches there are before they repeat."""
FOREVER_SECONDS = 1e9

Outputs = tuple[Rollout, ...]


def evolve(
    task: Task,
    chats: Chats,
    tell: Listener,
    *,
    proposals: int | None,
    workers: int | None = None,
    merging: bool = False,
    seed: int = 0,
) -> None:
    """Run until ``proposals`` minibatches have been rolled out; if that is None, until the process is ended."""
    (component,) = task.seed()
    groups = minibatches(task.data.train, seed)
    held_out = [[example] for example in task.data.val]
    work = [Work(id=f"{number}", prompt="", meta={"examples": group}) for number, group in enumerate(groups + held_out)]
    workers = workers or max(1, chats.concurrency // MINIBATCH)
    with ThreadPoolExecutor(chats.concurrency) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of work that is cut off at the end
        actor = _Actor(task, component, chats, pool, tell)
        slot = SingleSlot(initial_value=task.seed()[component])
        merger = Merger(component, slot.key, chats, max_proposals=workers) if merging and workers > 1 else None
        tell("began")
        tell_width(tell, workers)
        async_evolve(
            work,
            actor.reward,
            run=actor.run,
            propose=actor.propose,
            strategy=slot,
            aggregator_factory=lambda ledger, verifier, audit, config, policy: _Pareto(
                ledger,
                verifier,
                audit,
                config,
                policy,
                seed=seed,
                eval_concurrency=chats.concurrency,
                merge_round=merger,
                tell=tell,
            ),
            artifact_id="gepa_prompt",
            held_out_frac=len(held_out) / len(work),
            n_workers=workers,
            async_ratio=workers,
            staleness_policy=FullStaleness(),
            eval_concurrency=chats.concurrency,
            max_iters=proposals,
            max_seconds=FOREVER_SECONDS,
            seed=seed,
        )


def minibatches(examples: Sequence[Example], seed: int) -> list[list[Example]]:
    """Groups of `MINIBATCH` examples from `EPOCHS` random partitions. Each partition leaves out the examples that don't
    fill a group.
    """
    random, groups = Random(seed), []
    for _ in range(EPOCHS):
        shuffled = random.sample(list(examples), len(examples))
        whole = len(shuffled) - len(shuffled) % MINIBATCH
        groups += [shuffled[start : start + MINIBATCH] for start in range(0, whole, MINIBATCH)]
    return groups


class _Actor:
    """The functions that its engine calls to run a group of examples, to score it, and to propose from it."""

    def __init__(self, task: Task, component: str, chats: Chats, pool: ThreadPoolExecutor, tell: Listener) -> None:
        self._task, self._component, self._chats, self._pool, self._tell = task, component, chats, pool, tell

    def run(self, rendered: str, work: Work) -> Outputs:
        components = {self._component: rendered}
        first, *others = work.meta["examples"]
        running = [self._pool.submit(roll_out, self._task, components, each, self._chats) for each in others]
        own = roll_out(self._task, components, first, self._chats)
        return (own, *(each.result() for each in running))

    def reward(self, work: Work, outputs: Outputs) -> float:
        return fmean(rollout.score.value for rollout in outputs)

    def propose(self, rendered: str, work: Work, outputs: Outputs, reward: float) -> str | None:
        text = reflect(self._component, rendered, outputs, self._chats)
        if text is not None:
            self._tell("proposed")
        return text


class Merger(ReflectiveFusion):  # type: ignore[misc]  # the package has no types
    """Its merging by a model, with the prompt of our own merging."""

    def __init__(self, component: str, key: str, chats: Chats, *, max_proposals: int) -> None:
        super().__init__(self._merged, max_proposals=max_proposals)
        self._component, self._key, self._chats = component, key, chats
        self._versions: Sequence[str] = ()
        self._origin = ""

    def select(self, artifact: EvolvingArtifact, diffs: list[Diff]) -> tuple[Diff, EvolvingArtifact, bool]:
        self._origin = artifact.state[self._key]
        self._versions = list(dict.fromkeys(diff.ops[self._key] for diff in diffs))
        chosen: tuple[Diff, EvolvingArtifact, bool] = super().select(artifact, diffs)
        return chosen

    def _merged(self, prompt: str) -> str:
        """Merge the versions that ``prompt`` has in the package's own words, but with our prompt."""
        return merge(self._component, self._origin, self._versions, self._chats) or ""


class _Pareto(ParetoAggregator):  # type: ignore[misc]  # the package has no types
    """The port's pool, which reports each candidate that is scored and thereby enters it."""

    def __init__(
        self, *arguments: object, seed: int, eval_concurrency: int, merge_round: Merger | None, tell: Listener
    ) -> None:
        super().__init__(*arguments, seed=seed, eval_concurrency=eval_concurrency, merge_round=merge_round)
        self._tell, self._best = tell, Best(tell)

    def _score_rows(self, artifacts: Sequence[EvolvingArtifact]) -> list[list[float]]:
        rows: list[list[float]] = super()._score_rows(artifacts)
        for artifact, row in zip(artifacts, rows, strict=True):
            self._tell("validated")
            self._tell("accepted", fmean(row))
            self._best.consider(fmean(row), artifact.render())
        return rows
