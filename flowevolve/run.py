"""Running a configuration: from a checked config to a result on disk and in hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio

from flowevolve.algorithm import Algorithm
from flowevolve.build import (
    make_admission,
    make_algorithm,
    make_allocation,
    make_order,
    make_staleness,
    make_stopping,
    make_task,
    open_probe,
    open_response_cache,
    open_roles,
    prices,
)
from flowevolve.clock import in_thread
from flowevolve.config import Config
from flowevolve.context import ChatFunction
from flowevolve.effects import nothing_to_settle
from flowevolve.engine import Engine, RunReport
from flowevolve.errors import InputError
from flowevolve.events import Event, Sink
from flowevolve.held_out import HELD_OUT, score_held_out
from flowevolve.llm.accounting import Account
from flowevolve.llm.admission import Admission, Observed, follow_server
from flowevolve.llm.cache import ResponseCache
from flowevolve.llm.client import CallRecord, CallScope, LLMClient, Observer, Role
from flowevolve.llm.gate import Gate
from flowevolve.llm.retry import RetryPolicy
from flowevolve.llm.types import JSON, ChatReply, Message, Transport
from flowevolve.playback import Playback
from flowevolve.policies.admission import Fixed
from flowevolve.policies.staleness import StalenessPolicy
from flowevolve.pool import Candidate
from flowevolve.recovery import History
from flowevolve.result import Best, HeldOut, Result
from flowevolve.store.rundir import RunDirectory
from flowevolve.tasks.base import Task

Follow = Callable[[Engine], Coroutine[object, object, None]]
"""Something to do beside a run, such as listening for Ctrl-C; cancelled when the run ends."""
OpenRoles = Callable[[Config], AbstractAsyncContextManager[Mapping[str, Role]]]
"""Opens the LLM roles of a run."""


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who is told of a run's events and LLM calls."""

    events: Sequence[Sink] = ()
    calls: Sequence[Observer] = ()


