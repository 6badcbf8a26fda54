"""Servers on the nodes of a Ray cluster: an actor for each replica, which starts vLLM on its node and watches it there.

Ray places an actor where enough GPUs are free. When vLLM, the actor or the node is lost, another actor takes its place,
wherever there is room then. An actor ends with the process that created it, and vLLM with its actor
(`flowevolve.vllm.keeper`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import anyio
import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayError

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import BackendUnreachableError, FlowevolveError, InputError
from flowevolve._util.ray import connected, first_line
from flowevolve._util.secrets import hide
from flowevolve._util.tasks import Pulse, beside
from flowevolve._util.versions import version_refused
from flowevolve.vllm.local import local_servers
from flowevolve.vllm.server import KILL_SECONDS, PROGRESS_SECONDS, Server, ServerChange, ServerListener
from flowevolve.vllm.settings import VLLMSettings

UNAVAILABLE_SECONDS = 1.0
"""The time between two attempts to reach an actor that is unavailable, until Ray says that it is lost."""


class ReplicaActor:
    """What Ray runs on the node of a replica. Its arguments and results are plain: texts and numbers."""

    def __init__(self, model: str, settings: str, number: int, api_key: str | None) -> None:
        given = VLLMSettings.model_validate_json(settings)
        self._settings = given.model_copy(
            update={
                "on": "here",
                "replicas": 1,
                "host": ray.util.get_node_ip_address(),
                "port": given.port + number if given.port else 0,
            }
        )
        self._model = model
        self._api_key = api_key
        if api_key is not None:
            hide(api_key)  # where the log is quoted
        self._unanswered = Pulse()
        self._progress = "its actor is there"
        self._ports = AsyncExitStack()
        self._server: Server | None = None

    async def prepare(self) -> str:
        """Reserve a port. Returns JSON: the URL, the reason why vLLM can't be started here (if there is one), the node,
        and flowevolve's version.
        """
        refused = None
        try:
            [self._server] = await self._ports.enter_async_context(
                local_servers(
                    self._model,
                    self._settings,
                    log=Path(tempfile.mkdtemp(prefix="flowevolve-")) / "vllm.log",
                    on_event=self._note,
                    unanswered=self._unanswered,
                    api_key=self._api_key,
                )
            )
        except InputError as error:
            refused = str(error)
        url = None if self._server is None else self._server.url
        node = f"{self._settings.host} ({ray.get_runtime_context().get_node_id()[:8]})"
        return json.dumps({"url": url, "refused": refused, "node": node, "version": version("flowevolve")})

    async def start(self) -> str | None:
        """Start vLLM and wait until it is healthy; returns None then, or the reason why it does not become so."""
        try:
            await self._prepared().start()
        except BackendUnreachableError as error:
            return str(error)
        return None

    async def progress(self) -> str:
        return self._progress

    async def death(self) -> str:
        return await self._prepared().death()

    async def look(self) -> None:
        """Have vLLM's health checked, as a request got no answer."""
        self._unanswered.fire()

    async def end(self) -> None:
        if self._server is not None:
            await self._server.stop()
        await self._ports.aclose()

    def _prepared(self) -> Server:
        assert self._server is not None, "prepare comes first"
        return self._server

    def _note(self, change: ServerChange) -> None:
        self._progress = change.detail


