"""One simulated run of a configuration: its task, algorithm and settings, on a profile's server, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace

import anyio

from flowevolve._util import clock
from flowevolve.config.llm import CacheSettings
from flowevolve.config.roles import ResolvedRole, model_names
from flowevolve.config.run import WORLDS_OF_TASKS, Config
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import Transport
from flowevolve.core.policies import FlowLimit
from flowevolve.core.task import Task
from flowevolve.engine.engine import Engine
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.transports.router import make_router
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.forecast.course import Course, CourseTaker
from flowevolve.runner.forecast.doubts import Assumptions
from flowevolve.runner.forecast.limits import Load
from flowevolve.runner.llm import endpoints, make_role
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.runner.vllm_server import OurServers, starts_vllm
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.lengths import MeasuredLengths, tags
from flowevolve.sim.profiles import BatchingProfile, Profile
from flowevolve.sim.scores import Evaluating, SeedRun, with_simulated_runs, with_simulated_scores
from flowevolve.sim.worlds.catalog import WORLDS
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

CUT_SHORT = "simulated far enough"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before a run besides its configuration: the task, and what was measured of it."""

    task: Task
    seed_run: SeedRun | None = None
    """For tasks of programs only."""
    lengths: MeasuredLengths | None = None


@dataclass(frozen=True, slots=True)
class Simulated:
    course: Course
    load: Load


def simulate(
    config: Config, known: Known, profile: Profile, assumed: Assumptions, *, most_calls: int, seed: int
) -> Simulated:
    """Run a configuration on simulated servers until it ends, or has made ``most_calls`` calls."""
    return clock.run(_Simulation(config, known, profile, assumed, most_calls, seed).run, clock="virtual")


class _Simulation:
    """One simulated run. What is not known before it begins is filled in as it goes on."""

    def __init__(
        self, config: Config, known: Known, profile: Profile, assumed: Assumptions, most_calls: int, seed: int
    ) -> None:
        self._config = _to_simulate(config, seed)
        self._endpoints = config.vllm.replicas if starts_vllm(config) else 0
        self._known, self._assumed, self._most = known, assumed, most_calls
        self._profile = _with(profile, assumed)
        self._lengths = None if known.lengths is None else known.lengths.scaled(assumed.lengths)
        self._servers: list[SimBackend] = []
        self._taker, self._far_enough = CourseTaker(), anyio.Event()
        self._traffic: Traffic | None = None

    async def run(self) -> Simulated:
        evaluating = None
        task = self._known.task
        if isinstance(task, ProgramTask) and self._known.seed_run is not None:
            evaluating = Evaluating(task.slots)
            first = self._known.seed_run
            task = with_simulated_runs(task, replace(first, seconds=first.seconds * self._assumed.times), evaluating)
        elif task.seed().kind not in WORLDS_OF_TASKS:
            task = with_simulated_scores(task, RulesWorld(PRESETS[self._assumed.gains]))
        plan = make_plan(self._config, ProvidedObjects(task), opens_roles=self._opened)
        watchers = Watchers((self._taker.event,), (self._take,), traffic=(self._watch,))
        self._taker.origin = clock.now()
        result = await run_plan(plan, None, watchers, self._cut_short)
        course = self._taker.taken(result, whole=str(result.stop_reason) != CUT_SHORT)
        return Simulated(course, self._load(course, evaluating, result.report.flow_limit))

    def _load(self, course: Course, evaluating: Evaluating | None, flows: FlowLimit | None) -> Load:
        assert self._traffic is not None, "it is told as a run begins"
        seconds, late = max(1e-9, course.seconds), course.late
        at_once = self._profile.max_num_seqs if isinstance(self._profile, BatchingProfile) else None
        return Load(
            width=self._config.llm.concurrency,
            slots=None if at_once is None else at_once * len(self._servers),
            in_flight=late.call_seconds / late.seconds if late.seconds else 0.0,
            held_back=sum(each.waited_seconds for each in self._traffic.limits.stats()) / seconds,
            evaluating=0.0 if evaluating is None else evaluating.seconds / evaluating.slots / seconds,
            flows=flows,
        )

    def _take(self, record: CallRecord) -> None:
        self._taker.call(record)
        if len(self._taker.marks) > self._most:
            self._far_enough.set()

    def _watch(self, traffic: Traffic) -> None:
        self._traffic = traffic

    async def _cut_short(self, engine: Engine) -> None:
        await self._far_enough.wait()
        engine.cancel(CUT_SHORT)

    @asynccontextmanager
    async def _opened(
        self, config: Config, roles: Mapping[str, ResolvedRole], ours: OurServers | None = None, log: Log = log_nothing
    ) -> AsyncGenerator[Mapping[str, Role]]:
        """The roles of a run, on a simulated server for each address that the configuration names."""
        transports: dict[str, Transport] = {}
        for model in (model for role in roles.values() for model in role.models):
            if model.backend not in transports:
                urls = endpoints(model.llm)
                if self._endpoints and not model.elsewhere:
                    urls = tuple(f"http://replica-{number}" for number in range(self._endpoints))
                transports[model.backend] = make_router(urls, lambda _: self._server(roles), None, log)
        yield {name: _tagged(name, make_role(config, name, role, transports)) for name, role in roles.items()}

    def _server(self, roles: Mapping[str, ResolvedRole]) -> SimBackend:
        kind = self._known.task.seed().kind
        world = WORLDS[WORLDS_OF_TASKS.get(kind, "rules")](PRESETS[self._assumed.gains])
        model, *others = model_names(roles.values())
        self._servers.append(SimBackend(world, self._profile, model=model, other_models=others, lengths=self._lengths))
        return self._servers[-1]


def _to_simulate(config: Config, seed: int) -> Config:
    """The configuration of a simulated run: it calls no real server, and leaves nothing behind."""
    llm = config.llm.model_copy(update={"backend": "sim", "cache": CacheSettings(), "settings": {}})
    return config.model_copy(update={"llm": llm, "clock": "virtual", "seed": seed, "watch": False, "held_out": False})


def _with(profile: Profile, assumed: Assumptions) -> Profile:
    """The profile of the server under these assumptions."""
    output = replace(profile.output, median=profile.output.median * assumed.lengths)
    slower = replace(profile.faster(1 / assumed.times), output=output)
    if isinstance(slower, BatchingProfile) or isinstance(profile, BatchingProfile):
        return slower
    # The rate limits of an account do not depend on how fast it is answered.
    return replace(slower, requests_per_minute=profile.requests_per_minute, tokens_per_minute=profile.tokens_per_minute)


class _Tagged(Model):
    """A model whose requests say which role and stage they are from, for `flowevolve.sim.lengths`."""

    __slots__ = ()

    def draw(self, run_seed: int, scope: CallScope) -> Model:
        role = str((self.chat_extra or {}).get("role", ""))
        return replace(self, chat_extra=tags(role, scope.stage))


def _tagged(name: str, role: Role) -> Role:
    if not isinstance(role, Model):  # an ensemble draws its model itself, without the stage
        role.members = tuple(replace(member, chat_extra=tags(name, "")) for member in role.members)
        return role
    given = {each.name: getattr(role, each.name) for each in fields(role)}
    return _Tagged(**{**given, "chat_extra": tags(name, "")})
