"""A Ray cluster: on each node that offers slots, an actor runs programs in the sandboxes of that machine.

Ray's workers have the rights of the whole cluster, so no program runs in one: the actor hands programs to sandboxes.
Only bytes of JSON pass through Ray, and Ray runs nothing twice on its own (no restarts, no retries).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

import anyio
import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorAlreadyExistsError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.ray import connected, first_line
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.nodes.cluster import NodeInUseError, NodeLostError, NodeRefusedError
from flowevolve.sandbox.nodes.folders import fingerprint
from flowevolve.sandbox.nodes.host import CLOSE_SECONDS, OPEN_SECONDS, NodeHost, checked_machine

RESOURCE = "flowevolve"
"""The resource that nodes offer to Ray; its amount is how many programs they run at a time."""
_MOST_CALLS = 10_000
"""The most calls of one actor at a time. Programs are bounded by its slots instead."""


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
        """End the actor's sandboxes, then the actor."""
        with suppress(RayError), anyio.move_on_after(CLOSE_SECONDS):
            await self._actor.end.remote()
        self.kill()


class RayCluster:
    """The nodes of a Ray cluster that offer the resource `RESOURCE`."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._rows: Mapping[str, Mapping[str, object]] = {}
        """What Ray reports about each node, by its id."""
        self._nodes: list[RayNode] = []
        self._folders = ""
        """The fingerprint of the folders that programs may read here."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises: InputError if there is no such cluster, or no node of it offers slots."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(connected(self._settings.address, "sandbox.address"))
            self._folders = await in_thread(fingerprint, self._settings.readable)
            if not await self.names():
                raise InputError(
                    f"sandbox.on: no node of the Ray cluster offers slots for programs; start nodes with "
                    f"ray start --resources='{{\"{RESOURCE}\": 8}}', 8 being how many programs run there at a time"
                )
            stack.push_async_callback(self._end_nodes)
            self._stack = stack.pop_all()
        return self

    async def names(self) -> Sequence[str]:
        try:
            rows = await in_thread(ray.nodes)
        except RayError as error:
            raise NodeLostError(first_line(error)) from error
        self._rows = {row["NodeID"]: row for row in rows if row["Alive"] and row["Resources"].get(RESOURCE, 0) >= 1}
        return list(self._rows)

    async def open(self, name: str) -> RayNode:
        row = self._rows[name]
        resources, called = row["Resources"], f"node {row['NodeName']} ({name[:8]})"
        assert isinstance(resources, Mapping), "Ray's own form"
        slots = int(resources[RESOURCE])
        try:
            actor = await in_thread(_start_actor, name, self._settings.model_dump_json(), slots)
        except ActorAlreadyExistsError as error:
            raise NodeInUseError(f"{called} is in use by another run") from error
        except RayError as error:
            raise NodeLostError(f"{called}: {first_line(error)}") from error
        try:
            with anyio.fail_after(OPEN_SECONDS):
                said = await actor.begin.remote()
            machine = checked_machine(said, called, self._settings.readable, self._folders)
        except NodeRefusedError:
            ray.kill(actor)
            raise
        except (TimeoutError, RayError) as error:
            ray.kill(actor)
            why = (
                first_line(error)
                or f"Ray found no room for an actor within {OPEN_SECONDS:g} s; does something else use its slots?"
            )
            raise NodeLostError(f"{called}: {why}") from error
        node = RayNode(actor, slots, machine)
        self._nodes.append(node)
        return node

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._stack.aclose()

    async def _end_nodes(self) -> None:
        async with anyio.create_task_group() as tasks:
            for node in self._nodes:
                tasks.start_soon(node.end)


def _start_actor(node_id: str, settings: str, slots: int) -> ActorHandle:
    """Raises: ActorAlreadyExistsError if another run uses the node: each node's name is given to only one actor."""
    options = ray.remote(NodeHost).options(
        name=node_id,
        namespace=RESOURCE,
        num_cpus=0,
        resources={RESOURCE: slots},  # all of it, because a node's slots are lent to one run at a time
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=_MOST_CALLS,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
    )
    return options.remote(settings, slots)
