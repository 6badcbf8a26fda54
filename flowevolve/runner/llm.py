"""Makes what a run's LLM calls need, from its configuration: roles on open transports, limits, cache and probe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean, validated
from flowevolve._util.secrets import KEY_PLACE, OPENAI_HOST, key_for
from flowevolve._util.tasks import Pulse
from flowevolve.config.backends import BACKENDS, SHIPPED_BACKENDS, SIMULATED_BACKENDS
from flowevolve.config.llm import LLMSettings
from flowevolve.config.roles import ResolvedModel, ResolvedRole, model_names, role_settings
from flowevolve.config.run import Config
from flowevolve.core.algorithm import Algorithm, NamesRoles
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import ServerTransport, Transport
from flowevolve.llm.client.cache import ResponseCache, open_cache
from flowevolve.llm.client.ensemble import Ensemble
from flowevolve.llm.client.hedging import Hedging
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.admission import Admission, NullProbe, Probe
from flowevolve.llm.scheduling.metrics_probe import MetricsProbe, SummedProbe
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import Router, make_router
from flowevolve.llm.transports.sender import Sender
from flowevolve.policies.admission import Latency
from flowevolve.runner.assemble import find_algorithm, make_order
from flowevolve.runner.in_use import closing
from flowevolve.runner.registries import ALGORITHMS, BANDITS

if TYPE_CHECKING:
    from flowevolve.llm.transports.aiohttp import AioHTTPTransport
    from flowevolve.llm.transports.openai import OpenAITransport
    from flowevolve.runner.vllm_server import OurServers
    from flowevolve.sim.backend import SimBackend
    from flowevolve.sim.replay import RecordedServer, ReplayableCalls

EMBEDDING = "embedding"
"""The default role for embeddings, which searches for similar texts call."""
OPENAI_URL = f"https://{OPENAI_HOST}/v1"
"""Where requests go if the configuration names no address."""


def make_roles(config: Config) -> dict[str, ResolvedRole]:
    """The roles of a run: those its algorithm calls, and those the config adds.

    Raises:
        InputError: if a model has no name, or a setting of the algorithm's is wrong.
    """
    return role_settings(config, _called(config))


def check_roles(config: Config) -> None:
    """Check that every role that the config adds could be called.

    A shipped algorithm calls only the roles that it names, so a role that no shipped algorithm has is misspelt. A
    role of another shipped algorithm is accepted, as a config may serve several. A user's own algorithm need not name
    all roles that it calls, so nothing is checked then.

    Raises:
        InputError: naming the role.
    """
    if config.algorithm.name not in ALGORITHMS.builtin:
        return
    called = [*_called(config), EMBEDDING]
    unknown = [name for name in config.llm.roles if name not in called]
    if not unknown:
        return
    shipped = [cast("type[Algorithm]", ALGORITHMS.find(name, "algorithm.name")) for name in ALGORITHMS.builtin]
    of_others = {role for algorithm in shipped for role in algorithm.roles}
    for name in unknown:
        if name not in of_others:
            raise InputError(
                f"llm.roles.{name}: algorithm {config.algorithm.name!r} calls no role of this name; "
                f"{did_you_mean(name, called)}"
            )


def _called(config: Config) -> list[str]:
    """The roles that the algorithm calls, because of its class or its settings."""
    factory = find_algorithm(config)
    settings = validated(factory.config_type, config.algorithm.settings, "algorithm")
    return [*factory.roles, *(settings.named_roles if isinstance(settings, NamesRoles) else ())]


@asynccontextmanager
async def open_roles(
    config: Config, roles: Mapping[str, ResolvedRole], ours: OurServers | None = None, log: Log = log_nothing
) -> AsyncIterator[dict[str, Role]]:
    """The roles of a run on open transports. Models with the same backend share one.

    ``ours`` is given if the endpoints of ``[llm]`` are servers that the run has started. What happens to endpoints is
    written to ``log``.

    Raises:
        InputError: if a backend's settings are wrong, or the configuration is that of a replay.
    """
    if config.llm.backend == "replay":
        raise InputError(
            "llm.backend: 'replay' is only for flowevolve replay, which takes the replies from a recorded run; give "
            "that run's directory: flowevolve replay DIR"
        )
    transports: dict[str, Transport] = {}
    sender = Sender.new(config.scheduler.share, config.scheduler.priority)
    async with AsyncExitStack() as opened:
        for model in (model for role in roles.values() for model in role.models):
            if model.backend not in transports:
                if model.llm.backend == "sim":
                    transport: Transport = make_sim(config, roles)
                elif model.llm.backend not in SHIPPED_BACKENDS:
                    transport = BACKENDS.make(model.llm.backend, model.llm.settings, "llm.settings")
                elif model.llm.backend == "litellm":
                    transport = make_litellm(model.llm)
                else:
                    transport = make_transport(model.llm, None if model.elsewhere else ours, log, sender)
                await opened.enter_async_context(closing(f"backend {model.llm.backend!r}", transport.aclose))
                transports[model.backend] = transport
        yield {name: make_role(config, name, role, transports) for name, role in roles.items()}


def make_recorded_roles(
    config: Config, roles: Mapping[str, ResolvedRole], record: ReplayableCalls, slots: int | None
) -> tuple[RecordedServer, dict[str, Role]]:
    """The roles of a replay, each with its own transport to one recorded server, which serves all models."""
    from flowevolve.sim.replay import RecordedBackend, RecordedServer  # noqa: PLC0415 - only replays need them

    server = RecordedServer(record, model_names(roles.values()), slots)
    opened: dict[str, Role] = {}
    for name, role in roles.items():
        backend = RecordedBackend(server, name)
        opened[name] = make_role(config, name, role, {model.backend: backend for model in role.models})
    return server, opened


def make_role(config: Config, name: str, role: ResolvedRole, transports: Mapping[str, Transport]) -> Role:
    """The model or the ensemble of a role, on open transports by `ResolvedModel.backend`."""
    scheduler = None if role.concurrency is None else Scheduler(role.concurrency, make_order(config))
    members = [_member(model, transports[model.backend], scheduler) for model in role.models]
    if len(members) == 1:
        return members[0]
    choice = None if role.bandit is None else BANDITS.make(role.bandit, {}, f"llm.roles.{name}.bandit")
    return Ensemble(members, [model.weight for model in role.models], choice)


def _member(model: ResolvedModel, transport: Transport, scheduler: Scheduler | None) -> Model:
    llm = model.llm
    return Model(
        transport,
        model.name,
        temperature=llm.temperature,
        max_tokens=llm.max_tokens,
        timeout_seconds=llm.timeout_seconds,
        send_seed=llm.send_seed,
        send_priority=llm.send_priority,
        thinking_tokens=model.room_for_thinking,
        extra=llm.extra,
        chat_extra=model.chat_extra,
        stream=llm.stream,
        idle_seconds=llm.idle_seconds if llm.stream else None,
        retries=llm.retries,
        scheduler=scheduler,
        fails_if_cut=llm.backend not in SIMULATED_BACKENDS,  # whose cut answers have always been empty ones
        keep_thinking=llm.thinking == "keep" or llm.backend == "replay",  # recorded replies were stripped before
        named_by=model.named_by,
        must_be_listed=model.must_be_listed,
        must_have_list=model.must_have_list,
    )


def endpoints(llm: LLMSettings) -> tuple[str, ...]:
    """The addresses of the backend that one model's version of ``[llm]`` names."""
    return llm.urls or (OPENAI_URL,)


