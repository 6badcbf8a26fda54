"""From a checked configuration to the objects of a run, and the names a configuration can use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pydantic import ValidationError

from flowevolve.algorithm import Algorithm, Tuning, WorkersWanted
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config import Config, RoleSection
from flowevolve.errors import InputError
from flowevolve.llm.accounting import Price
from flowevolve.llm.admission import Admission, Blind, Probe
from flowevolve.llm.aiohttp import AioHTTPTransport
from flowevolve.llm.cache import ResponseCache, open_cache
from flowevolve.llm.client import Role
from flowevolve.llm.line import Order
from flowevolve.llm.metrics_probe import MetricsProbe
from flowevolve.llm.openai import OpenAITransport
from flowevolve.llm.types import Transport
from flowevolve.policies.admission import Fixed, Latency, ServerQueue
from flowevolve.policies.allocation import Allocation, MedianRate, Pressure
from flowevolve.policies.ordering import Fifo, LaterFirst
from flowevolve.policies.racing import Bound, Confidence, Off, Prefix, Racing
from flowevolve.policies.speculation import Speculation
from flowevolve.policies.staleness import Full, Guarded, Reflective, StalenessPolicy
from flowevolve.policies.stopping import FileExists, NoImprovement, StoppingPolicy
from flowevolve.registry import Registry, describe_validation
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.replay import Record, RecordedBackend, RecordedServer
from flowevolve.sim.rules import RulesWorld
from flowevolve.sim.rules_params import PRESETS
from flowevolve.tasks.base import Task
from flowevolve.tasks.catalog import SHIPPED_TASKS

ALGORITHMS: Registry[Algorithm] = Registry("algorithm", "flowevolve.algorithms", {"gepa": GEPA})
TASKS: Registry[Task] = Registry("task", "flowevolve.tasks", SHIPPED_TASKS)
STALENESS: Registry[StalenessPolicy] = Registry(
    "staleness policy", "flowevolve.policies.staleness", {"full": Full, "guarded": Guarded, "reflective": Reflective}
)
ALLOCATION: Registry[Allocation] = Registry(
    "allocation policy", "flowevolve.policies.allocation", {"median_rate": MedianRate, "pressure": Pressure}
)
RACING: Registry[Racing] = Registry(
    "racing policy",
    "flowevolve.policies.racing",
    {"off": Off, "bound": Bound, "confidence": Confidence, "prefix": Prefix},
)
ORDERINGS: Registry[Order] = Registry(
    "ordering", "flowevolve.policies.ordering", {"later_first": LaterFirst, "fifo": Fifo}
)
ADMISSIONS: Registry[Admission] = Registry(
    "admission policy",
    "flowevolve.policies.admission",
    {"fixed": Fixed, "server_queue": ServerQueue, "latency": Latency},
)
TRANSPORTS: Mapping[str, type[OpenAITransport | AioHTTPTransport]] = {
    "openai": OpenAITransport,
    "aiohttp": AioHTTPTransport,
}
WORLDS: Mapping[str, type[RulesWorld]] = {"rules": RulesWorld}
SIMULATED = "simulated"
"""The name of the simulated server's model where the configuration gives none."""


def make_task(config: Config) -> Task:
    return TASKS.make(config.task.name, config.task.settings, "task")


def make_staleness(config: Config) -> StalenessPolicy:
    return STALENESS.make(config.staleness.policy, config.staleness.settings, "staleness")


def make_allocation(config: Config) -> Allocation | None:
    """The allocation policy; None for ``fixed``, which leaves the workers as they are."""
    section = config.allocation
    if section.policy != "fixed":
        return ALLOCATION.make(section.policy, section.settings, "allocation")
    if section.settings:
        raise InputError(f"allocation: policy 'fixed' has no settings, but {', '.join(section.settings)} is given")
    return None


def make_order(config: Config) -> Order:
    section = config.scheduler.order
    return ORDERINGS.make(section.policy, section.settings, "scheduler.order")


def make_admission(config: Config) -> Admission:
    section = config.scheduler.admission
    return ADMISSIONS.make(section.policy, section.settings, "scheduler.admission")


def make_stopping(config: Config) -> list[StoppingPolicy]:
    policies: list[StoppingPolicy] = []
    if config.stopping.no_improvement is not None:
        policies.append(NoImprovement(config.stopping.no_improvement))
    if config.stopping.file is not None:
        policies.append(FileExists(config.stopping.file))
    return policies


def find_algorithm(config: Config) -> type[Algorithm]:
    factory = ALGORITHMS.find(config.algorithm.name, "algorithm.name")
    if not (isinstance(factory, type) and issubclass(factory, Algorithm)):
        raise InputError(f"algorithm.name: {config.algorithm.name!r} is not a subclass of flowevolve.Algorithm")
    return factory


