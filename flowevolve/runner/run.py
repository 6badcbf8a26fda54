"""Running a configuration: from a checked config to a result on disk and in hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.lowlevel

from flowevolve._util.clock import in_thread, in_thread_unless_virtual, now
from flowevolve._util.errors import EngineError
from flowevolve._util.intervals import mean_interval
from flowevolve._util.logger import RUN, logger, logging_notes
from flowevolve._util.tasks import beside
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.run import Config, modules_beside
from flowevolve.core.calls import CallRecord, Observer
from flowevolve.core.events import Event, EventLog, Sink
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.pool import SEED
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import OnMachines, Task
from flowevolve.engine.contract import found_by, warn_of_candidates
from flowevolve.engine.engine import Engine, make_event_log
from flowevolve.engine.recovery.recovery import History
from flowevolve.engine.recovery.state import Start
from flowevolve.engine.report import RunReport
from flowevolve.engine.services import nothing_to_settle
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.llm.client.cache import ResponseCache
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.scheduler import Scheduler, SchedulerStats
from flowevolve.runner.assemble import make_allocation, make_stopping
from flowevolve.runner.clients import Clients, SideTask, open_clients
from flowevolve.runner.ended_runs import Resumption
from flowevolve.runner.held_out import hold_out, hold_out_or_leave
from flowevolve.runner.in_use import in_use
from flowevolve.runner.llm import check_roles, open_response_cache
from flowevolve.runner.plan import Plan, ProvidedObjects, flows_of, make_plan, start_of
from flowevolve.runner.result import Result
from flowevolve.runner.result_parts import Best
from flowevolve.runner.trust import find_trust
from flowevolve.runner.watcher_errors import WatcherErrors
from flowevolve.runner.watching import PageProcess
from flowevolve.tasks.identity import identity
from flowevolve.telemetry.role_replies import roles_cut, roles_empty
from flowevolve.vllm.server import ServerListener

TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Watchers:
    """Callbacks for a run's events and LLM calls, for the servers that are started for it, and for its traffic.

    What a watcher raises never counts as a failure of a call, the task or a server: it ends the run and comes out as it
    is. The journal is written before any watcher is called, so `flowevolve.resume` goes on from there.
    """

    events: Sequence[Sink] = ()
    calls: Sequence[Observer] = ()
    servers: Sequence[ServerListener] = ()
    traffic: Sequence[Callable[[Traffic], None]] = ()
    """Called, as the run begins, with the object that distributes its requests."""
    notes: Sequence[Callable[[str], None]] = ()
    """Called with a line on what is worth knowing: that scores of another run are taken over though the evaluator has
    changed, or that a machine for programs is awaited, then arrives, or is lost. Without callbacks it is logged.
    """
    pages: Sequence[Callable[[str], None]] = ()
    """Called with the address of the live page, if the configuration asks for one; without callbacks it is logged."""
    ticks: Sequence[Callable[[float, SchedulerStats], None]] = ()
    """Called once a second with the time since the run began, and counts of requests that wait and are under way."""

    def kept_by(self, errors: WatcherErrors) -> Watchers:
        """These, wrapped so that what they raise amid the run's work is kept from it. The others stay as they are."""
        return replace(
            self,
            events=[errors.kept_from(tell) for tell in self.events],
            calls=[errors.kept_from(tell) for tell in self.calls],
            servers=[errors.kept_from(tell) for tell in self.servers],
            notes=[errors.kept_from(tell) for tell in self.notes],
        )

    async def tick(self, scheduler: Scheduler, engine: Engine) -> None:
        """A side task: call ``ticks`` once a second, until it is cancelled."""
        while True:
            await anyio.sleep(TICK_SECONDS)
            for tell in self.ticks:
                tell(now() - engine.origin, scheduler.stats())


class RunRecord(Protocol):
    """Where a run leaves its record."""

    @property
    def path(self) -> Path: ...
    def event(self, event: Event) -> None: ...
    def call(self, record: CallRecord) -> None: ...
    def begin(self, origin: float) -> None:
        """Take the loop's time at which the run began."""

    async def settled(self) -> None: ...
    def write_result(self, result: Mapping[str, object]) -> None: ...
    def close(self) -> None: ...


async def run(
    config: Config,
    *,
    task: Task | None = None,
    staleness: StalenessPolicy | None = None,
    out: Path | str | None = None,
    events: bool = False,
    watchers: Watchers | None = None,
    side_task: SideTask | None = None,
) -> Result:
    """Run a configuration to its end. ``task`` and ``staleness``, given as objects, replace what the config names.

    Raises:
        InputError: if the configuration can't be run.
        BackendUnreachableError, BackendRefusedError, TaskFailedError: if the run failed; what was done so far is in
            ``out``, and `flowevolve.resume` goes on with it.
    """
    given = ProvidedObjects(task, staleness)
    plan = make_plan(config, given)
    check_roles(plan.config)
    return await run_plan(plan, _keep(plan, out, events=events), watchers or Watchers(), side_task)


