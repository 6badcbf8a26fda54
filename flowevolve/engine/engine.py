"""The engine: one run of an algorithm from start to result, or from where it was interrupted.

When a run is stopped, `flowevolve.engine.lifecycle` brings it to its end; a run that is cancelled or fails ends at
once. In either case every item is accounted for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import Self

import anyio

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, FlowevolveError, InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import RUN
from flowevolve._util.tasks import first_leaf
from flowevolve.core.acts import Act, checked
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import RunPaused, RunStarted, RunStopped, RunStopping, RunUnpaused
from flowevolve.core.events import Event, EventLog, Sink
from flowevolve.core.policies import Allocation, FlowBound, StalenessPolicy, StoppingPolicy
from flowevolve.core.pool import Candidate, Pool
from flowevolve.core.stop_reasons import CANCELLED, STOPPED, StopReason
from flowevolve.core.templates import Templates
from flowevolve.engine.contract import Mode, algorithm_error, best_of, check_gathering, frontier_of
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor
from flowevolve.engine.fruitless import MOST_IN_VAIN
from flowevolve.engine.injection import inject
from flowevolve.engine.ledger import Ledger
from flowevolve.engine.lifecycle import Lifecycle
from flowevolve.engine.lockstep import Lockstep
from flowevolve.engine.recovery.recorded_replies import RecordedReplies
from flowevolve.engine.recovery.recovery import History
from flowevolve.engine.recovery.state import Start
from flowevolve.engine.report import RunReport, StageReport
from flowevolve.engine.services import Settled, nothing_to_settle
from flowevolve.engine.steering import Steering
from flowevolve.engine.stream import Stream
from flowevolve.llm.client.client import LLMClient
from flowevolve.policies.flows import FixedFlows
from flowevolve.policies.staleness import Full
from flowevolve.prompts.shipped import SHIPPED


class Engine:
    """Runs one algorithm once or, if ``history`` is given, resumes the interrupted run that it describes.

    With ``start``, the run begins with the pool of another run instead of running init and fit. ``settled`` is awaited
    before any stage sees a reply. ``about`` becomes the first event of the log. If others also write to the run's event
    log, the caller creates it with `make_event_log` and passes it as ``events``.

    Raises:
        InputError: if a stage gathers more items than there may be flows in flight.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        llm: LLMClient,
        budget: Budget,
        mode: Mode = "stream",
        max_in_flight: int | FlowBound = 16,
        staleness: StalenessPolicy | None = None,
        allocation: Allocation | None = None,
        stopping: Sequence[StoppingPolicy] = (),
        most_in_vain: int = MOST_IN_VAIN,
        templates: Templates = SHIPPED,
        seed: int = 0,
        drain_seconds: float = 30.0,
        events: EventLog | None = None,
        sinks: Sequence[Sink] = (),
        settled: Settled = nothing_to_settle,
        history: History | None = None,
        start: Start | None = None,
        about: RunStarted | None = None,
    ) -> None:
        """``max_in_flight`` is how many flows may be open at a time or, in the stream, a policy that decides it.
        Prompts are written from ``templates``. The run fails if its first ``most_in_vain`` flows are all in vain.
        """
        self._algorithm = algorithm
        self._events = make_event_log(history) if events is None else events
        for sink in sinks:
            self._events.subscribe(sink)
        self.origin = self._events.start()
        """When the run would have begun if it had never been interrupted, in seconds of the event loop's clock."""
        self._ledger = Ledger(budget)
        self._scope = anyio.CancelScope()
        self._dispatcher = Dispatcher(
            algorithm,
            llm=llm,
            ledger=self._ledger,
            events=self._events,
            staleness=Full() if staleness is None else staleness,
            settled=settled,
            templates=templates,
            stopping=stopping,
            most_in_vain=most_in_vain,
            seed=seed,
            abort=self._scope.cancel,
        )
        check_gathering(self._dispatcher.graph, max_in_flight, mode)
        self._executor = _executor(self._dispatcher, mode, max_in_flight, allocated=allocation is not None)
        self._steering = Steering(self, self._dispatcher, self._executor, algorithm)
        self._lifecycle = Lifecycle(
            algorithm,
            self._dispatcher,
            self._executor,
            allocation=allocation,
            drain_seconds=drain_seconds,
            history=history,
            steering=self._steering,
            start=start,
            about=about or RunStarted(),
        )
        self._background: anyio.abc.TaskGroup | None = None
        self._report: RunReport | None = None
        self._asked: StopReason | None = None
        """The reason given by whoever asked the run to end early."""

    @property
    def pool(self) -> Pool:
        return self._dispatcher.pool

    @property
    def stopping(self) -> bool:
        return self._dispatcher.stopping.reason is not None

    @property
    def ended(self) -> bool:
        return self._report is not None

    @property
    def recorded_replies(self) -> RecordedReplies:
        """Replies from before the interruption that have not been used again yet."""
        return self._dispatcher.services.recorded_replies

    def log(self, body: EventBody) -> None:
        """Write an event into the run's log on behalf of something other than the engine."""
        self._dispatcher.log(body)

    def stop(self, reason: str = STOPPED) -> None:
        """Open no more flows; those that are open have ``drain_seconds`` to end.

        If the run was already ending, ``reason`` becomes its stop reason only if this cuts off work.
        """
        if not self._dispatcher.stopping.hurry:
            self._ask(reason)
        self._dispatcher.services.asked_to_stop = True
        self._dispatcher.stopping.stop(reason, hurry=True)

    def fail(self, error: FlowevolveError) -> None:
        """End at once because something that the run needs failed outside the engine; the report contains the error."""
        self._dispatcher.stopping.fail(error)

    def cancel(self, reason: str = CANCELLED) -> None:
        """End at once. Open items are counted as held; for ``reason`` see `stop`."""
        self._ask(reason)
        self._dispatcher.stopping.stop(reason)
        self._scope.cancel()

    def _ask(self, reason: str) -> None:
        if self.stopping and self._report is None and reason not in (self._asked, self._dispatcher.stopping.reason):
            self._dispatcher.log(RunStopping(reason))
        self._asked = StopReason(reason)

    # Step control

    def pause(self, *, items: bool = False) -> None:
        """Open no new flows and, with ``items``, begin no work on waiting items either. Work under way continues, and
        the time still counts. The journal does not keep a pause: a run that is resumed from it is not paused. If the
        run has ended, this does nothing. On the virtual clock, the pause has to be ended from within the clock's event
        loop.
        """
        if self._report is not None:
            return
        self._dispatcher.pause.begin(items=items)
        self._dispatcher.log(RunPaused(items))

    def unpause(self) -> None:
        """End a pause."""
        if self._dispatcher.pause.end():
            self._dispatcher.log(RunUnpaused())
            self._dispatcher.changed.fire()

    async def inject(
        self, artifact: Artifact, *, parents: Sequence[str] = (), attributes: Mapping[str, JSON] | None = None
    ) -> Candidate:
        """Give the algorithm a candidate from outside, which is treated like any other from its evaluation on.

        When this returns, the candidate is in the journal. ``parents`` are ids of candidates. The candidate counts as a
        proposal; neither the bound on open flows nor a pause delays it. During init, this waits until init is over.

        Raises:
            InputError: if the run accepts nothing more, its budget has no room, a parent is unknown, the attributes are
                not plain data, or the algorithm accepts no candidates from outside.
        """
        return await inject(self._dispatcher, self._executor, self._algorithm, artifact, parents, attributes or {})

    async def act(self, act: Act, by: str) -> None:
        """Perform an act of somebody who watches the run (`flowevolve.core.acts`); ``by`` says who that is.

        The journal records both. When this returns, they are on disk.

        Raises:
            InputError: if the act can't be performed; the message says why. The journal records this, too, unless the
                run has ended or the act itself is malformed.
        """
        act = checked(act, by)
        if self._report is not None:
            ended = self._report.stop_reason.said
            raise InputError(f"{act.act}: the run has ended ({ended}); to go on with it, use flowevolve resume")
        try:
            await self._steering.act(act, by)
        finally:
            await self._dispatcher.services.settled()

    @property
    def best(self) -> Candidate | None:
        return best_of(self._algorithm)

    @property
    def frontier(self) -> Sequence[Candidate]:
        """The candidates that no other one beats in every respect, as the algorithm sees it."""
        return frontier_of(self._algorithm)

    async def run(self) -> RunReport:
        """Run to the end. A failure of the backend or the task is put into the report; other errors are raised.

        Raises:
            EngineError: if the algorithm broke the engine's contract, or its own code failed. By then the run has
                ended, and its report contains the error, too.
        """
        error = await self._go()
        if error is not None:
            self._fail_by_algorithm(error)
        self._lifecycle.hold_open()
        failure = self._dispatcher.stopping.failure
        if not isinstance(failure, EngineError):  # else the algorithm is not asked any more
            self._dispatcher.services.keep_state()
        self._report = self._make_report()
        self._dispatcher.log(RunStopped(self._report.stop_reason, self._report.held))
        if isinstance(failure, EngineError):
            raise failure
        return self._report

    async def _go(self) -> BaseException | None:
        """Carry out the run; returns the exception that was raised in it, if any, unwrapped from exception groups."""
        before = RUN.set(RUN.get(self._algorithm.name))
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    await self._lifecycle.run(tasks)
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            return first_leaf(group)
        finally:
            RUN.reset(before)
        return None

    def _fail_by_algorithm(self, error: BaseException) -> None:
        """Note in the journal that the run failed, if it had begun and the algorithm is at fault; else raise this."""
        others = isinstance(error, FlowevolveError) and not isinstance(error, EngineError)
        if others or not isinstance(error, Exception):
            raise error
        failure = algorithm_error(self._algorithm, error)
        if not self._lifecycle.begun:
            raise failure
        self._dispatcher.stopping.fail(failure)

    def _make_report(self) -> RunReport:
        dispatcher = self._dispatcher
        cut_off = bool(self._lifecycle.held_at) and dispatcher.stopping.failure is None
        return RunReport(
            stop_reason=(self._asked if cut_off else None) or dispatcher.stopping.reason or CANCELLED,
            wall_seconds=self._events.elapsed(),
            pool=dispatcher.pool,
            spent=self._ledger.spent,
            overshoot={str(name): amount for name, amount in self._ledger.overshoot().items()},
            unchanged=dispatcher.counters.unchanged,
            accepted=dispatcher.counters.accepted,
            flow_limit=dispatcher.counters.flow_limit,
            staleness=dispatcher.counters.staleness,
            speculation=dispatcher.counters.speculation,
            racing=dispatcher.counters.racing,
            replies=dispatcher.counters.replies,
            stages={
                stage.name: StageReport(
                    dispatcher.counters.stages[stage.name],
                    self._executor.queue_stats(stage.name),
                    self._executor.workers(stage.name),
                )
                for stage in dispatcher.graph.stages
            },
            held_at=dict(self._lifecycle.held_at.most_common()),
            error=dispatcher.stopping.failure,
        )

    # The open form

    async def __aenter__(self) -> Self:
        """Start the run in the background. `events` yields its events, and `stop` ends it."""
        self._background = anyio.create_task_group()
        await self._background.__aenter__()
        self._background.start_soon(self.run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Wait for the run's end. What the block or the run raised is raised unchanged; if both did, as a group."""
        background, self._background = self._background, None
        if background is None:
            raise EngineError("the engine was not entered")
        if error is not None:
            self.cancel()
        try:
            return await background.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if len(group.exceptions) > 1:
                raise
            (failure,) = group.exceptions
        if failure is error:
            return False  # it propagates from here
        raise failure

    async def events(self, buffer: int = 65536) -> AsyncGenerator[Event]:
        """Yield the events of the run from now until its end, as they happen. For use inside ``async with engine``.

        Raises:
            EngineError: if the caller fell more than ``buffer`` events behind; the run itself never waits for a caller.
        """
        if self._background is None:
            raise EngineError("use events() inside 'async with engine:'")
        if self._report is not None:
            return
        send, receive = anyio.create_memory_object_stream[Event](buffer)
        lagging = False

        def forward(event: Event) -> None:
            nonlocal lagging
            try:
                send.send_nowait(event)
            except anyio.WouldBlock:
                lagging = True

        unsubscribe = self._events.subscribe(forward)
        try:
            async for event in receive:
                yield event
                if lagging:
                    raise EngineError(f"the caller of events() fell more than {buffer} events behind")
                if isinstance(event.body, RunStopped):
                    return
        finally:
            unsubscribe()  # first, so that no event is sent to a closed stream when the caller leaves early
            send.close()
            receive.close()

    @property
    def report(self) -> RunReport:
        """The finished run's report.

        Raises:
            EngineError: if the run has not ended.
        """
        if self._report is None:
            raise EngineError("the run has not ended yet")
        return self._report


def _executor(dispatcher: Dispatcher, mode: Mode, flows: int | FlowBound, *, allocated: bool) -> Executor:
    if mode == "stream":
        return Stream(dispatcher, FixedFlows(flows) if isinstance(flows, int) else flows, allocated=allocated)
    if not isinstance(flows, int):
        raise InputError("max_in_flight: in lockstep it has to be a number, not a policy")
    return Lockstep(dispatcher, flows)


def make_event_log(history: History | None) -> EventLog:
    """The event log of a new run or, with ``history``, of a run that goes on where the history ends."""
    if history is None:
        return EventLog(clock.now)
    return EventLog(clock.now, first=history.last.seq + 1, elapsed=history.last.time)
