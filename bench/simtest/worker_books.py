"""What a run's events say about the workers of its stages."""

from __future__ import annotations

from collections.abc import Callable

from bench.simtest.bounds import Bounds
from bench.simtest.rules import Rule
from flowevolve.core.event_kinds import AllocationChanged


class WorkerBooks:
    """How many workers each stage has. ``fault`` is called with each rule that was broken, and what broke it."""

    def __init__(self, fault: Callable[[Rule, str], None]) -> None:
        self._bounds: Bounds | None = None
        self._counts: dict[str, int] = {}
        self._fault = fault

    def open_with(self, bounds: Bounds) -> None:
        """Go on in a process with these bounds."""
        self._bounds = bounds
        self._counts = {**bounds.workers, **(self._restored(bounds) if bounds.allocates else {})}

    def _restored(self, bounds: Bounds) -> dict[str, int]:
        """The workers that allocation had given, within the new bounds. They are clamped one worker at a time."""
        kept: dict[str, int] = {}
        for name, count in self._counts.items():
            least, most = _least_and_most(bounds, name)
            kept[name] = max(least, min(most, count))
        return kept

    def change(self, body: AllocationChanged) -> None:
        if self._bounds is not None:
            least, most = _least_and_most(self._bounds, body.stage)
            if not least <= body.workers <= most or body.workers != self._counts[body.stage] + body.by:
                self._fault("workers", f"{body.stage} has {body.workers} workers, of {least} to {most}, by {body.by}")
        self._counts[body.stage] = body.workers

    def check(self, stage: str, busy: int) -> None:
        """Check a stage whose workers take single items; at stages that gather, several items are one piece of work."""
        if self._bounds is None or self._bounds.lockstep or self._bounds.graph.stage(stage).gathers:
            return
        if busy > self._counts[stage]:
            self._fault("workers", f"{busy} items are worked on at {stage}, which has {self._counts[stage]} workers")


def _least_and_most(bounds: Bounds, name: str) -> tuple[int, int]:
    stage = bounds.graph.stage(name)
    return stage.bounds or (stage.workers, stage.workers)