def _keep(plan: Plan, out: Path | str | None, *, events: bool = False) -> Callable[[], RunRecord] | None:
    """The function that opens the directory in which a run leaves its record; None if it leaves none."""
    if out is None:
        return None
    table, sync = plan.config.model_dump(mode="json"), plan.config.journal.sync
    return partial(RunDirectory, Path(out), table, events=events, sync=sync, given=plan.given.names())


async def run_plan(
    plan: Plan,
    keep: Callable[[], RunRecord] | None,
    watchers: Watchers,
    side_task: SideTask | None,
    history: History | None = None,
) -> Result:
    """Run a plan to its end, from the start or from where ``history`` ends, which is closed.

    ``keep`` opens the record that the run leaves, once the configuration has turned out to be sound. It may block.
    """
    async with _opened(plan, keep, watchers, history) as opened:
        side_tasks = [*([side_task] if side_task is not None else []), *opened.side_tasks]
        result = await opened.finish(await _run_and_follow(opened.engine, side_tasks))
        if result.report.error is not None:
            raise result.report.error  # in the block, so that the contexts in it see the error
    await anyio.lowlevel.checkpoint()  # if asyncio has cancelled this task at its last step, that takes effect here
    return result


@asynccontextmanager
async def open_run(
    config: Config,
    *,
    task: Task | None = None,
    staleness: StalenessPolicy | None = None,
    out: Path | str | None = None,
    watchers: Watchers | None = None,
) -> AsyncIterator[Engine]:
    """Run a configuration beside a block of code, which gets the run's engine.

    At the end of the block the run is awaited and its result is written; to end it sooner, stop or cancel the engine.
    What the block raises comes out as it is.

    Raises:
        InputError, BackendUnreachableError, BackendRefusedError, TaskFailedError: as `run`.
    """
    given = ProvidedObjects(task, staleness)
    plan = make_plan(config, given)
    check_roles(plan.config)
    async with _opened(plan, _keep(plan, out), watchers or Watchers(), None) as opened:
        async with beside() as tasks:
            for side_task in opened.side_tasks:
                tasks.start_soon(side_task, opened.engine)
            with _left_to_the_report(opened.engine):
                async with opened.engine:
                    yield opened.engine
        await opened.finish(opened.engine.report)
        if opened.engine.report.error is not None:
            raise opened.engine.report.error


@dataclass(frozen=True, slots=True)
class _Opened:
    """A run that is ready to begin."""

    plan: Plan
    engine: Engine
    clients: Clients
    keeping: RunRecord | None
    history: History | None
    trust: ScoreTrust | None
    resumption: Resumption
    side_tasks: Sequence[SideTask]
    """Tasks to run alongside the engine."""

    async def finish(self, report: RunReport) -> Result:
        """Make the result of the run, which has ended, and write it. If the run has failed, its error gets it, too."""
        config, algorithm, clients, history = self.plan.config, self.plan.algorithm, self.clients, self.history
        client = clients.llm
        traffic = clients.traffic.stats()
        llm, mean_in_flight = client.account.totals(), clients.scheduler.stats().mean_in_flight
        if history is not None and report.wall_seconds:
            mean_in_flight = llm.latency_seconds / report.wall_seconds
        by_model = clients.by_model()
        confirmed = list(report.pool.snapshot().candidates(vetoed=True))
        seed = next((each for each in confirmed if each.operator == SEED), None)
        best, fresh, frontier = found_by(algorithm, report.error)
        if report.error is None:
            warn_of_candidates(algorithm, confirmed, best)
        cancelled, held_out = client.cancelled, None
        tested = config.held_out and report.error is None and not report.stop_reason.at_once
        if tested and seed is not None and best is not None:
            # A run with a directory can be resumed, and so can its test.
            kept = self.keeping is not None
            score = partial(hold_out, earlier=self.plan.held_out) if kept else hold_out_or_leave
            held_out = await score(self.plan.task, seed, best, client, history)
        interval = mean_interval(list(best.scores.values())) if best is not None and best.scores else None
        result = Result(
            algorithm=algorithm.name,
            mode=config.algorithm.mode,
            task=self.plan.task.name,
            backend=config.llm.backend,
            simulated=config.llm.backend in SIMULATED_BACKENDS and llm.any_calls,
            stop_reason=report.stop_reason,
            wall_seconds=report.wall_seconds,
            proposals=report.spent.proposals,
            accepted=report.accepted,
            seed_score=None if seed is None else seed.mean_score,
            best=None if best is None else Best.of(best, interval, fresh, seed=seed),
            frontier=[Best.of(each) for each in frontier],
            source=report,
            llm=llm,
            by_model=by_model,
            mean_in_flight=mean_in_flight,
            cancelled=cancelled,
            traffic=traffic,
            cut_replies=roles_cut(clients.replies.by_role),
            empty_replies=roles_empty(clients.replies.by_role),
            failed_rollouts=clients.failures.found,
            server=clients.observed if clients.observed.samples else None,
            held_out=held_out,
            directory=None if self.keeping is None else self.keeping.path,
            score_trust=self.trust,
            reached_before=self.resumption.reached_before,
        )
        if self.keeping is not None:
            await self.keeping.settled()
            self.keeping.write_result(result.to_json())
        if report.error is not None:
            report.error.of_run = result
        return result


