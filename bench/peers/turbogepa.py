"""The package ``turbo-gepa`` (0.1.6) on one of our tasks: TurboGEPA, which evaluates on growing shares of the examples.

Its orchestrator, scheduler, archive and caches are used as they are. It has one set of examples, which here is the
validation set, so it reflects on examples that it is validated on. Its own client and prompts are replaced: rollouts
and reflections are the task's own and run in threads. A reflection is shown three examples of one of the parents,
failures first; TurboGEPA would show the failures of the best parent to all reflections of a round. Its spec induction,
which writes prompts from examples, is off, because no simulated world has an answer to it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from typing import Any, TypeVar

from turbo_gepa.adapters.default_adapter import DefaultAdapter, DefaultDataInst
from turbo_gepa.config import Config, adaptive_shards
from turbo_gepa.interfaces import Candidate, EvalResult
from turbo_gepa.orchestrator import Orchestrator
from turbo_gepa.stop_governor import StopGovernorConfig

from bench.peers.chats import Chats
from bench.peers.examples import reflect, roll_out
from bench.peers.progress import Best, Listener, tell_width
from flowevolve.core.task import Rollout, Task

MINIBATCH = 3
NEVER_REACHED = 2.0
"""A target quality that no candidate reaches. Without a target, TurboGEPA stops after a few rounds without progress."""
FOREVER = 10**9
WHOLE = 1.0

T = TypeVar("T")


def evolve(task: Task, chats: Chats, tell: Listener, *, seed: int = 0) -> None:
    """Run until the process is ended."""
    ((component, text),) = task.seed().items()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2 * chats.concurrency) as pool:
        config = Config(
            eval_concurrency=chats.concurrency,
            n_islands=1,
            shards=adaptive_shards(len(task.data.val)),
            reflection_strategy_names=("incremental_reflection",),
            target_quality=NEVER_REACHED,
            stop_governor_config=StopGovernorConfig(stop_threshold=-1.0, max_no_improvement_epochs=FOREVER),
            cache_path=f"{folder}/cache",
            log_path=f"{folder}/logs",
            log_level="CRITICAL",
        )
        adapter = _Adapter(task, component, chats, pool, tell, config, seed)
        tell("began")
        tell_width(tell, adapter.config.max_mutations_per_round)
        adapter.optimize([text], display_progress=False, enable_auto_stop=False)


class _Adapter(DefaultAdapter):  # type: ignore[misc]  # the package has no types
    """TurboGEPA's adapter, with the task's own rollouts and reflections."""

    def __init__(
        self,
        task: Task,
        component: str,
        chats: Chats,
        pool: ThreadPoolExecutor,
        tell: Listener,
        config: Config,
        seed: int,
    ) -> None:
        self._task, self._component, self._chats, self._pool, self._tell = task, component, chats, pool, tell
        self._best = Best(tell)
        self._random = Random(seed)
        self._reflections = count()
        self._examples = {example.id: example for example in task.data.val}
        self._rollouts: dict[str, dict[str, Rollout]] = defaultdict(dict)
        super().__init__(
            dataset=[DefaultDataInst(input="", answer="", id=name) for name in self._examples],
            config=config,
            sampler_seed=seed,
            task_lm="none",
            reflection_lm="none",
            auto_config=False,
        )

    async def _in_a_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _task_runner(self, candidate: Candidate, example_id: str) -> dict[str, Any]:
        components, example = {self._component: candidate.text}, self._examples[example_id]
        async with self._task_llm_semaphore:
            rollout = await self._in_a_thread(lambda: roll_out(self._task, components, example, self._chats))
        self._rollouts[candidate.text][example_id] = rollout
        return {"quality": rollout.score.value, "tokens": 0.0, "neg_cost": 0.0, "output": rollout.output}

    def _create_strategy_runner(self, strategies: Sequence[object]) -> object:
        return self._reflect if strategies else None

    async def _reflect(
        self, parents: Sequence[Mapping[str, Any]], mutations: int, examples: object = None
    ) -> list[str]:
        """Write one text, from the parent whose turn it is."""
        text = parents[next(self._reflections) % len(parents)]["prompt"]
        shown = self._minibatch(text)
        async with self._reflection_llm_semaphore:
            written = await self._in_a_thread(lambda: reflect(self._component, text, shown, self._chats))
        if written is None:
            return []
        self._tell("proposed")
        return [written]

    def _minibatch(self, text: str) -> list[Rollout]:
        known = list(self._rollouts[text].values())
        self._random.shuffle(known)
        return sorted(known, key=lambda rollout: rollout.score.value >= 1.0)[:MINIBATCH]

    def _build_orchestrator(self, **settings: object) -> Orchestrator:
        """TurboGEPA's own orchestrator, which also reports what becomes of each result."""
        orchestrator = super()._build_orchestrator(**settings)
        ingest = orchestrator._ingest_result

        async def telling(candidate: Candidate, result: EvalResult) -> tuple[Candidate, str]:
            found: tuple[Candidate, str] = await ingest(candidate, result)
            self._report(candidate, result, found[1])
            return found

        orchestrator._ingest_result = telling
        return orchestrator

    def _report(self, candidate: Candidate, result: EvalResult, decision: str) -> None:
        """Report what became of a result. The seed counts as validated when it has its first result, because proposals
        begin then. TurboGEPA stops some validations of all examples early, too, and counts the score that they had.
        """
        is_seed, is_last = candidate.meta.get("source") == "seed", (result.shard_fraction or 0.0) >= WHOLE
        if is_seed or result.n_examples >= len(self._examples):
            self._tell("validated")
        elif is_last or decision == "pruned":
            self._tell("stopped")
        if (is_seed or is_last) and decision != "pruned":
            score = result.objectives["quality"]
            self._tell("accepted", score)
            self._best.consider(score, candidate.text)
