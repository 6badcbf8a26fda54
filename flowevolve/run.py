"""Running a configuration: from a checked config to a result on disk and in hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

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
from flowevolve.config import Config
from flowevolve.context import ChatFunction
from flowevolve.engine import Engine, RunReport
from flowevolve.errors import InputError
from flowevolve.events import Sink
from flowevolve.held_out import score_held_out
from flowevolve.llm.accounting import Account
from flowevolve.llm.admission import Admission, Observed, follow_server
from flowevolve.llm.cache import ResponseCache
from flowevolve.llm.client import CallRecord, CallScope, LLMClient, Observer
from flowevolve.llm.gate import Gate
from flowevolve.llm.retry import RetryPolicy
from flowevolve.llm.types import ChatReply, Message, Transport
from flowevolve.own_server import open_server, starts_vllm
from flowevolve.policies.admission import Fixed
from flowevolve.policies.staleness import StalenessPolicy
from flowevolve.pool import Candidate
from flowevolve.result import Best, HeldOut, Result
from flowevolve.store.rundir import RunDirectory
from flowevolve.tasks.base import Task
from flowevolve.vllm.server import Tell
from flowevolve.vllm.serving import check_vllm

Follow = Callable[[Engine], Coroutine[object, object, None]]
"""Something to do beside a run, such as listening for Ctrl-C; cancelled when the run ends."""


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who is told of a run's events and LLM calls, and of the servers that are started for it."""

    events: Sequence[Sink] = ()
    calls: Sequence[Observer] = ()
    servers: Sequence[Tell] = ()


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
            ``out``.
    """
    task = make_task(config) if task is None else task
    algorithm = make_algorithm(config, task)
    policy = make_staleness(config) if staleness is None else staleness
    if config.held_out and not task.data.test:
        raise InputError(f"held_out: task {task.name!r} has no test split")
    watchers = watchers or Watchers()
    async with open_response_cache(config) as cache, _clients(config, watchers, cache, out, events) as clients:
        client, directory = clients.llm, clients.directory
        await client.check()
        sections = config.algorithm
        engine = Engine(
            algorithm,
            llm=client,
            budget=config.budget,
            mode=sections.mode,
            max_in_flight=sections.max_in_flight if sections.mode == "stream" else sections.width,
            staleness=policy,
            allocation=make_allocation(config),
            stopping=make_stopping(config),
            seed=config.seed,
            drain_seconds=config.drain_seconds,
            sinks=[*([directory.event] if directory is not None else []), *watchers.events],
        )
        report = await _run_and_follow(engine, [*([follow] if follow is not None else []), *clients.follows])
        mean_in_flight, cancelled = clients.gate.stats().mean_in_flight, client.cancelled
        llm = client.account.totals()
        seed = next((each for each in report.pool.snapshot().candidates() if each.operator == "seed"), None)
        best = algorithm.best()
        held_out = None
        if config.held_out and seed is not None and best is not None and report.error is None:
            held_out = await _hold_out(task, seed, best, _plain_chat(client))
        result = Result(
            algorithm=algorithm.name,
            mode=sections.mode,
            task=task.name,
            backend=config.llm.backend,
            simulated=config.llm.backend == "sim",
            seed_score=None if seed is None else seed.mean_score,
            best=None if best is None else Best(best.id, best.mean_score, best.artifact.components, best.artifact),
            report=report,
            llm=llm,
            mean_in_flight=mean_in_flight,
            cancelled=cancelled,
            server=clients.observed if clients.observed.looks else None,
            held_out=held_out,
        )
        if directory is not None:
            directory.write_result(result.to_json())
    if report.error is not None:
        raise report.error
    return result


async def check(config: Config, task: Task | None = None) -> Task:
    """Build everything a run needs and reach its backends, without spending a token; returns the task.

    Of a vLLM that the run would start itself, only that it could be started.

    Raises:
        InputError, BackendUnreachableError, BackendRefusedError: as `run` would.
    """
    task = make_task(config) if task is None else task
    make_algorithm(config, task).graph()
    make_staleness(config)
    make_allocation(config)
    if starts_vllm(config):
        await anyio.to_thread.run_sync(check_vllm, config.vllm)
        return task
    async with open_response_cache(config) as cache, _clients(config, Watchers(), cache, None, False) as clients:
        await clients.llm.check()
    return task


@dataclass(frozen=True, slots=True)
class _Clients:
    """What a run talks to: its LLM client and what goes with it, and its directory."""

    llm: LLMClient
    gate: Gate
    directory: RunDirectory | None
    follows: Sequence[Follow]
    """What is to go on beside the engine."""
    observed: Observed


@asynccontextmanager
async def _clients(
    config: Config, watchers: Watchers, cache: ResponseCache | None, out: Path | None, events: bool
) -> AsyncIterator[_Clients]:
    """Closed in the right order: all calls end before the journal does."""
    admission, order = make_admission(config), make_order(config)
    directory = RunDirectory(out, config.model_dump(mode="json"), events=events) if out is not None else None
    observers = [*([directory.journal.call] if directory is not None else []), *watchers.calls]

    def observe(record: CallRecord) -> None:
        for observer in observers:
            observer(record)

    try:
        async with (
            open_server(config, out, watchers.servers) as server,
            open_roles(server.config, server.identity) as roles,
        ):
            gate = Gate(admission.first(config.llm.concurrency), order)
            retry = RetryPolicy(patience_seconds=config.llm.patience_seconds)
            client = LLMClient(roles, gate, retry, config.seed, observe, Account(prices(config)), cache)
            observed = Observed()
            transport = next(iter(roles.values())).transport
            follows: list[Follow] = [] if server.news is None else [partial(server.follow, observed=observed)]
            if config.llm.backend == "vllm" or not isinstance(admission, Fixed):
                follows.append(partial(_admit, server.config, admission, client, gate, transport, observed))
            yield _Clients(client, gate, directory, follows, observed)
    finally:
        if directory is not None:
            directory.close()


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


def _plain_chat(client: LLMClient) -> ChatFunction:
    async def chat(
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        return await client.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature)

    return chat