class RayReplica:
    """A `flowevolve.vllm.server.Replica` on whichever node has room for it."""

    def __init__(
        self,
        model: str,
        settings: VLLMSettings,
        number: int,
        on_event: ServerListener,
        unanswered: Pulse,
        api_key: str | None,
    ) -> None:
        self.url = f"replica {number}"  # until it has one
        self._given = model, settings.model_dump_json(), number, api_key
        self._settings = settings
        self._on_event = on_event
        self._unanswered = unanswered
        self._has_served = False
        self._actor: ActorHandle | None = None
        self._is_placed = False

    async def start(self) -> None:
        """As `flowevolve.vllm.server.Replica.start`, within ``startup_seconds`` to find a node and as many to start."""
        began = anyio.current_time()
        self._actor = actor = _make_actor(self._settings.gpus_each, self._given)
        self._is_placed = False
        try:
            async with beside() as tasks:
                tasks.start_soon(self._tell_progress, actor)
                url = await self._start(actor)
        except RayError as error:
            await self.stop()
            raise BackendUnreachableError(_lost(error)) from error
        except FlowevolveError:
            await self.stop()
            raise
        moved_from = self.url if self._has_served and self.url != url else None
        self.url, self._has_served = url, True
        self._on_event(ServerChange("healthy", url, f"healthy after {anyio.current_time() - began:.0f} s", moved_from))

    async def _start(self, actor: ActorHandle) -> str:
        """Wait until the actor has a node and vLLM is healthy there; returns vLLM's URL."""
        try:
            with anyio.fail_after(self._settings.startup_seconds):
                said = json.loads(await actor.prepare.remote())
        except TimeoutError:
            raise BackendUnreachableError(
                f"no node of the Ray cluster had room for it in {self._settings.startup_seconds:.0f} s; does another "
                "run use its GPUs?"
            ) from None
        self._is_placed = True
        refused, node = version_refused(said["version"]) or said["refused"], said["node"]
        if refused is not None:
            raise InputError(f"node {node}: {refused}")
        failure = await actor.start.remote()
        if failure is not None:
            raise BackendUnreachableError(f"node {node}: {failure}")
        return str(said["url"])

    async def death(self) -> str:
        """As `flowevolve.vllm.server.Replica.death`."""
        actor = self._actor
        assert actor is not None, "it was started"
        async with beside() as tasks:
            tasks.start_soon(self._look, actor)
            while True:
                try:
                    return str(await actor.death.remote())
                except ActorUnavailableError:  # it may come back, and until Ray knows, its node might be chosen again
                    await anyio.sleep(UNAVAILABLE_SECONDS)
                except RayError as error:
                    return _lost(error)

    async def stop(self) -> None:
        """As `flowevolve.vllm.server.Replica.stop`."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        with anyio.CancelScope(shield=True):
            if self._is_placed:
                with suppress(RayError), anyio.move_on_after(self._settings.stop_seconds + KILL_SECONDS):
                    await actor.end.remote()
            with suppress(RayError):
                ray.kill(actor)

    async def _tell_progress(self, actor: ActorHandle) -> None:
        while True:
            await anyio.sleep(PROGRESS_SECONDS)
            said = "waits for a node of the Ray cluster that has room for it"
            with anyio.move_on_after(PROGRESS_SECONDS), suppress(RayError):
                said = await actor.progress.remote()
            self._on_event(ServerChange("starting", self.url, said))

    async def _look(self, actor: ActorHandle) -> None:
        while True:
            await self._unanswered.wait()
            with suppress(RayError):
                await actor.look.remote()


@asynccontextmanager
async def cluster(settings: VLLMSettings) -> AsyncGenerator[None]:
    """The connection to a cluster that is large enough for the replicas.

    Raises:
        InputError: if there is no such cluster, or it is too small.
    """
    async with connected(settings.address, "vllm.address"):
        rows = await in_thread(ray.nodes)
        _check_size(settings, [(row["NodeName"], row["Resources"]) for row in rows if row["Alive"]])
        yield


@asynccontextmanager
async def replicas_on_ray(
    model: str, settings: VLLMSettings, on_event: ServerListener, unanswered: Pulse, api_key: str | None
) -> AsyncGenerator[Sequence[RayReplica]]:
    """The replicas, none of which is started. Raises what `cluster` raises."""
    async with cluster(settings):
        yield [
            RayReplica(model, settings, number, on_event, unanswered, api_key) for number in range(settings.replicas)
        ]


def _make_actor(gpus: int, given: tuple[str, str, int, str | None]) -> ActorHandle:
    options = ray.remote(ReplicaActor).options(
        num_gpus=gpus,
        num_cpus=0 if gpus else 1,
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
    )
    return options.remote(*given)


def _check_size(settings: VLLMSettings, nodes: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """Check that the nodes have enough GPUs (or CPUs) for the replicas, whether these are in use or not."""
    resource, each = ("GPU", settings.gpus_each) if settings.gpus_each else ("CPU", 1)
    has = [(name, int(resources.get(resource, 0))) for name, resources in nodes]
    if sum(number // each for _, number in has) >= settings.replicas:
        return
    nodes_have = ", ".join(f"{name} has {number}" for name, number in has)
    mend = "set vllm.gpus, or vllm.device = 'cpu'" if resource == "GPU" else "start nodes with --num-cpus"
    raise InputError(
        f"vllm.replicas: the Ray cluster has no room for {settings.replicas} of {each} {resource} each "
        f"({nodes_have}); have fewer replicas, or {mend}"
    )


def _lost(error: RayError) -> str:
    return f"its actor was lost: {first_line(error)}"
