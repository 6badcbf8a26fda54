"""ACE's entry stage: the next sample to learn from, or online the next window to test."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from flowevolve.algorithms.ace.commit import Progress
from flowevolve.algorithms.ace.config import ACEConfig
from flowevolve.algorithms.ace.payloads import Sample, Trial
from flowevolve.algorithms.ace.playbook_reading import Reader
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.graph import Emit, Exhausted, NotYet
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import SEED
from flowevolve.core.record import Record
from flowevolve.policies.batching import EpochBatches


class Selected(Record, kind="ace.selected"):
    """A sample to learn from, or the number of a window to test."""

    version: int
    window: int | None
    example: str | None


class Select:
    """Selects what a flow works on. How many samples it has selected, and which flow tests a window, follows from the
    log.
    """

    def __init__(self, config: ACEConfig, progress: Progress, reader: Reader, train_ids: tuple[str, ...]) -> None:
        self._config = config
        self._progress = progress
        self._reader = reader
        self._ids = train_ids
        self._epochs: EpochBatches | None = None
        self._samples = 0
        self._testing: int | None = None
        """The flow that tests a window, if any. If it ends without a result, another flow tests that window."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        selected = context.decide(Selected, lambda: self._choose(context))
        version, window = selected.version, selected.window
        if window is None:
            yield Emit(Sample(str(selected.example)), to="generate", version=version)
            return
        artifact = self._reader.artifact(self._reader.bullets(version, context), context)
        operator = SEED if window == 0 else "test"
        candidate = context.propose(artifact, parents=[], operator=operator, born=version)
        size = self._config.window
        examples = self._ids[window * size : (window + 1) * size]
        yield Emit(Trial(candidate, examples, "train", window), to="validate", version=version)

    def apply_event(self, event: Event) -> None:
        """Count the samples that were selected, and note which flow tests a window."""
        match event.body:
            case OwnEvent(kind=Selected.kind, data=data, item=item):
                if Selected.from_json(data).window is None:
                    self._samples += 1
                else:
                    self._testing = flow_of(item)
            case FlowClosed(flow) if flow == self._testing:
                self._testing = None
            case _:
                pass

    def _choose(self, context: StageContext) -> Selected:
        online = self._config.adaptation == "online"
        if self._samples >= len(self._ids) * (1 if online else self._config.epochs):
            raise Exhausted
        version = context.pool.version
        due = self._samples // self._config.window
        if online and due not in self._progress.tested:
            if self._testing is not None:
                raise NotYet  # its test must be over before anything is learnt from it
            return Selected(version=version, window=due, example=None)
        example = self._ids[self._samples] if online else self._shuffled(context)
        return Selected(version=version, window=None, example=example)

    def _shuffled(self, context: StageContext) -> str:
        if self._epochs is None:
            self._epochs = EpochBatches(self._ids, 1, lambda epoch: context.derive_random("ace.epoch", epoch))
        return self._epochs.batch(self._samples)[0]
