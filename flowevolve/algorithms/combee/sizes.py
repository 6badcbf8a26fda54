"""How many reflections make the next proposal, in both forms of a run."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.event_kinds import WidthChanged
from flowevolve.core.events import Event
from flowevolve.core.policies import Batch, BatchSize


class Sizes:
    """One policy for both forms: in lockstep it is told the delays of steps, in the stream those of merges.

    The engine asks it again when a run goes on. The aggregation of an interrupted step has to know that the run goes by
    steps before the next step is asked for, which `apply_event` learns from the log.
    """

    def __init__(self, policy: BatchSize, most: int) -> None:
        self.policy = policy
        self.most = most
        self.by_steps = False
        self.current = policy.next(())
        self.steps: BatchSize = _Steps(self)
        self.gathers: BatchSize = _Gathers(self)

    def apply_event(self, event: Event) -> None:
        if isinstance(event.body, WidthChanged):
            self.by_steps = True


class _Steps:
    """Asked by lockstep alone."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def next(self, past: Sequence[Batch]) -> int:
        self._sizes.by_steps = True
        self._sizes.current = self._sizes.policy.next(past)
        return self._sizes.current


class _Gathers:
    """Asked by both forms. In lockstep all reflections of a step are gathered, however many there are."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def next(self, past: Sequence[Batch]) -> int:
        if self._sizes.by_steps:
            return self._sizes.most
        self._sizes.current = self._sizes.policy.next(past)
        return self._sizes.current
