"""What a run talks to: the LLM client, its scheduler and traffic, and a server of its own if it starts one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from flowevolve._util.errors import EngineError
from flowevolve._util.tasks import Pulse
from flowevolve.config.roles import ResolvedRole
from flowevolve.config.run import Config
from flowevolve.core.calls import HELD_OUT, CallRecord, Observer
from flowevolve.core.events import Event, Log, Sink, log_nothing
from flowevolve.core.model import Transport
from flowevolve.engine.engine import Engine
from flowevolve.engine.recovery.recovery import History
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.llm.client.cache import ResponseCache
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.admission import Admission, LoadSummary, first_limit, run_admission_control
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.admission import Fixed
from flowevolve.runner.assemble import make_admission, make_order
from flowevolve.runner.attribution import Attribution
from flowevolve.runner.llm import make_traffic, open_probe
from flowevolve.runner.result_parts import ModelCounts
from flowevolve.runner.vllm_server import OurServers, open_server
from flowevolve.telemetry.failed_rollouts import FailureCounter
from flowevolve.telemetry.role_replies import RoleReplyCounter
from flowevolve.vllm.server import ServerListener

SideTask = Callable[[Engine], Coroutine[object, object, None]]
"""Something to do alongside a run, such as listening for Ctrl-C; cancelled when the run ends."""
OpenRoles = Callable[
    [Config, Mapping[str, ResolvedRole], OurServers | None, Log], AbstractAsyncContextManager[Mapping[str, Role]]
]
"""Opens the LLM roles of a run, as `open_roles` does."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What a run talks to: its LLM client and what goes with it."""

    llm: LLMClient
    scheduler: Scheduler
    attribution: Attribution
    side_tasks: Sequence[SideTask]
    """Tasks to run alongside the engine."""
    observed: LoadSummary
    traffic: Traffic
    replies: RoleReplyCounter
    failures: FailureCounter

    @property
    def sinks(self) -> Sequence[Sink]:
        """The sinks that must get the run's events."""
        return (self.attribution.event, self.failures.event)

    def restore(self, history: History) -> None:
        """Take in what happened before the run was interrupted. Blocks."""

        def facts() -> Iterator[Event | CallRecord]:
            for fact in history.facts():
                if isinstance(fact, Event):
                    self.failures.event(fact)
                yield fact

        spent = [each for each in history.spent() if each.stage != HELD_OUT]  # which the first process didn't count
        self.llm.account.restore(spent)
        self.replies.restore(history.replies_by_role())
        self.attribution.restore(facts(), self.llm.account.cost)

    def by_model(self) -> dict[str, ModelCounts]:
        return {
            model: ModelCounts(totals, self.attribution.accepted[model])
            for model, totals in self.llm.account.by_model().items()
        }


@asynccontextmanager
async def open_clients(
    config: Config,
    roles: Mapping[str, ResolvedRole],
    prices: Mapping[str, Price],
    opening: OpenRoles,
    cache: ResponseCache | None,
    *,
    log: Log = log_nothing,
    observers: Sequence[Observer] = (),
    servers: Sequence[ServerListener] = (),
    path: Path | None = None,
) -> AsyncIterator[Clients]:
    """Open what a run with these roles talks to. ``opening`` opens the roles, and events are written to ``log``.

    ``observers`` get every call, ``servers`` the changes of the server that is started, if one is. The server's output
    is written to a file in ``path``, the run directory.
    """
    admission, order = make_admission(config), make_order(config)
    async with (
        open_server(config, path, servers) as server,
        opening(config, server.serve(roles), server.ours, log) as models,
    ):
        scheduler = Scheduler(first_limit(admission, config.llm.concurrency), order)
        retry = RetryPolicy(patience_seconds=config.llm.patience_seconds)
        attribution, replies = Attribution(models), RoleReplyCounter()
        all_observers = [*observers, attribution.call, replies.call]

        def observe(record: CallRecord) -> None:
            for observer in all_observers:
                observer(record)

        traffic = make_traffic(config.llm, scheduler, models, log)
        client = LLMClient(
            models,
            scheduler,
            retry,
            config.seed,
            observe,
            Account(prices),
            cache,
            traffic.limits,
            traffic.hedging,
            log=log,
            unanswered=server.unanswered,
        )
        observed = LoadSummary()
        side_tasks: list[SideTask] = (
            [] if server.server_changes is None else [partial(server.side_task, observed=observed, traffic=traffic)]
        )
        if config.llm.backend == "vllm" or not isinstance(admission, Fixed):
            side_tasks.append(
                partial(_admit, config, admission, client, scheduler, traffic.transports, observed, server.unanswered)
            )
        yield Clients(client, scheduler, attribution, side_tasks, observed, traffic, replies, FailureCounter())


async def _admit(
    config: Config,
    admission: Admission,
    client: LLMClient,
    scheduler: Scheduler,
    transports: Sequence[Transport],
    observed: LoadSummary,
    unanswered: Pulse,
    engine: Engine,
) -> None:
    """Keep the scheduler's limit in line with what the servers can take. An error of the policy ends the run."""
    async with open_probe(config, transports, admission, unanswered) as probe:
        try:
            await run_admission_control(
                scheduler,
                admission,
                probe,
                client.response_times,
                most=config.llm.concurrency,
                interval_seconds=config.scheduler.admission.interval_seconds,
                log=engine.log,
                observed=observed,
            )
        except EngineError as error:
            engine.fail(error)