def make_transport(
    llm: LLMSettings, ours: OurServers | None = None, log: Log = log_nothing, sender: Sender | None = None
) -> Transport:
    """The open transport to the backend that one model's version of ``[llm]`` names; a router if it has several
    endpoints.

    ``sender`` identifies the run to a gateway.

    Raises:
        InputError: if an endpoint is given twice, or something is wrong with the key.
    """
    identity, drawn, may_move = (None, None, False) if ours is None else (ours.identity, ours.api_key, ours.may_move)

    def make(url: str) -> Transport:
        key = drawn or key_for(url, llm.key_variable, llm.api_key_file)
        if key is None and KEY_PLACE in url:
            raise InputError(
                f"llm.base_url: {url} has a place for a key, but no key is given; name the environment variable that "
                "holds it in llm.api_key_env, and set that variable"
            )
        if llm.transport == "openai":
            from flowevolve.llm.transports.openai import OpenAITransport  # noqa: PLC0415 - the SDK is slow to load

            kind: type[OpenAITransport | AioHTTPTransport] = OpenAITransport
        else:
            from flowevolve.llm.transports.aiohttp import AioHTTPTransport  # noqa: PLC0415 - slow to load

            kind = AioHTTPTransport
        return kind(
            url,
            key,
            max_connections=llm.concurrency,
            identity=identity,
            azure_api_version=llm.azure_api_version,
            max_reply_bytes=llm.max_reply_bytes,
            headers=None if sender is None else sender.headers(),
        )

    return make_router(endpoints(llm), make, identity, log, may_move=may_move)


