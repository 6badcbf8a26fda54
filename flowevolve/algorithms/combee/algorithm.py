"""Combee, map-shuffle-reduce for prompt learning (arXiv 2604.04247), over GEPA, as a graph.

    select ─▶ generate ─▶ reflect ─▶ aggregate ─▶ screen ─▶ evaluate ─▶ update

Map: flows of a round reflect on the same parent, each on a minibatch of its own. Shuffle and reduce: ``aggregate``. In
lockstep, a step is a round, as published; in the stream rounds overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from flowevolve.algorithms.combee.batch_sizes import DelayProfile, Sizes
from flowevolve.algorithms.combee.config import CombeeConfig
from flowevolve.algorithms.combee.select import SelectRounds
from flowevolve.algorithms.combee.stages import Aggregate, Reflect, same_texts
from flowevolve.algorithms.gepa.algorithm import DEFAULT_WORKERS, GEPA
from flowevolve.algorithms.gepa.select import Select
from flowevolve.core.algorithm import Tuning, Workers
from flowevolve.core.budget import Cost
from flowevolve.core.events import Event
from flowevolve.core.graph import Stage
from flowevolve.core.task import Task


class Combee(GEPA):
    """Raises:
    InputError: as `GEPA`.
    """

    name = "combee"
    description = (
        "Prompts, if there is much to learn from many rows and single edits help little.\n"
        "With a model that can merge long lists of findings; if merging loses much, GEPA is better."
    )
    config_type = CombeeConfig
    default_workers: ClassVar[Mapping[str, Workers]] = {
        **{name: workers for name, workers in DEFAULT_WORKERS.items() if name != "propose"},
        "reflect": DEFAULT_WORKERS["propose"],
        "aggregate": Workers(4),
    }

    def __init__(self, task: Task, config: CombeeConfig | None = None, tuning: Tuning | None = None) -> None:
        self._combee = config or CombeeConfig()
        batch = self._combee.batch
        self._sizes = Sizes(DelayProfile(batch), batch) if self._combee.batch_size == "dynamic" else None
        self._step_width = None if self._sizes is None else self._sizes.steps
        super().__init__(task, self._combee, tuning)

    def estimate(self, trigger: str | None = None) -> Cost:
        """A flow makes only a part of a proposal, so no proposal is reserved for it."""
        return super().estimate(trigger) if trigger else Cost(rollouts=2 * self.config.minibatch)

    def apply_event(self, event: Event) -> None:
        super().apply_event(event)
        if self._sizes is not None:
            self._sizes.apply_event(event)

    def _select_type(self) -> Callable[..., Select]:
        return partial(SelectRounds, size=self._round)

    def _round(self) -> int:
        return self._combee.batch if self._sizes is None else self._sizes.current

    def _proposing(self) -> tuple[Stage, ...]:
        batch = self._combee.batch
        aggregate = Aggregate(self._combee.copies, self._combee.fan_in)
        # A round that lost some of its flows leaves reflections behind; at most two batches of them may wait.
        waiting = self._workers.stage("aggregate", aggregate, "screen", capacity=2 * batch)
        gathering = replace(
            waiting, gather=batch, gather_by=None if self._sizes is None else self._sizes.gathers, gather_key=same_texts
        )
        return (self._workers.stage("reflect", Reflect(self._write), "aggregate"), gathering)
