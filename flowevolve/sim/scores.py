"""Simulated scores for the prompts, the calls and the rows of a real task.

What a task's own code says about the answers of a simulated model means nothing. So a prompt is scored by how many
rules of a hidden house style it states, whatever it is for: each row needs a few of them, and feedback names those that
were not met, which the simulated model of the world `rules` takes up. A program's score is random, with its text as the
seed, and its evaluation takes about as long as the program that evolution starts from took to run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.model import LLMError, Message
from flowevolve.core.task import Call, ChatModel, Example, Rollout, Score, Task
from flowevolve.programs.task import ProgramTask
from flowevolve.sim.worlds.rules.text import Statement
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.tasks.house_style import HOUSE_STYLE
from flowevolve.tasks.other_seed import with_members

RULES_A_ROW = 4
MET_UNSTATED = 0.2
"""How probable it is that an answer meets a rule that its prompt does not state."""
FAILING = 0.2
"""The share of programs that fail."""
SPREAD = 0.05
"""The standard deviation of the scores of programs, as a share of the first program's score."""
SECONDS_DIFFER = 0.3
"""The standard deviation of the logarithm of the seconds for which programs run."""


@dataclass(frozen=True, slots=True)
class SeedRun:
    """What running a task's first program showed: its score, and the seconds of one case."""

    score: float
    seconds: float


class Evaluating:
    """Runs programs for simulated seconds, at most ``slots`` at a time. ``seconds`` is the sum of these."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.seconds = 0.0
        self._free = anyio.CapacityLimiter(slots)

    async def run(self, seconds: float) -> None:
        async with self._free:
            await anyio.sleep(seconds)
            self.seconds += seconds


def with_simulated_scores(task: Task, world: RulesWorld) -> Task:
    """The same task of prompts, with the same calls of the model, but scored by rules that the world knows."""

    async def rollout(self: Task, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        made = await _calls(task, artifact, example, llm)
        return Rollout(example.id, made[-1].output, _score(artifact, example, made, world), tuple(made))

    return with_members(task, {"rollout": rollout})


def with_simulated_runs(task: ProgramTask, seed: SeedRun, evaluating: Evaluating) -> Task:
    """The same task of programs, but no program is run. Evaluations take about as long as that of the seed."""

    async def rollout(self: Task, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        rng = random.Random(f"{artifact.id}/{example.id}")
        seconds = seed.seconds * rng.lognormvariate(0.0, SECONDS_DIFFER)
        await evaluating.run(seconds)
        if random.Random(artifact.id).random() < FAILING and artifact != task.seed():
            failure = "it failed, as some programs do"
            return Rollout(example.id, "", Score(task.worst, failure, passed=False, failure=failure))
        value = max(task.worst, seed.score * (1 + rng.gauss(0.0, SPREAD)))
        score = Score(value, f"score {value:.6g}", passed=False, metrics={"seconds": seconds})
        return Rollout(example.id, "", score)

    async def enter(self: Task) -> Task:
        return self

    async def leave(self: Task, *ended: object) -> None:
        """Nothing was opened."""

    return with_members(task, {"rollout": rollout, "__aenter__": enter, "__aexit__": leave})


async def _calls(task: Task, artifact: Artifact, example: Example, llm: ChatModel) -> Sequence[Call]:
    """The calls of a task for an example: those that it reports, else all that it made, else a single empty one."""
    made: list[Call] = []

    async def ask(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        answer = await llm(messages, max_tokens=max_tokens)
        made.append(Call(next(iter(artifact)), {"input": messages[-1].content}, answer))
        return answer

    try:
        told: Sequence[Call] = (await task.rollout(artifact, example, ask)).calls
    except (OverBudgetError, LLMError):
        raise
    except Exception:  # noqa: BLE001 - a task's own code may fail on an answer that no real model gave
        told = ()
    return told or made or [Call(next(iter(artifact)), {}, "")]


def _score(artifact: Artifact, example: Example, calls: Sequence[Call], world: RulesWorld) -> Score:
    """The score of an answer: the share of the rules needed by the example that it meets, given those in its prompt."""
    needed = random.Random(example.id).sample(HOUSE_STYLE[: world.params.rules], RULES_A_ROW)
    rng = random.Random(f"{example.id}\x1f{artifact.id}\x1f{calls[-1].output}")
    kept = [
        rng.choice(said) for said, probability in world.said("\n".join(artifact.values())) if rng.random() < probability
    ]
    met = [Statement(rule) in kept or rng.random() < MET_UNSTATED for rule in needed]
    lines = [f"{'Met' if ok else 'Not met'}: {rule.describe()}" for ok, rule in zip(met, needed, strict=True)]
    return Score(sum(met) / len(met), "\n".join(lines), passed=all(met))
