"""``dspy.GEPA`` of the package ``dspy`` (3.4.1) on one of our tasks.

Its loop, its adapter and its threads are used as they are. Its program has one predictor, whose instruction is the
task's text, and runs a whole example with the task's own code. Otherwise dspy would write prompts in a form of its own,
which no simulated world understands, and use a client that costs more CPU time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import dspy
from gepa.strategies.proposal_sampling import PxNSampling

from bench.peers.chats import Chats
from bench.peers.examples import reflect, roll_out
from bench.peers.gepa import Watch
from bench.peers.progress import Listener, tell_width
from flowevolve.core.task import Example, Rollout, Task

MINIBATCH = 3
FOREVER = 10**9


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
    """Run until this many ``proposals`` were made; if that is None, until the process is ended."""
    logging.getLogger("dspy").setLevel(logging.ERROR)
    ((component, text),) = task.seed().items()
    kept = _Kept(component, chats)
    watch = Watch(tell, proposals)
    optimizer = dspy.GEPA(
        metric=_metric,
        max_metric_calls=FOREVER,
        reflection_minibatch_size=MINIBATCH,
        instruction_proposer=kept.propose,
        use_merge=False,
        num_threads=chats.concurrency,
        seed=seed,
        gepa_kwargs={
            "callbacks": [watch],
            "stop_callbacks": [watch],
            "sampling_strategy": None if parents * mutations == 1 else PxNSampling(parents, mutations),
        },
    )
    tell("began")
    tell_width(tell, parents * mutations)
    optimizer.compile(
        _Program(
            text,
            lambda instruction, example: roll_out(task, {component: instruction}, example, chats),
            kept,
        ),
        trainset=[_example(each) for each in task.data.train],
        valset=[_example(each) for each in task.data.val],
    )


def _example(example: Example) -> dspy.Example:
    return dspy.Example(example=example).with_inputs("example")


def _metric(
    gold: object, prediction: dspy.Prediction, trace: object = None, name: object = None, predictor_trace: object = None
) -> dspy.Prediction:
    score = prediction.rollout.score
    return dspy.Prediction(score=score.value, feedback=score.feedback)


class _Program(dspy.Module):  # type: ignore[misc]  # the package has no types
    """A predictor, and a function that runs an example with its instruction. The trace has the rollout's number."""

    def __init__(self, text: str, run: Callable[[str, Example], Rollout], kept: _Kept) -> None:
        super().__init__()
        self.predictor = dspy.Predict(dspy.Signature("rollout -> answer", text))
        self._run, self._kept = run, kept

    def forward(self, example: Example) -> dspy.Prediction:
        rollout = self._run(self.predictor.signature.instructions, example)
        if dspy.settings.trace is not None:
            traced = {"rollout": self._kept.add(rollout)}
            dspy.settings.trace.append((self.predictor, traced, dspy.Prediction(answer=rollout.output)))
        return dspy.Prediction(rollout=rollout)


class _Kept:
    """The rollouts of minibatches, shared by all copies of a program."""

    def __init__(self, component: str, chats: Chats) -> None:
        self._component, self._chats = component, chats
        self._numbers = count()
        self._rollouts: dict[str, Rollout] = {}

    def __deepcopy__(self, memo: object) -> _Kept:
        return self

    def add(self, rollout: Rollout) -> str:
        number = str(next(self._numbers))
        self._rollouts[number] = rollout
        return number

    def propose(
        self,
        candidate: Mapping[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: Sequence[str],
    ) -> dict[str, str]:
        """Propose with our reflection prompt. A text that can't be read is left out, which ends the proposal."""
        written = {}
        for name in components_to_update:
            rollouts = [self._rollouts[each["Inputs"]["rollout"]] for each in reflective_dataset[name]]
            text = reflect(self._component, candidate[name], rollouts, self._chats)
            if text is not None:
                written[name] = text
        return written
