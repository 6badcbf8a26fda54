"""A run from start to end: init, fit, the opening of flows, drain and finish, and the watchers that run beside them.

When a budget is spent or the algorithm has no more work, open flows run to their end, because they were paid for. When
the time is up or somebody asks to stop, they have ``drain_seconds`` to end, and then finish has the same time. An
interrupted run resumes in the phase in which it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import BackendRefusedError, InputError
from flowevolve._util.tasks import stray_cancellation_is_an_error
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import UpdateContext
from flowevolve.core.event_kinds import AllocationChanged, DrainEnded, FlowClosed, ItemHeld, RunResumed, RunStarted
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Trigger
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import LLMError
from flowevolve.core.policies import Allocation
from flowevolve.core.stop_reasons import STALLED, TIME
from flowevolve.engine.contract import INIT, best_of, estimate_of, resizes_of
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor
from flowevolve.engine.recovery.recovery import FIT, History, recover
from flowevolve.engine.recovery.state import Phase, RecoveredState, Start
from flowevolve.engine.steering import Steering
from flowevolve.engine.stream import Stream


class Lifecycle:
    """Takes one run through its phases. ``held_at`` counts the items whose work was not completed, by stage."""

    def __init__(
        self,
        algorithm: Algorithm,
        dispatcher: Dispatcher,
        executor: Executor,
        *,
        allocation: Allocation | None,
        drain_seconds: float,
        history: History | None,
        steering: Steering,
        start: Start | None,
        about: RunStarted,
    ) -> None:
        self.held_at: Counter[str] = Counter()
        self.begun = False
        """Whether the run is under way; a resumed run is once its state has been rebuilt."""
        self._algorithm = algorithm
        self._dispatcher = dispatcher
        self._executor = executor
        self._allocation = allocation
        self._drain_seconds = drain_seconds
        self._history = history
        self._start = start
        self._steering = steering
        self._about = about
        self._interrupted: RecoveredState | None = None
        self._evolving = False
        """Whether init is over."""
        self._finished = -1
        """How many flows had been opened when finish last ran."""

    async def run(self, tasks: TaskGroup) -> None:
        """Go through all phases. Watchers that run beside them, such as the time limit's, are started in ``tasks``."""
        dispatcher = self._dispatcher
        if self._history is None:
            self.begun = True
            stages = tuple(stage.name for stage in dispatcher.graph.stages)
            dispatcher.log(replace(self._about, algorithm=self._algorithm.name, stages=stages))
        else:
            await self._resume(self._history, tasks)
            self.begun = True
        if (limit := dispatcher.ledger.seconds) is not None:
            if dispatcher.elapsed() < limit:
                tasks.start_soon(self._watch_time, limit)
            else:  # a resumed run begins nothing new
                dispatcher.stopping.stop(TIME, hurry=True)
        if isinstance(self._executor, Stream) and self._allocation is not None:
            tasks.start_soon(self._allocate_workers, self._executor, self._allocation)
        await self._bounded(self._evolve)
        await self._bounded(self._finish)

    async def _resume(self, history: History, tasks: TaskGroup) -> None:
        """Rebuild the state at the end of the history."""
        dispatcher = self._dispatcher
        before = self._interrupted = await in_thread(recover, self._algorithm, dispatcher.graph, history)
        dispatcher.load(before)
        best = best_of(self._algorithm)
        dispatcher.log(
            RunResumed(
                dispatcher.pool.version,
                None if best is None else best.id,
                before.pool.best_score,
                dispatcher.ledger.spent.proposals,
                before.counters.accepted,
                len(dispatcher.flows),
                dispatcher.flows.items,
                before.recorded_replies.left,
                dispatcher.counters.unchanged,
                dispatcher.ledger.spent,
            )
        )
        self._steering.restore(before.acts)
        for steered, submission in before.acts.submissions:
            tasks.start_soon(self._steering.send_again, steered, submission)
        for flow in before.empty:
            dispatcher.log(FlowClosed(flow))
        for stage, item, outcome, reason in before.over:
            dispatcher.end_item(stage, item, outcome, reason)
        dispatcher.stopping.check()

    async def _evolve(self) -> None:
        """Do everything that comes before finish. After this, even if it is cut off, more budget changes nothing."""
        try:
            await self._work()
        finally:
            self._dispatcher.stopping.finishing = True

    async def _work(self) -> None:
        dispatcher, before = self._dispatcher, self._interrupted
        if before is not None:
            for stage, items in before.under_way:
                self._executor.put_together(stage, items)
            for stage, item in before.waiting:
                self._executor.put_back(stage, item)
            if self._allocation is not None and isinstance(self._executor, Stream):
                for stage, workers in before.workers.items():
                    self._executor.set_workers(stage, workers)
        init = None if before is None else before.phases.get(INIT)
        if init is None or not init.ended:
            await self._begin(init)
        finish = None if before is None else before.phases.get("finish")
        if finish is not None:
            await self._finish_once(finish)  # it had begun, and open flows may wait for it
        await self._open_flows()
        while dispatcher.flows or dispatcher.stopping.reason is None:
            if dispatcher.stopping.reason is None:  # somebody has raised the budget that had stopped it
                await self._open_flows()
            else:
                await self._executor.advance()

    async def _begin(self, before: Phase | None) -> None:
        """Run init and fit, or adopt the pool that the run starts from."""
        dispatcher = self._dispatcher
        if self._start is not None:
            dispatcher.flows.number_from(self._start.flows)
            dispatcher.end_phase(INIT, await self._phase(INIT, partial(_adopt, self._start), before))
        else:
            await self._fit(await self._phase(INIT, self._algorithm.init, before))

    async def _fit(self, ticket: Item[Ticket]) -> None:
        """Run fit and end the phase.

        There is no await between the last commit of fit and the event that ends the phase, so the journal contains both
        or neither, and a completed fit is never run again.
        """
        dispatcher = self._dispatcher
        try:
            async with stray_cancellation_is_an_error():
                await self._algorithm.fit(UpdateContext(dispatcher.services, FIT, ticket.id, priority=0))
        except LLMError as error:
            await dispatcher.fail(
                BackendRefusedError(
                    f"algorithm {self._algorithm.name!r}: fit() did not get a reply that it needs: {error}"
                )
            )
        except OverBudgetError as error:
            await dispatcher.fail(
                InputError(
                    f"budget.{error.dimension} was used up before fit() of algorithm {self._algorithm.name!r} was "
                    "done, without which the run can't begin; raise it"
                )
            )
        except Exception as error:  # noqa: BLE001 - a mistake of whoever wrote the algorithm, in whatever form
            await dispatcher.fail_by(FIT, ticket, error)
        dispatcher.end_phase(INIT, ticket, stage=FIT)

    async def _finish(self) -> None:
        """Run finish, unless no flow was opened since it last ran."""
        if self._dispatcher.flows.opened != self._finished:
            await self._finish_once(None)

    async def _finish_once(self, before: Phase | None) -> None:
        self._dispatcher.ledger.kept_for_end = Cost()
        if before is not None and before.ended:
            self._finished = before.ticket.flow + 1
        else:
            self._dispatcher.end_phase("finish", await self._phase("finish", self._algorithm.finish, before))
            self._finished = self._dispatcher.flows.opened

    async def _bounded(self, part: Callable[[], Awaitable[None]]) -> None:
        """Carry out a part of the run, with workers that are started for it. Once the time is up or somebody asked to
        stop, it has ``drain_seconds`` to end; items that are still open then are held.
        """
        async with anyio.create_task_group() as tasks:
            self._executor.start(tasks)
            tasks.start_soon(self._guard, tasks.cancel_scope)
            await part()
            tasks.cancel_scope.cancel()
        self.hold_open()

    def hold_open(self) -> None:
        """Count and log as held the items that will not be worked on any more."""
        for stage, item in self._dispatcher.flows.abandon():
            self.held_at[stage] += 1
            self._dispatcher.log(ItemHeld(item.id, stage))

    async def _phase(
        self, name: str, emit: Callable[[UpdateContext], AsyncGenerator[Emit]], before: Phase | None
    ) -> Item[Ticket]:
        """Run the emissions of a phase, or the remaining ones of an interrupted phase, through the graph as one flow.

        Returns its ticket.
        """
        ticket = self._dispatcher.open_flow(name, Ticket(), Cost(), phase=True) if before is None else before.ticket
        if before is None or not before.done:
            stage = CommittingStage(name, lambda item, context: emit(context))
            await self._dispatcher.work(stage, [ticket], self._executor.put)
        await self._drain()
        return ticket

    async def _open_flows(self) -> None:
        """Open flows while the budget, the bound on open flows and the algorithm allow it."""
        dispatcher, executor, tickets = self._dispatcher, self._executor, self._dispatcher.tickets
        self._evolving = True
        self._keep_for_finish()
        tickets.is_open = True
        dispatcher.changed.fire()
        while dispatcher.may_open_flows:
            executor.update_width()
            if dispatcher.pause.new_flows and not dispatcher.flows:
                await dispatcher.changed.wait()
            elif dispatcher.pause.new_flows or len(dispatcher.flows) >= executor.width:
                await executor.advance()
            elif tickets.ready:
                await self._open_flow(tickets.next())
            elif dispatcher.flows:
                await executor.advance()
            else:
                dispatcher.stopping.stop(STALLED)
        tickets.is_open = False

    async def _open_flow(self, trigger: Trigger | None) -> None:
        """Open a flow for this trigger or, with None, an ordinary one; if the budget is short, wait for open flows."""
        dispatcher = self._dispatcher
        estimate = estimate_of(self._algorithm, None if trigger is None else trigger.name)
        self._keep_for_finish()
        refusal = await dispatcher.refusal(estimate)
        if refusal is None:
            stage = dispatcher.graph.entry if trigger is None else trigger.stage
            ticket = dispatcher.open_flow(stage, dispatcher.tickets.ticket(trigger), estimate)
            await self._executor.put(stage, ticket)
        elif dispatcher.flows:
            await self._executor.advance()
        elif trigger is not None:
            dispatcher.tickets.drop(trigger)
        else:
            dispatcher.stopping.stop(refusal)

    def _keep_for_finish(self) -> None:
        ledger = self._dispatcher.ledger
        ledger.kept_for_end = self._algorithm.reserve_for_finish(ledger.share_of)

    async def _drain(self) -> None:
        while self._dispatcher.flows:
            await self._executor.advance()

    async def _watch_time(self, limit: float) -> None:
        """Stop once the time is up. That may be later than ``limit``, because somebody may raise the time limit
        meanwhile.
        """
        while True:
            await anyio.sleep(max(0.0, limit - self._dispatcher.elapsed()))
            now = self._dispatcher.ledger.seconds
            if now is None or now <= limit:
                break
            limit = now
        self._dispatcher.stopping.stop(TIME, hurry=True)

    async def _allocate_workers(self, stream: Stream, policy: Allocation) -> None:
        """Ask the allocation policy at its interval and follow its decisions, except during init and pauses."""
        stream.load(policy.interval_seconds)  # starts the interval: a resumed run's counters include what it did before
        while True:
            await anyio.sleep(policy.interval_seconds)
            load = stream.load(policy.interval_seconds)
            if not self._evolving or self._dispatcher.pause.new_flows:
                continue
            for change in resizes_of(policy, load):
                if stream.resize(change.stage, change.by):
                    workers = stream.workers(change.stage)
                    self._dispatcher.log(AllocationChanged(change.stage, change.by, workers, change.reason))

    async def _guard(self, scope: anyio.CancelScope) -> None:
        """Cancel this scope ``drain_seconds`` after the time was up or somebody asked to stop."""
        while not self._dispatcher.stopping.hurry:
            await self._dispatcher.changed.wait()
        await anyio.sleep(self._drain_seconds)
        self._dispatcher.log(DrainEnded(len(self._dispatcher.flows)))
        scope.cancel()


async def _adopt(start: Start, context: UpdateContext) -> AsyncGenerator[Emit]:
    """Take over another run's pool."""
    for candidate in start.candidates:
        context.adopt(candidate)
    for changes in start.updates:
        context.commit(changes)
    for emission in NO_EMISSIONS:
        yield emission
