"""A Ray cluster: an actor on each node that offers slots, which runs programs in the sandboxes of that machine.

Ray's workers hold the rights of the whole cluster, so no program runs in one: the actor hands them to sandboxes. What
passes through Ray is bytes of JSON, and it runs nothing twice by itself (no restarts, no retries).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version

import anyio
import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from flowevolve._util.clock import in_thread
from flowevolve._util.cores import processor_name
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve._util.ray import connected, first_line, version_refused
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.cluster import NodeLostError, NodeRefusedError
from flowevolve.sandbox.nodes.folders import fingerprint
from flowevolve.sandbox.nodes.messages import for_node
from flowevolve.sandbox.nodes.work import NodeWork

RESOURCE = "flowevolve"
"""What nodes offer to Ray: as many of it as they run programs at a time."""
OPEN_SECONDS = 120.0
"""The time for the actor of a node to start, and to say whether programs can be run there."""
CLOSE_SECONDS = 10.0
_MOST_CALLS = 10_000
"""Calls of one actor at a time; what bounds programs is its slots."""


class NodeActor:
    """What Ray runs on a node. All that it takes and returns is plain: bytes, texts and numbers."""

    def __init__(self, settings: str, slots: int) -> None:
        self._settings = for_node(settings, slots)
        self._evaluators = LocalEvaluators(self._settings)
        self._work = NodeWork(self._evaluators)

    async def begin(self) -> str:
        """What keeps programs from being run, if anything does, the version, the processor, and a fingerprint of
        folders, as JSON.
        """
        refused, found = None, None
        try:
            await self._evaluators.__aenter__()
            found = await in_thread(fingerprint, self._settings.readable)
        except (FlowevolveError, OSError) as error:
            refused = str(error)
        about = {"version": version("flowevolve"), "machine": processor_name(), "folders": found}
        return json.dumps({"refused": refused, **about})

    async def run(self, message: bytes) -> bytes:
        return await self._work.run(message)

    async def cancel(self, message: bytes) -> None:
        await self._work.cancel(message)

    async def end(self) -> None:
        await self._evaluators.__aexit__(None, None, None)


class RayNode:
    """A node whose actor has begun."""

    def __init__(self, actor: ActorHandle, slots: int, machine: str) -> None:
        self.slots = slots
        self.machine = machine
        self._actor = actor

    async def run(self, message: bytes) -> bytes:
        try:
            reply: bytes = await self._actor.run.remote(message)
        except RayError as error:
            raise NodeLostError(first_line(error)) from error
        return reply

    async def cancel(self, message: bytes) -> None:
        try:
            await self._actor.cancel.remote(message)
        except RayError as error:
            raise NodeLostError(first_line(error)) from error

    def kill(self) -> None:
        with suppress(RayError):
            ray.kill(self._actor)

    async def end(self) -> None:
        """End its sandboxes, then itself."""
        with suppress(RayError), anyio.move_on_after(CLOSE_SECONDS):
            await self._actor.end.remote()
        self.kill()


class RayCluster:
    """The nodes of a Ray cluster that offer the resource `RESOURCE`."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._connected = False
        self._connection = AsyncExitStack()
        self._rows: Mapping[str, Mapping[str, object]] = {}
        """What Ray says of each node, by its id."""
        self._nodes: list[RayNode] = []
        self._folders = ""
        """The fingerprint of what programs may read here."""

    async def names(self) -> Sequence[str]:
        """Raises: InputError if there is no such cluster, or no node of it offers slots, at the first call."""
        first, self._connected = not self._connected, True
        if first:
            await self._connection.enter_async_context(connected(self._settings.address, "sandbox.address"))
            self._folders = await in_thread(fingerprint, self._settings.readable)
        try:
            rows = await in_thread(ray.nodes)
        except RayError as error:
            raise NodeLostError(first_line(error)) from error
        self._rows = {row["NodeID"]: row for row in rows if row["Alive"] and row["Resources"].get(RESOURCE, 0) >= 1}
        if first and not self._rows:
            raise InputError(
                f"sandbox.on: no node of the Ray cluster offers slots for programs; start nodes with "
                f"ray start --resources='{{\"{RESOURCE}\": 8}}', 8 being how many programs run there at a time"
            )
        return list(self._rows)

    async def open(self, name: str) -> RayNode:
        row = self._rows[name]
        resources, called = row["Resources"], f"node {row['NodeName']} ({name[:8]})"
        assert isinstance(resources, Mapping), "Ray's own form"
        slots = int(resources[RESOURCE])
        actor = _start_actor(name, self._settings.model_dump_json(), slots)
        try:
            with anyio.fail_after(OPEN_SECONDS):
                said = json.loads(await actor.begin.remote())
        except (TimeoutError, RayError) as error:
            ray.kill(actor)
            why = (
                first_line(error) or f"no room for an actor within {OPEN_SECONDS:g} s; does another run use its slots?"
            )
            raise NodeLostError(f"{called}: {why}") from error
        refused = version_refused(said["version"]) or said["refused"]
        if refused is None and said["folders"] != self._folders:
            names = ", ".join(map(str, self._settings.readable))
            refused = f"what programs may read ({names}) is not the same there as here; copy it, or share it"
        if refused is not None:
            ray.kill(actor)
            raise NodeRefusedError(f"{called}: {refused}")
        node = RayNode(actor, slots, said["machine"])
        self._nodes.append(node)
        return node

    async def close(self) -> None:
        async with anyio.create_task_group() as tasks:
            for node in self._nodes:
                tasks.start_soon(node.end)
        await self._connection.aclose()


def _start_actor(node_id: str, settings: str, slots: int) -> ActorHandle:
    options = ray.remote(NodeActor).options(
        num_cpus=0,
        resources={RESOURCE: slots},  # all of it: the slots of a node are lent to one run at a time
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=_MOST_CALLS,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
    )
    return options.remote(settings, slots)