@asynccontextmanager
async def _opened(
    plan: Plan, keep: Callable[[], RunRecord] | None, watchers: Watchers, history: History | None
) -> AsyncIterator[_Opened]:
    config = plan.config
    async with AsyncExitStack() as stack:
        if history is not None:
            stack.callback(history.close)
        stack.enter_context(modules_beside(config))
        errors = WatcherErrors()
        watchers = watchers.kept_by(errors)
        await stack.enter_async_context(errors.ending())
        if isinstance(plan.task, OnMachines):
            plan.task.watch_machines(partial(_note, watchers))
        await stack.enter_async_context(in_use(plan.task))
        await stack.enter_async_context(in_use(plan.algorithm))
        cache = await stack.enter_async_context(open_response_cache(config))
        page = PageProcess()
        stack.push_async_callback(page.end)  # after the directory is closed, so that the page says that the run ended
        keeping = None if keep is None else await in_thread_unless_virtual(keep)
        if keeping is not None:
            stack.callback(keeping.close)
            stack.callback(RUN.reset, RUN.set(str(keeping.path)))
            if config.watch:
                _tell_page(watchers, await page.start(keeping.path))
                (await stack.enter_async_context(beside())).start_soon(page.listen)
        if history is not None:
            stack.callback(history.close)  # before the journal, which it reads
        events = make_event_log(history)
        resumption = Resumption()
        for sink in [resumption.event, *([keeping.event] if keeping is not None else []), *watchers.events]:
            events.subscribe(sink)
        if isinstance(plan.task, OnMachines):
            plan.task.log_machines(events.emit)
        clients = await stack.enter_async_context(_clients(plan, watchers, cache, keeping, events))
        await clients.llm.check()
        start = await start_of(plan, partial(_note, watchers)) if history is None or not history.begun else None
        trust = await find_trust(plan.task, plan.trust)
        engine = _make_engine(plan, clients, events, keeping, history, start, trust)
        if history is not None:
            await in_thread(clients.restore, history)
        if keeping is not None:
            keeping.begin(engine.origin)
        for watch in watchers.traffic:
            watch(clients.traffic)
        side_tasks = [*clients.side_tasks, page.side_task]
        if watchers.ticks:
            side_tasks.append(partial(watchers.tick, clients.scheduler))
        yield _Opened(plan, engine, clients, keeping, history, trust, resumption, side_tasks)


def _make_engine(
    plan: Plan,
    clients: Clients,
    events: EventLog,
    keeping: RunRecord | None,
    history: History | None,
    start: Start | None,
    trust: ScoreTrust | None,
) -> Engine:
    config = plan.config
    return Engine(
        plan.algorithm,
        llm=clients.llm,
        budget=config.budget,
        mode=config.algorithm.mode,
        max_in_flight=flows_of(config, plan.algorithm),
        staleness=plan.staleness,
        allocation=make_allocation(config),
        stopping=make_stopping(config),
        most_in_vain=config.stopping.fruitless,
        templates=plan.templates,
        seed=config.seed,
        drain_seconds=config.drain_seconds,
        events=events,
        sinks=clients.sinks,
        settled=nothing_to_settle if keeping is None else keeping.settled,
        history=history,
        start=start,
        about=replace(
            identity(plan.task, type(plan.algorithm)),
            given=tuple(plan.given.names()),
            score_trust=None if trust is None else trust.kind,
            shared_because=None if trust is None else trust.why or None,
            measured_on=plan.task.measured_on if isinstance(plan.task, OnMachines) else None,
        ),
    )


def _note(watchers: Watchers, line: str) -> None:
    for tell in watchers.notes or [logging_notes("run.note")]:
        tell(line)


def _tell_page(watchers: Watchers, address: str) -> None:
    for tell in watchers.pages or [lambda at: logger().info("the live page", address=at)]:
        tell(address)


def _clients(
    plan: Plan, watchers: Watchers, cache: ResponseCache | None, keeping: RunRecord | None, events: EventLog
) -> AbstractAsyncContextManager[Clients]:
    return open_clients(
        plan.config,
        plan.roles,
        plan.prices,
        plan.open_roles,
        cache,
        log=events.emit,
        observers=watchers.calls if keeping is None else [keeping.call, *watchers.calls],
        servers=watchers.servers,
        path=None if keeping is None else keeping.path,
    )


async def _run_and_follow(engine: Engine, side_tasks: Sequence[SideTask]) -> RunReport:
    async with beside() as tasks:
        for side_task in side_tasks:
            tasks.start_soon(side_task, engine)
        with _left_to_the_report(engine):
            await engine.run()
    return engine.report


@contextmanager
def _left_to_the_report(engine: Engine) -> Iterator[None]:
    """Suppress the error that ended the run: it is raised once the result is written."""
    try:
        yield
    except EngineError as error:
        if not engine.ended or engine.report.error is not error:
            raise
