"""Whether a run goes on: what stops it and why, and what makes it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowevolve._util.errors import FlowevolveError
from flowevolve._util.tasks import Pulse
from flowevolve.core.budget import DIMENSIONS
from flowevolve.core.event_kinds import RunFailed, RunStopping
from flowevolve.core.events import EventLog
from flowevolve.core.policies import Progress, StoppingPolicy
from flowevolve.core.stop_reasons import FAILED, TARGET_SCORE, UNPRODUCTIVE, StopReason
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.fruitless import FruitlessCheck
from flowevolve.engine.ledger import Ledger
from flowevolve.engine.pause import Paused
from flowevolve.engine.services import EngineServices
from flowevolve.engine.tickets import TicketQueue

MOST_PERFECT = 100
"""A run whose best candidate has the score 1 ends after this many minibatches that leave nothing to improve, without a
proposal in between; one in which nothing was proposed yet ends after `MOST_PERFECT_AT_FIRST`.
"""
MOST_PERFECT_AT_FIRST = 30


class Stopping:
    """Knows whether the run is stopping; ``check`` stops it if its target, its policies or its budget say so."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        events: EventLog,
        services: EngineServices,
        tickets: TicketQueue,
        counters: Callable[[], RunCounters],
        fruitless: FruitlessCheck,
        pause: Paused,
        changed: Pulse,
        policies: Sequence[StoppingPolicy],
        most_in_vain: int,
        abort: Callable[[], None],
    ) -> None:
        """``counters`` is asked anew each time, because a resumed run goes on with those of the interrupted one.
        ``abort`` cancels the run at once. The run fails if its first ``most_in_vain`` flows are all in vain.
        """
        self.reason: StopReason | None = None
        self.hurry = False
        self.failure: FlowevolveError | None = None
        self.finishing = False
        """Whether the run is past the point where more budget could still change anything."""
        self.fruitless = fruitless
        self._ledger = ledger
        self._events = events
        self._services = services
        self._tickets = tickets
        self._counters = counters
        self._pause = pause
        self._changed = changed
        self._policies = policies
        self._most_in_vain = most_in_vain
        self._abort = abort

    def stop(self, reason: str, *, hurry: bool = False) -> None:
        """Open no more flows. Open flows go on to their end, with ``hurry`` for at most the engine's drain time."""
        self.hurry = self.hurry or hurry
        self._pause.end()
        if self.reason is None:
            self.reason = StopReason(reason)
            self._services.stopping = True
            self._events.emit(RunStopping(reason))
        self._changed.fire()

    @property
    def is_short(self) -> bool:
        """Whether only a budget stops the run, and there is still time to raise that budget."""
        return self.reason in DIMENSIONS and not self.hurry and not self.finishing

    def go_on(self) -> None:
        """Open flows again, because the budget that stopped the run was raised."""
        if self.is_short:
            self.reason = None
            self._services.stopping = False
        self._changed.fire()

    def fail(self, error: FlowevolveError) -> None:
        """Stop because of an error that would stop every item."""
        if self.failure is None:
            self.failure = error
            self._events.emit(RunFailed(str(error)))
        self.stop(FAILED)
        self._abort()

    def check(self) -> None:
        """Stop or fail if the target, the budget, a stopping policy or fruitless work gives a reason to."""
        if self.reason is not None:
            return
        counters = self._counters()
        best = self._services.pool_and_archives.best_score
        refused = counters.refused
        if refused is not None and self._ledger.is_below(refused.dimension, refused.needed):
            self.stop(refused.dimension)  # also in a resumed run, unless the limit was raised
            return
        measured = self._services.measured_score
        target = self._ledger.target_score
        if target is not None and measured is not None and measured >= target:
            self.stop(TARGET_SCORE)
            return
        most_perfect = MOST_PERFECT_AT_FIRST if self.fruitless.nothing_yet else MOST_PERFECT
        if (best or 0.0) >= 1.0 and counters.perfect >= most_perfect:
            self.stop(UNPRODUCTIVE)
            return
        self._look_for_fruits(counters)
        spent = self._ledger.spent
        without_gain = spent.proposals - self._services.pool_and_archives.proposals_at_gain
        version, changes = self._services.pool.version, self._tickets.changes
        progress = Progress(self._events.elapsed(), spent, version, without_gain, best, changes)
        for policy in self._policies:
            reason = policy.reason(progress)
            if reason is not None:
                self.stop(reason)
                return

    def _look_for_fruits(self, counters: RunCounters) -> None:
        """Fail if the first flows have shown that the run leads nowhere."""
        pool, emit = self._services.pool, self._events.emit
        error = self.fruitless.no_fruits(pool, self._most_in_vain, counters.replies, emit)
        if error is not None:
            self.fail(error)
        limited = self._ledger.limit("proposals") is not None
        if limited and (error := self.fruitless.not_charged()) is not None:
            self.fail(error)
