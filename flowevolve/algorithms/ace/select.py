"""ACE's entry stage: the next sample to learn from, or online the next window to test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import cast

from flowevolve.algorithms.ace.config import ACEConfig
from flowevolve.algorithms.ace.payloads import Sample, Trial
from flowevolve.algorithms.ace.progress import Progress
from flowevolve.algorithms.ace.reading import Reader
from flowevolve.context import StageContext
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.policies.batching import EpochBatches
from flowevolve.stage import Emit, Exhausted, NotYet

SELECTED = "ace.selected"


class Select:
    """How far it has come is rebuilt from its events, of which there is one for each flow that found work."""

    def __init__(self, config: ACEConfig, progress: Progress, reader: Reader, train_ids: tuple[str, ...]) -> None:
        self._config = config
        self._progress = progress
        self._reader = reader
        self._ids = train_ids
        self._epochs: EpochBatches | None = None
        self._samples = 0
        self._windows = 0

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = context.decide(SELECTED, lambda: self._choose(context))
        version = cast(int, chosen["version"])
        if chosen["window"] is None:
            yield Emit(Sample(str(chosen["example"])), to="generate", version=version)
            return
        window = cast(int, chosen["window"])
        artifact = self._reader.artifact(self._reader.bullets(version, context))
        operator = "seed" if window == 0 else "test"
        candidate = context.propose(artifact, parents=[], operator=operator, born=version)
        yield Emit(Trial(candidate, self._window(window), "train", window), to="validate", version=version)

    def recall(self, event: Event) -> None:
        """Count what was selected before the run was interrupted."""
        if event.kind == SELECTED:
            self._count(event.data)

    def _choose(self, context: StageContext) -> Mapping[str, JSON]:
        online = self._config.adaptation == "online"
        if self._samples >= len(self._ids) * (1 if online else self._config.epochs):
            raise Exhausted
        chosen: dict[str, JSON] = {"version": context.pool.version, "window": None, "example": None}
        due = self._samples // self._config.window
        if online and due not in self._progress.tested:
            if due < self._windows:
                raise NotYet  # its test must be over before anything is learnt from it
            chosen["window"] = due
        else:
            chosen["example"] = self._ids[self._samples] if online else self._shuffled(context)
        self._count(chosen)
        return chosen

    def _count(self, chosen: Mapping[str, JSON]) -> None:
        if chosen["window"] is None:
            self._samples += 1
        else:
            self._windows += 1

    def _shuffled(self, context: StageContext) -> str:
        if self._epochs is None:
            self._epochs = EpochBatches(self._ids, 1, lambda epoch: context.derive_random("ace.epoch", epoch))
        return self._epochs.batch(self._samples)[0]

    def _window(self, number: int) -> tuple[str, ...]:
        return self._ids[number * self._config.window : (number + 1) * self._config.window]
