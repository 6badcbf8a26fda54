"""Which nodes of a cluster are open. Nodes are opened as they come, waited for if there is none, and given up."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve._util.logger import logger
from flowevolve._util.tasks import beside
from flowevolve.core.event_body import EventBody
from flowevolve.core.events import Log
from flowevolve.core.server_event_kinds import NodeAwaited, NodeJoined, NodeLost, NodeRefused
from flowevolve.sandbox.evaluators import Tell
from flowevolve.sandbox.nodes.cluster import Cluster, Node, NodeInUseError, NodeLostError, NodeRefusedError
from flowevolve.sandbox.nodes.host import OPEN_SECONDS

LOOK_SECONDS = 2.0
"""The time between two checks of which nodes there are, and whether they answer."""
IN_USE_SECONDS = 120.0
"""How long a run that begins waits for a node if other runs use all of them."""
QUIET_SECONDS = 10.0
"""How long nodes may take to begin before it is reported that the run waits for them."""
AHEAD = 1
"""How many more batches than slots a node gets, so that no slot has to wait for its next program."""


class OpenNode:
    """A node, the batches that it has, and the texts that it knows."""

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self.node = node
        self.batches = 0
        self.texts: set[str] = set()
        self.asked = False
        """Whether it is being asked for a sign of life."""

    @property
    def load(self) -> float:
        return self.batches / self.node.slots

    @property
    def has_room(self) -> bool:
        return self.batches < self.node.slots + AHEAD


class Membership:
    """The nodes of a cluster. Each is open, being opened, or closed for a reason."""

    def __init__(self, cluster: Cluster, where: str, tell: Tell) -> None:
        self.open: dict[str, OpenNode] = {}
        self._cluster = cluster
        self._opening: set[str] = set()
        self._closed: dict[str, NodeRefusedError | NodeInUseError | NodeLostError] = {}
        """Why nodes are not open, by their names. A node that was refused is not asked again."""
        self._where = where
        """The name of the cluster in messages."""
        self._tell = tell
        self._awaited = False
        """Whether it has been reported that a node is awaited."""
        self._before: list[EventBody] = []
        """What happened before there was a log."""
        self._log: Log = self._before.append

    @property
    def capacity(self) -> int:
        return sum(node.node.slots for node in self.open.values())

    def log_to(self, log: Log) -> None:
        """Log to ``log`` what has happened so far, and from now on what happens."""
        for body in self._before:
            log(body)
        self._log = log

    async def begin(self) -> None:
        """Open the nodes that are there. If other runs use all usable ones, wait for one of these.

        Raises:
            InputError: if programs can't be run on any of them; the message has the reason for each.
            BackendUnreachableError: if all are gone again, or the usable ones stay in use.
        """
        began = clock.now()
        async with beside() as tasks:
            tasks.start_soon(self._say_slow)
            await self._look()
        if not self.open:
            self._awaited = False  # nodes have answered; if one is still awaited, it is for another reason
        while in_use := self._in_use():
            if clock.now() - began >= IN_USE_SECONDS:
                break
            self.say_awaited(in_use, IN_USE_SECONDS)
            await anyio.sleep(LOOK_SECONDS)
            await self._look()
        if not self.open:
            raise self._why_none(in_use)
        self.say_over()

    async def _say_slow(self) -> None:
        await anyio.sleep(QUIET_SECONDS)
        slow = len(self._opening)
        who = "1 node has" if slow == 1 else f"{slow} nodes have"
        self.say_awaited(f"{who} not said yet whether programs can run there", OPEN_SECONDS)

    async def _look(self) -> None:
        async with anyio.create_task_group() as tasks:
            for name in self.unopened(await self._cluster.names()):
                tasks.start_soon(self._try_to_open, name)

    def _in_use(self) -> str:
        """Why no node is open, if that is because other runs use the nodes; empty if not."""
        in_use = [str(error) for error in self._closed.values() if isinstance(error, NodeInUseError)]
        return "" if self.open else "; ".join(in_use)

    def _why_none(self, in_use: str) -> InputError | BackendUnreachableError:
        refused = "; ".join(str(error) for error in self._closed.values() if isinstance(error, NodeRefusedError))
        lost = "; ".join(str(error) for error in self._closed.values() if isinstance(error, NodeLostError))
        if in_use:
            others = f" (and these can't be used: {refused})" if refused else ""
            return NodeInUseError(
                f"sandbox.on: all nodes for programs were in use for {IN_USE_SECONDS:g} s: {in_use}{others}; start "
                "again when one is free, or add a node"
            )
        if refused:
            return NodeRefusedError(refused)
        return (
            NodeLostError(lost) if lost else InputError("sandbox.on: the cluster has no node for programs; start one")
        )

    def unopened(self, names: Sequence[str]) -> list[str]:
        """Those of the given nodes that should be opened."""
        self._closed = {name: why for name, why in self._closed.items() if name in names}
        refused = {name for name, why in self._closed.items() if isinstance(why, NodeRefusedError)}
        return [name for name in names if name not in {*self.open, *self._opening, *refused}]

    async def join(self, name: str) -> bool:
        """Open one of the `unopened` nodes; returns whether that worked."""
        await self._try_to_open(name)
        return name in self.open

    async def _try_to_open(self, name: str) -> None:
        """Open a node, or note why that was not possible."""
        self._opening.add(name)
        try:
            node = await self._cluster.open(name)
        except (NodeRefusedError, NodeInUseError, NodeLostError) as error:
            self._note_closed(name, error)
            return
        finally:
            self._opening.discard(name)
        self._closed.pop(name, None)
        self.open[name] = OpenNode(name, node)
        logger().info("evaluators.node", node=name, machine=node.machine, slots=self.capacity)
        self._log(NodeJoined(name, node.machine, node.slots, self.capacity))

    def _note_closed(self, name: str, error: NodeRefusedError | NodeInUseError | NodeLostError) -> None:
        before, self._closed[name] = self._closed.get(name), error
        if isinstance(error, NodeRefusedError):
            logger().warning("evaluators.node_refused", why=str(error))
            self._log(NodeRefused(str(error)))
        elif isinstance(error, NodeLostError):
            logger().warning("evaluators.node_lost", node=name, why=str(error), slots=self.capacity)
        elif not isinstance(before, NodeInUseError):  # it is asked again at every look
            logger().info("evaluators.node_in_use", node=name, why=str(error))

    def give_up(self, node: OpenNode, why: str) -> None:
        """End an open node."""
        del self.open[node.name]
        logger().warning("evaluators.node_lost", node=node.name, why=why, slots=self.capacity)
        self._log(NodeLost(node.name, why, self.capacity))
        self._tell(f"{self._where}: node {node.name[:8]} is lost: {why}; slots left: {self.capacity}")
        node.node.kill()

    def say_awaited(self, why: str, seconds: float) -> None:
        """Report, once until `say_over`, that a node is awaited for at most this many seconds."""
        if self._awaited:
            return
        self._awaited = True
        logger().warning("evaluators.node_awaited", why=why, where=self._where, seconds=seconds)
        self._log(NodeAwaited(f"{self._where}: {why}", seconds))
        self._tell(f"{self._where}: {why}; waiting for {seconds:g} s at most")

    def say_over(self) -> None:
        """Report that nothing waits for a node any more, if it was reported that something does."""
        if self._awaited:
            self._awaited = False
            self._tell(f"{self._where}: the wait is over; slots for programs: {self.capacity}")
