"""The task protocol: data, how one example is run, how it is scored, and what feedback comes back.

A task knows nothing of algorithms or of the engine. It gets an artifact, an example and something to call an LLM
with, and returns a rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from flowevolve.artifact import Artifact
from flowevolve.kinds import payload
from flowevolve.llm.types import JSON, Message


@payload
@dataclass(frozen=True, slots=True)
class Example:
    """One row of a data set. ``id`` is unique within the task; ``data`` is the row as loaded."""

    id: str
    data: Mapping[str, JSON]


@payload
@dataclass(frozen=True, slots=True)
class Score:
    """What one output is worth, and why, in words a reflection model can use. Where LLMs answer, it is in [0, 1]."""

    value: float
    feedback: str
    passed: bool
    """Whether the output leaves nothing to improve (GEPA skips a minibatch in which all passed)."""
    failure: str | None = None
    """Why there is nothing to score, in one line; None if there is something."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further numbers, such as seconds."""

    def __post_init__(self) -> None:
        """Numbers of other libraries, such as numpy's, become Python's own, which the journal can hold."""
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "passed", bool(self.passed))
        object.__setattr__(self, "metrics", {name: float(number) for name, number in self.metrics.items()})


@payload
@dataclass(frozen=True, slots=True)
class Call:
    """One LLM call of a rollout: which component's text it used, what went in and what came out."""

    component: str
    inputs: Mapping[str, str]
    output: str


@payload
@dataclass(frozen=True, slots=True)
class Rollout:
    """One example run with one artifact."""

    example_id: str
    output: str
    score: Score
    calls: tuple[Call, ...] = ()
    """The trace, in order; reflection on a component reads the calls that used it."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The splits of a task. ``train`` feeds minibatches, ``val`` scores candidates, ``test`` is never evolved on."""

    train: Sequence[Example]
    val: Sequence[Example]
    test: Sequence[Example] = field(default=())


class ChatModel(Protocol):
    """What a task calls: an LLM of the ``task`` role, already accounted and scheduled."""

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """The reply's text.

        Raises:
            flowevolve.llm.types.LLMError: if the call failed for good.
        """
        ...


class Task(Protocol):
    """What evolution is for. Implementations hold no state that changes between rollouts."""

    name: str
    data: Dataset

    def seed(self) -> Artifact:
        """The artifact evolution starts from."""
        ...

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        """Run one example with one artifact and score it. Blocking work belongs in `flowevolve.clock.in_thread`."""
        ...


@runtime_checkable
class Measured(Protocol):
    """A task whose rollouts are not made of LLM replies alone, so that they can't be had again from these.

    ``measured`` says that an interrupted run is to keep them; ``worst`` is the score of a rollout that failed, 0 of
    other tasks.
    """

    measured: bool
    worst: float
