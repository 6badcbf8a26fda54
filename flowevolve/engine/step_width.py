"""The width of lockstep, where an algorithm sets it from step to step."""

from __future__ import annotations

from flowevolve.core.event_kinds import StepEnded, WidthChanged
from flowevolve.core.policies import BatchSize
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor
from flowevolve.engine.lockstep import Lockstep


class StepWidth:
    """Asks the policy between two steps, when no flow is open. The stream has no steps, so there nothing is asked."""

    def __init__(self, dispatcher: Dispatcher, executor: Executor, policy: BatchSize | None) -> None:
        self._dispatcher = dispatcher
        self._lockstep = executor if isinstance(executor, Lockstep) else None
        self._policy = policy
        self._opened: int | None = None
        """How many flows had been opened when the step began; None before the first."""
        self._began = 0.0

    def look(self) -> None:
        """Set the width if a step has ended. This is called before each flow is opened."""
        dispatcher, lockstep, policy = self._dispatcher, self._lockstep, self._policy
        if lockstep is None or policy is None:
            return
        if dispatcher.flows:
            if self._opened is None:  # resumed in the middle of a step, which keeps its width
                self._set_width(lockstep, policy)
            return
        flows = 0 if self._opened is None else dispatcher.flows.opened - self._opened
        if flows:
            dispatcher.log(StepEnded(flows, dispatcher.elapsed() - self._began))
        if flows or self._opened is None:
            self._set_width(lockstep, policy)
        self._opened, self._began = dispatcher.flows.opened, dispatcher.elapsed()

    def _set_width(self, lockstep: Lockstep, policy: BatchSize) -> None:
        width = max(1, policy.next(self._dispatcher.counters.steps))
        if width != lockstep.width:
            self._dispatcher.log(WidthChanged(width, lockstep.width))
            lockstep.set_width(width)