class Keeping(Protocol):
    """Where a run leaves its record."""

    def event(self, event: Event) -> None: ...
    def call(self, record: CallRecord) -> None: ...
    def begin(self, origin: float) -> None:
        """Told the loop's time at which the run began."""

    async def settled(self) -> None: ...
    def write_result(self, result: Mapping[str, object]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Given:
    """What was given as an object, instead of by its name in the configuration."""

    task: Task | None = None
    staleness: StalenessPolicy | None = None

    def names(self) -> list[JSON]:
        """What was: a run can be gone on with only if it is given again."""
        return [name for name in ("task", "staleness") if getattr(self, name) is not None]


async def run(
    config: Config,
    *,
    task: Task | None = None,
    staleness: StalenessPolicy | None = None,
    out: Path | None = None,
    events: bool = False,
    watchers: Watchers | None = None,
    follow: Follow | None = None,
) -> Result:
    """Run a configuration to its end. ``task`` and ``staleness``, given as objects, stand in for what the config names.

    Raises:
        InputError: if the configuration can't be run.
        BackendUnreachableError, BackendRefusedError, TaskFailedError: if the run failed; what was done so far is in
            ``out``, and `flowevolve.resume` goes on with it.
    """
    given = Given(task, staleness)
    plan = make_plan(config, given)
    keeping = None
    if out is not None:
        keeping = RunDirectory(out, config.model_dump(mode="json"), events=events, sync=config.journal.sync)
    return await carry_out(plan, keeping, watchers or Watchers(), follow)


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration that can be run, with all it names."""

    config: Config
    given: Given
    task: Task
    algorithm: Algorithm
    staleness: StalenessPolicy
    roles: OpenRoles = open_roles


def make_plan(config: Config, given: Given) -> Plan:
    """Raises:
    InputError: if the configuration can't be run.
    """
    task = make_task(config) if given.task is None else given.task
    if config.held_out and not task.data.test:
        raise InputError(f"held_out: task {task.name!r} has no test split")
    staleness = make_staleness(config) if given.staleness is None else given.staleness
    return Plan(config, given, task, make_algorithm(config, task), staleness)


async def carry_out(
    plan: Plan, keeping: Keeping | None, watchers: Watchers, follow: Follow | None, history: History | None = None
) -> Result:
    """Run a plan to its end, from the start or from where ``history`` ends; closes ``keeping``."""
    try:
        result = await _carry_out(plan, keeping, watchers, follow, history)
    finally:
        if keeping is not None:
            keeping.close()
    if result.report.error is not None:
        raise result.report.error
    return result


async def _carry_out(
    plan: Plan, keeping: Keeping | None, watchers: Watchers, follow: Follow | None, history: History | None
) -> Result:
    config, algorithm = plan.config, plan.algorithm
    async with open_response_cache(config) as cache, _clients(plan.roles, config, watchers, cache, keeping) as clients:
        client = clients.llm
        await client.check()
        sections = config.algorithm
        engine = Engine(
            algorithm,
            llm=client,
            budget=config.budget,
            mode=sections.mode,
            max_in_flight=sections.max_in_flight if sections.mode == "stream" else sections.width,
            staleness=plan.staleness,
            allocation=make_allocation(config),
            stopping=make_stopping(config),
            seed=config.seed,
            drain_seconds=config.drain_seconds,
            sinks=[*([keeping.event] if keeping is not None else []), *watchers.events],
            settled=nothing_to_settle if keeping is None else keeping.settled,
            history=history,
            about={"task": plan.task.name, "given": plan.given.names()},
        )
        if history is not None:
            client.account.restore(await in_thread(history.spent))
        if keeping is not None:
            keeping.begin(engine.origin)
        report = await _run_and_follow(engine, [each for each in (follow, clients.admit) if each is not None])
        llm, mean_in_flight = client.account.totals(), clients.gate.stats().mean_in_flight
        if history is not None and report.wall_seconds:
            mean_in_flight = llm.latency_seconds / report.wall_seconds
        seed = next((each for each in report.pool.snapshot().candidates() if each.operator == "seed"), None)
        best = algorithm.best()
        cancelled, held_out = client.cancelled, None
        if config.held_out and seed is not None and best is not None and report.error is None:
            held_out = await _hold_out(plan.task, seed, best, await _plain_chat(client, history, seed, best))
        result = Result(
            algorithm=algorithm.name,
            mode=sections.mode,
            task=plan.task.name,
            backend=config.llm.backend,
            simulated=config.llm.backend in ("sim", "replay"),
            seed_score=None if seed is None else seed.mean_score,
            best=None if best is None else Best(best.id, best.mean_score, best.artifact.components, best.artifact),
            report=report,
            llm=llm,
            mean_in_flight=mean_in_flight,
            cancelled=cancelled,
            server=clients.observed if clients.observed.looks else None,
            held_out=held_out,
        )
        if keeping is not None:
            await keeping.settled()
            keeping.write_result(result.to_json())
    return result


async def check(config: Config, task: Task | None = None) -> Task:
    """Build everything a run needs and reach its backends, without spending a token; returns the task.

    Raises:
        InputError, BackendUnreachableError, BackendRefusedError: as `run` would.
    """
    task = make_task(config) if task is None else task
    make_algorithm(config, task).graph()
    make_staleness(config)
    make_allocation(config)
    async with open_response_cache(config) as cache, _clients(open_roles, config, Watchers(), cache, None) as clients:
        await clients.llm.check()
    return task


@dataclass(frozen=True, slots=True)
class _Clients:
    """What a run talks to: its LLM client and what goes with it."""

    llm: LLMClient
    gate: Gate
    admit: Follow | None
    """The loop that keeps the gate's limit, where there is anything to follow."""
    observed: Observed


@asynccontextmanager
async def _clients(
    opening: OpenRoles, config: Config, watchers: Watchers, cache: ResponseCache | None, keeping: Keeping | None
) -> AsyncIterator[_Clients]:
    observers = [*([keeping.call] if keeping is not None else []), *watchers.calls]

    def observe(record: CallRecord) -> None:
        for observer in observers:
            observer(record)

    admission, order = make_admission(config), make_order(config)
    async with opening(config) as roles:
        gate = Gate(admission.first(config.llm.concurrency), order)
        retry = RetryPolicy(patience_seconds=config.llm.patience_seconds)
        client = LLMClient(roles, gate, retry, config.seed, observe, Account(prices(config)), cache)
        observed = Observed()
        transport = next(iter(roles.values())).transport
        admit = partial(_admit, config, admission, client, gate, transport, observed)
        yield _Clients(client, gate, None if isinstance(admission, Fixed) else admit, observed)


async def _admit(
    config: Config,
    admission: Admission,
    client: LLMClient,
    gate: Gate,
    transport: Transport,
    observed: Observed,
    engine: Engine,
) -> None:
    """Keep the gate's limit in line with what the server can take."""
    async with open_probe(config, transport, admission) as probe:
        await follow_server(
            gate,
            admission,
            probe,
            client.pace,
            most=config.llm.concurrency,
            interval_seconds=config.scheduler.admission.interval_seconds,
            log=engine.log,
            observed=observed,
        )


async def _run_and_follow(engine: Engine, follows: Sequence[Follow]) -> RunReport:
    if not follows:
        return await engine.run()
    async with anyio.create_task_group() as tasks:
        for follow in follows:
            tasks.start_soon(follow, engine)
        report = await engine.run()
        tasks.cancel_scope.cancel()
    return report


async def _hold_out(task: Task, seed: Candidate, best: Candidate, chat: ChatFunction) -> HeldOut:
    candidates = [seed] if best.id == seed.id else [seed, best]
    scores = await score_held_out(task, candidates, chat)
    return HeldOut(len(task.data.test), scores[0], scores[-1])


async def _plain_chat(client: LLMClient, history: History | None, *candidates: Candidate) -> ChatFunction:
    """Calls that belong to no stage; those that were answered before the run was interrupted are not made again."""
    playback = Playback()
    if history is not None:
        works = [(HELD_OUT, candidate.id) for candidate in candidates]
        playback = Playback(await in_thread(lambda: list(history.calls(works))))

    async def chat(
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        known = await playback.reply(scope, messages)
        if known is not None:
            return known
        return await client.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature)

    return chat