def make_litellm(llm: LLMSettings) -> Transport:
    """The transport over LiteLLM.

    Raises:
        InputError: if something is wrong with the key.
    """
    from flowevolve.llm.transports.litellm import LiteLLMTransport  # noqa: PLC0415 - slow to load

    named = llm.api_key_env is not None or llm.api_key_file is not None
    key = key_for("", llm.api_key_env, llm.api_key_file) if named else None
    return LiteLLMTransport(next(iter(llm.urls), None), key)


def make_traffic(llm: LLMSettings, scheduler: Scheduler, roles: Mapping[str, Role], log: Log) -> Traffic:
    """What distributes, delays and repeats the requests of a run: endpoints, rate limits and hedging."""
    limits = Limits(
        scheduler,
        requests_per_minute=llm.requests_per_minute,
        tokens_per_minute=llm.tokens_per_minute,
        longest_pause=llm.patience_seconds,
        log=log,
    )
    hedging = Hedging(scheduler, limits, llm.hedge) if llm.hedge else None
    transports = {id(member.transport): member.transport for role in roles.values() for member in role.members}
    return Traffic(list(transports.values()), limits, hedging)


@asynccontextmanager
async def open_response_cache(config: Config) -> AsyncIterator[ResponseCache | None]:
    if config.llm.cache.path is None:
        yield None
    else:
        async with open_cache(config.llm.cache.path) as cache:
            yield cache


@asynccontextmanager
async def open_probe(
    config: Config, transports: Sequence[Transport], admission: Admission, unanswered: Pulse
) -> AsyncIterator[Probe]:
    """A probe of the total load of the servers behind transports that `open_roles` opened.

    ``unanswered`` is fired whenever one of them does not answer.
    """
    if isinstance(admission, Latency) and config.llm.backend != "vllm":
        yield NullProbe()
        return
    from flowevolve.sim.backend import SimBackend  # noqa: PLC0415 - not needed before a run begins
    from flowevolve.sim.replay import RecordedBackend  # noqa: PLC0415

    simulated = [transport for transport in transports if isinstance(transport, SimBackend)]
    recorded = [transport for transport in transports if isinstance(transport, RecordedBackend)]
    places = {
        url: partial(_url, transport, index) for transport in transports for index, url in enumerate(_urls(transport))
    }
    async with AsyncExitStack() as opened:
        yield SummedProbe(
            [
                *simulated,
                *recorded[:1],  # one server behind them all
                *[await opened.enter_async_context(MetricsProbe(place, unanswered)) for place in places.values()],
            ]
        )


def _urls(transport: Transport) -> tuple[str, ...]:
    if isinstance(transport, Router):
        return transport.urls
    return (transport.base_url,) if isinstance(transport, ServerTransport) else ()


def _url(transport: Transport, index: int) -> str:
    return _urls(transport)[index]


def make_sim(config: Config, roles: Mapping[str, ResolvedRole], section: str = "sim.") -> SimBackend:
    """The simulated server inside this process; it serves the models of all roles.

    Raises:
        InputError: if a name is unknown; ``section`` is how the message begins to say where it was given.
    """
    from flowevolve.sim.backend import SimBackend  # noqa: PLC0415 - only simulations need these
    from flowevolve.sim.faults import Faults  # noqa: PLC0415
    from flowevolve.sim.profiles import find_profile  # noqa: PLC0415
    from flowevolve.sim.worlds.catalog import WORLDS  # noqa: PLC0415
    from flowevolve.sim.worlds.rules.params import PRESETS  # noqa: PLC0415

    try:
        profile = find_profile(config.sim.profile)
    except InputError as error:
        raise InputError(f"{section}profile: {error}") from None
    if config.sim.world not in WORLDS:
        raise InputError(f"{section}world: unknown world {config.sim.world!r}; there are {', '.join(WORLDS)}")
    if config.sim.preset not in PRESETS:
        raise InputError(f"{section}preset: unknown preset {config.sim.preset!r}; there are {', '.join(PRESETS)}")
    world = WORLDS[config.sim.world](PRESETS[config.sim.preset])
    models, faults = model_names(roles.values()), Faults(**dict(config.sim.faults))
    return SimBackend(world, profile, model=models[0], other_models=models[1:], faults=faults)
