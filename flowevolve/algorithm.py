"""What an algorithm is: archives over the pool, a graph of stages, and what happens before and after the stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar, Protocol

from pydantic import BaseModel

from flowevolve.budget import Cost
from flowevolve.context import StageContext, UpdateContext
from flowevolve.pool import DEFAULT_POOL, Candidate, Update
from flowevolve.stage import NO_EMISSIONS, Emit, Graph
from flowevolve.tasks.base import Task


class Archive(Protocol):
    """The algorithm's view of the pool. A pure function of the log: nothing but `apply` changes it."""

    def apply(self, update: Update) -> None:
        """Take in the next update. Called once for every commit, in order."""
        ...


class Algorithm:
    """Base of algorithms: subclass, name it, give it archives and a graph.

    ``config_type`` is the model its settings are checked against before `make` gets them. ``init`` yields emissions
    into the graph before the stream starts (usually the seed, to be evaluated); when they have drained, ``fit`` may
    commit what was learnt from them. ``finish`` may emit once more when everything has drained.
    """

    name: ClassVar[str]
    config_type: ClassVar[type[BaseModel]]
    pools: Sequence[str] = (DEFAULT_POOL,)
    archives: Sequence[Archive] = ()

    @classmethod
    def make(cls, task: Task, config: BaseModel, workers: Mapping[str, int]) -> Algorithm:
        """Construct it from a run's configuration: its own settings, checked, and workers by stage name.

        Raises:
            InputError: if the task does not suit it, or ``workers`` names a stage it does not have.
        """
        raise NotImplementedError(f"{cls.__name__} needs a make()")

    def graph(self) -> Graph:
        raise NotImplementedError(f"{type(self).__name__} needs a graph()")

    def best(self) -> Candidate | None:
        """The best confirmed candidate so far."""
        raise NotImplementedError(f"{type(self).__name__} needs a best()")

    def estimate(self) -> Cost:
        """What one flow is expected to spend at least; reserved when it is admitted."""
        return Cost(proposals=1)

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Emissions to start from, each naming its stage."""
        for emission in NO_EMISSIONS:
            yield emission

    def fit(self, context: UpdateContext) -> None:
        """Learn from what init produced."""

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Emissions to end with, each naming its stage."""
        for emission in NO_EMISSIONS:
            yield emission
