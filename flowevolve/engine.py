"""The engine: one run of an algorithm from start to result.

A run goes through init, fit, admission, drain and finish. When a budget is spent or the algorithm has no more work,
open flows run to their end: they were paid for. When time is up or somebody asks to stop, they have ``drain_seconds``,
and finish as long again; cancelled, or failed, the run ends at once. Either way every item is accounted for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import anyio

from flowevolve.algorithm import Algorithm
from flowevolve.budget import Budget, Cost, Ledger
from flowevolve.context import StageContext, UpdateContext
from flowevolve.counts import RacingCounts, SpeculationCounts, StageCounts, StalenessCounts
from flowevolve.errors import EngineError, FlowevolveError, InputError
from flowevolve.events import Event, EventLog, Sink
from flowevolve.executor import Executor, Lockstep, Stream
from flowevolve.item import Item, Ticket
from flowevolve.llm.client import LLMClient
from flowevolve.llm.types import JSON
from flowevolve.policies.allocation import Allocation
from flowevolve.policies.staleness import Full, StalenessPolicy
from flowevolve.policies.stopping import StoppingPolicy
from flowevolve.pool import Pool
from flowevolve.queue import QueueStats
from flowevolve.runtime import Runtime
from flowevolve.stage import Emit, Graph, Stage, Trigger

Mode = Literal["stream", "sync"]


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage's part in a run."""

    counts: StageCounts
    queue: QueueStats | None
    workers: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did, apart from its LLM calls. ``error`` is what ended it, if it failed."""

    stop_reason: str
    wall_seconds: float
    pool: Pool
    spent: Cost
    overshoot: dict[str, float]
    accepted: int
    staleness: StalenessCounts
    speculation: SpeculationCounts
    racing: RacingCounts
    stages: dict[str, StageReport]
    held: int
    error: FlowevolveError | None


class Engine:
    """Runs one algorithm once.

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
        max_in_flight: int = 16,
        staleness: StalenessPolicy | None = None,
        allocation: Allocation | None = None,
        stopping: Sequence[StoppingPolicy] = (),
        seed: int = 0,
        drain_seconds: float = 30.0,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._algorithm = algorithm
        self._budget = budget
        self._drain_seconds = drain_seconds
        self._allocation = allocation
        self._events = EventLog(anyio.current_time)
        for sink in sinks:
            self._events.subscribe(sink)
        self._ledger = Ledger(budget)
        self._runtime = Runtime(
            algorithm,
            llm=llm,
            ledger=self._ledger,
            events=self._events,
            staleness=Full() if staleness is None else staleness,
            stopping=stopping,
            target_score=budget.target_score,
            seed=seed,
        )
        _check_gathering(self._runtime.graph, max_in_flight, mode)
        self._executor: Executor = (
            Stream(self._runtime, max_in_flight) if mode == "stream" else Lockstep(self._runtime, max_in_flight)
        )
        self._scope = anyio.CancelScope()
        self._runtime.abort = self._scope.cancel
        self._background: anyio.abc.TaskGroup | None = None
        self._held = 0
        self._report: RunReport | None = None

    @property
    def pool(self) -> Pool:
        return self._runtime.pool

    @property
    def stopping(self) -> bool:
        return self._runtime.stop_reason is not None

    def log(self, kind: str, data: Mapping[str, JSON]) -> None:
        """Write an event of something beside the engine into the run's log."""
        self._runtime.log(kind, data)

    def stop(self, reason: str = "stopped") -> None:
        """Admit nothing more; open flows have ``drain_seconds`` to end."""
        self._runtime.stop(reason, hurry=True)

    def fail(self, error: FlowevolveError) -> None:
        """End at once because of something beside the engine that the run can't do without; it is in the report."""
        self._runtime.fail(error)

    def cancel(self, reason: str = "cancelled") -> None:
        """End at once. Open items stay accounted for as held."""
        self._runtime.stop(reason)
        self._scope.cancel()

    async def run(self) -> RunReport:
        """Run to the end. A failure of the backend or the task is in the report; other errors are raised.

        Raises:
            EngineError: if the algorithm broke the engine's contract.
        """
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    await self._run(tasks)
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _first_leaf(group) from group
        self._executor.close()
        self._hold_open()
        self._report = self._make_report()
        self._runtime.log("run.stop", {"reason": self._report.stop_reason, "held": self._held})
        return self._report

    async def _run(self, tasks: anyio.abc.TaskGroup) -> None:
        runtime = self._runtime
        runtime.log("run.start", {"algorithm": self._algorithm.name, "stages": [s.name for s in runtime.graph.stages]})
        tasks.start_soon(self._watch_time)
        for trigger in runtime.graph.triggers:
            if trigger.every_seconds is not None:
                tasks.start_soon(self._watch_trigger, trigger, trigger.every_seconds)
        if isinstance(self._executor, Stream) and self._allocation is not None:
            tasks.start_soon(self._watch_load, self._executor, self._allocation)
        await self._bounded(self._evolve)
        await self._bounded(self._finish)

    async def _evolve(self) -> None:
        ticket = await self._phase("init", self._algorithm.init)
        async with anyio.create_task_group() as tasks:
            self._algorithm.fit(UpdateContext(self._runtime, tasks, "fit", ticket.id, 0, 0))
        await self._admit()
        await self._drain()

    async def _finish(self) -> None:
        await self._phase("finish", self._algorithm.finish)

    async def _bounded(self, part: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the run on workers of its own. Once time is up or somebody asked to stop it has
        ``drain_seconds``; what is open then is held.
        """
        async with anyio.create_task_group() as tasks:
            self._executor.start(tasks)
            tasks.start_soon(self._guard, tasks.cancel_scope)
            await part()
            tasks.cancel_scope.cancel()
        self._hold_open()

    def _hold_open(self) -> None:
        """Account for the items that will not be worked on any more."""
        for stage, item in self._runtime.flows.abandon():
            self._held += 1
            self._runtime.log("item.held", {"item": item.id, "stage": stage})

    async def _phase(self, name: str, emit: Callable[[UpdateContext], AsyncGenerator[Emit]]) -> Item[Ticket]:
        """Run a phase's emissions through the graph as one flow; returns its ticket."""

        async def run(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            if not isinstance(context, UpdateContext):
                raise EngineError(f"phase {name} needs a context that can commit")
            async with aclosing(emit(context)) as emissions:
                async for emission in emissions:
                    yield emission

        ticket = self._runtime.open_flow(name, Ticket(), Cost(), phase=True)
        await self._runtime.work(Stage(name, run, commits=True), [ticket], 0, self._executor.put)
        await self._drain()
        return ticket

    async def _admit(self) -> None:
        """Open flows while the budget, the bound on open flows and the algorithm allow it."""
        runtime, executor, turns = self._runtime, self._executor, self._runtime.turns
        turns.is_open = True
        while runtime.admitting:
            if len(runtime.flows) >= executor.width:
                await executor.advance()
            elif turns.ready:
                await self._admit_one(turns.next())
            elif runtime.flows:
                await executor.advance()
            elif any(trigger.every_seconds is not None for trigger in runtime.graph.triggers):
                await runtime.changed.wait()
            else:
                runtime.stop("stalled")
        turns.is_open = False

    async def _admit_one(self, trigger: Trigger | None) -> None:
        """Open a flow for this trigger, or an ordinary one, if there is budget for it; else wait for some."""
        runtime = self._runtime
        estimate = self._algorithm.estimate(None if trigger is None else trigger.name)
        refusal = self._ledger.refusal(estimate)
        if refusal is None:
            stage = runtime.graph.entry if trigger is None else trigger.stage
            ticket = runtime.open_flow(stage, runtime.turns.ticket(trigger), estimate)
            await self._executor.put(stage, ticket)
        elif runtime.flows:
            await self._executor.advance()
        elif trigger is not None:
            runtime.turns.drop(trigger)
        else:
            runtime.stop(refusal)

    async def _drain(self) -> None:
        while self._runtime.flows:
            await self._executor.advance()

    async def _watch_time(self) -> None:
        limit = self._budget.time_limit()
        if limit is not None:
            await anyio.sleep(limit)
            self._runtime.stop("seconds", hurry=True)

    async def _watch_trigger(self, trigger: Trigger, period: float) -> None:
        while True:
            await anyio.sleep(period)
            self._runtime.fire(trigger)

    async def _watch_load(self, stream: Stream, policy: Allocation) -> None:
        """Ask the allocation policy at its interval, and do as it says."""
        while True:
            await anyio.sleep(policy.interval_seconds)
            for change in policy.decide(stream.load(policy.interval_seconds)):
                if stream.resize(change.stage, change.by):
                    workers = stream.workers(change.stage)
                    self._runtime.log(
                        "allocation.changed",
                        {"stage": change.stage, "by": change.by, "workers": workers, "reason": change.reason},
                    )

    async def _guard(self, scope: anyio.CancelScope) -> None:
        """Once time is up or somebody asked to stop, bound the time that what is in this scope takes to end."""
        while not self._runtime.hurry:
            await self._runtime.changed.wait()
        await anyio.sleep(self._drain_seconds)
        self._runtime.log("run.drain_ended", {"open_flows": len(self._runtime.flows)})
        scope.cancel()

    def _make_report(self) -> RunReport:
        runtime = self._runtime
        return RunReport(
            stop_reason=runtime.stop_reason or "cancelled",
            wall_seconds=self._events.elapsed(),
            pool=runtime.pool,
            spent=self._ledger.spent,
            overshoot={str(name): amount for name, amount in self._ledger.overshoot().items()},
            accepted=runtime.tally.accepted,
            staleness=runtime.tally.staleness,
            speculation=runtime.tally.speculation,
            racing=runtime.tally.racing,
            stages={
                stage.name: StageReport(
                    runtime.tally.stages[stage.name],
                    self._executor.queue_stats(stage.name),
                    self._executor.workers(stage.name),
                )
                for stage in runtime.graph.stages
            },
            held=self._held,
            error=runtime.failure,
        )

    # The open form

    async def __aenter__(self) -> Self:
        """Start the run in the background; follow it with `events`, end it with `stop`."""
        self._background = anyio.create_task_group()
        await self._background.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._background is None:
            raise EngineError("the engine was not entered")
        if error is not None:
            self.cancel()
        return await self._background.__aexit__(kind, error, traceback)

    async def events(self, buffer: int = 65536) -> AsyncGenerator[Event]:
        """Start the run and yield its events as they happen, until it ends. Use inside ``async with engine``.

        Raises:
            EngineError: if the caller fell more than ``buffer`` events behind; the run itself never waits for a caller.
        """
        if self._background is None:
            raise EngineError("use events() inside 'async with engine:'")
        send, receive = anyio.create_memory_object_stream[Event](buffer)
        lagging = False

        def forward(event: Event) -> None:
            nonlocal lagging
            try:
                send.send_nowait(event)
            except anyio.WouldBlock:
                lagging = True

        unsubscribe = self._events.subscribe(forward)

        async def run() -> None:
            with send:
                await self.run()

        self._background.start_soon(run)
        try:
            async for event in receive:
                yield event
                if lagging:
                    raise EngineError(f"the caller of events() fell more than {buffer} events behind")
        finally:
            unsubscribe()  # first: an event must not meet a closed stream when the caller leaves early
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


def _check_gathering(graph: Graph, width: int, mode: Mode) -> None:
    for stage in graph.stages:
        if stage.gather > width:
            setting = "max_in_flight" if mode == "stream" else "width"
            raise InputError(
                f"algorithm.{setting}: is {width}, but stage {stage.name!r} gathers {stage.gather} items at a time; "
                f"set it to at least {stage.gather}"
            )


def _first_leaf(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