def make_algorithm(config: Config, task: Task) -> Algorithm:
    factory = find_algorithm(config)
    try:
        settings = factory.config_type.model_validate(config.algorithm.settings)
    except ValidationError as error:
        raise InputError(describe_validation(error, "algorithm", list(factory.config_type.model_fields))) from None
    return factory.make(task, settings, make_tuning(config))


def make_tuning(config: Config) -> Tuning:
    return Tuning(
        {
            name: WorkersWanted(stage.workers, stage.min_workers, stage.max_workers)
            for name, stage in config.stages.items()
        },
        Speculation(**dict(config.speculation)),
        RACING.make(config.racing.policy, config.racing.settings, "racing"),
    )


def prices(config: Config) -> dict[str, Price]:
    return {
        name: Price(price.input, price.input if price.cached_input is None else price.cached_input, price.output)
        for name, price in config.llm.prices.items()
    }


@asynccontextmanager
async def open_roles(config: Config) -> AsyncIterator[dict[str, Role]]:
    """The roles of a run, on one open transport: those its algorithm calls, and those the config adds.

    Raises:
        InputError: if the configuration is that of a replay.
    """
    if config.llm.backend == "replay":
        raise InputError(
            "llm.backend: 'replay' stands in what flowevolve replay leaves behind, and the replies are in the run that "
            "was replayed; replay that one again: flowevolve replay DIR"
        )
    transport, model = make_sim(config) if config.llm.backend == "sim" else _openai(config)
    try:
        yield {name: _role(config, section, transport, model) for name, section in _role_sections(config).items()}
    finally:
        await transport.aclose()


def make_recorded_roles(config: Config, record: Record, slots: int | None) -> tuple[RecordedServer, dict[str, Role]]:
    """The roles of a replay, each on its own transport to one recorded server."""
    sections, model = _role_sections(config), config.llm.model or SIMULATED
    models = dict.fromkeys(section.model or model for section in sections.values())
    server = RecordedServer(record, list(models), slots)
    return server, {
        name: _role(config, section, RecordedBackend(server, name), model) for name, section in sections.items()
    }


def _role_sections(config: Config) -> dict[str, RoleSection]:
    names = dict.fromkeys([*find_algorithm(config).roles, *config.llm.roles])
    return {name: config.llm.roles.get(name, RoleSection()) for name in names}


@asynccontextmanager
async def open_response_cache(config: Config) -> AsyncIterator[ResponseCache | None]:
    if config.llm.cache.path is None:
        yield None
    else:
        async with open_cache(config.llm.cache.path) as cache:
            yield cache


@asynccontextmanager
async def open_probe(config: Config, transport: Transport, admission: Admission) -> AsyncIterator[Probe]:
    """What tells the load of the server behind a transport that `open_roles` opened."""
    if isinstance(admission, Latency):
        yield Blind()
    elif isinstance(transport, SimBackend | RecordedBackend):
        yield transport
    else:
        async with MetricsProbe(_base_url(config)) as probe:
            yield probe


def make_sim(config: Config) -> tuple[SimBackend, str]:
    """The simulated server inside this process, and the name of its model."""
    if config.sim.profile not in PROFILES:
        raise InputError(f"sim.profile: unknown profile {config.sim.profile!r}; there are {', '.join(PROFILES)}")
    if config.sim.world not in WORLDS:
        raise InputError(f"sim.world: unknown world {config.sim.world!r}; there are {', '.join(WORLDS)}")
    if config.sim.preset not in PRESETS:
        raise InputError(f"sim.preset: unknown preset {config.sim.preset!r}; there are {', '.join(PRESETS)}")
    world = WORLDS[config.sim.world](PRESETS[config.sim.preset])
    model = config.llm.model or SIMULATED
    return SimBackend(world, PROFILES[config.sim.profile], model=model), model


def _openai(config: Config) -> tuple[Transport, str]:
    llm = config.llm
    if llm.model is None:
        raise InputError("llm.model: is missing; name the model as the server knows it")
    key = os.environ.get(llm.api_key_env)
    make = TRANSPORTS[llm.transport]
    return make(_base_url(config), key, max_connections=llm.concurrency), llm.model


def _base_url(config: Config) -> str:
    return config.llm.base_url or "https://api.openai.com/v1"


def _role(config: Config, role: RoleSection, transport: Transport, model: str) -> Role:
    llm = config.llm
    return Role(
        transport,
        role.model or model,
        temperature=llm.temperature if role.temperature is None else role.temperature,
        max_tokens=llm.max_tokens if role.max_tokens is None else role.max_tokens,
        timeout_seconds=role.timeout_seconds or llm.timeout_seconds,
        send_seed=llm.send_seed,
        send_priority=llm.send_priority,
        extra=llm.extra if role.extra is None else role.extra,
    )
