"""A cluster in this process, whose nodes get lost, fall silent and repeat themselves as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Literal, Self

import anyio

from flowevolve._util.errors import InputError
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.nodes import messages
from flowevolve.sandbox.nodes.cluster import NodeInUseError, NodeLostError, NodeRefusedError, NoNodesError
from flowevolve.sandbox.nodes.messages import Answer, Reply
from flowevolve.sandbox.nodes.work import NodeWork

Fault = Literal["none", "lose_before", "lose_after", "delay", "repeat"]
"""What goes wrong with a batch: the node is lost before or after it has run it; it falls silent for long, and answers
then; it runs the batch twice and answers twice, with its earlier answers too.
"""
DELAY_SECONDS = 100.0
PROCESSOR = "a processor"


class MemoryNode:
    """A node that is lost as soon as one of its batches is."""

    def __init__(self, evaluators: Evaluators, faults: Iterator[Fault], machine: str) -> None:
        self.slots = evaluators.capacity
        self.machine = machine
        self.sent: list[bytes] = []
        self.killed = anyio.Event()
        self.begun = anyio.Event()
        """Set once a batch has come in."""
        self._evaluators = evaluators
        self._work = NodeWork(evaluators)
        self._faults = faults
        self._silent = 0
        self._said: list[Answer] = []

    async def run(self, message: bytes) -> bytes:
        self.sent.append(message)
        self.begun.set()
        fault = next(self._faults, "none")
        if fault == "lose_before":
            self.kill()
        if fault == "delay":
            return await self._late(message)
        reply: bytes | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_killed, tasks.cancel_scope)
            reply = await self._work.run(message)
            if fault == "repeat":
                reply = self._repeated(reply, await self._work.run(message))
            tasks.cancel_scope.cancel()
        if fault == "lose_after":
            self.kill()
        if reply is None or self.killed.is_set():
            raise NodeLostError("the node is lost")
        return reply

    async def cancel(self, message: bytes) -> None:
        if self._silent:
            await anyio.sleep_forever()
        if self.killed.is_set():
            raise NodeLostError("the node is lost")
        await self._work.cancel(message)

    def kill(self) -> None:
        self.killed.set()

    async def _until_killed(self, scope: anyio.CancelScope) -> None:
        await self.killed.wait()
        scope.cancel()

    async def _late(self, message: bytes) -> bytes:
        """Run the batch, whether the node was given up or not, and say nothing for long."""
        self._silent += 1
        reply = await self._work.run(message)
        await anyio.sleep(DELAY_SECONDS)
        self._silent -= 1
        return reply

    def _repeated(self, *replies: bytes) -> bytes:
        new = [answer for reply in replies for answer in messages.read_reply(reply).answers]
        said, self._said = [*self._said, *new], new
        return messages.pack_reply(Reply(said))


class MemoryCluster:
    """Has ``size`` nodes at any time: in place of one that is lost, another joins."""

    def __init__(
        self, make: Callable[[], Evaluators], size: int = 2, faults: Sequence[Fault] = (), refuses: Sequence[str] = ()
    ) -> None:
        """``faults`` are those of the batches, in the order in which they come in anywhere; then there are none.

        ``refuses`` are names of nodes that can't run programs; the first nodes are ``1``, ``2``, …
        """
        self.nodes: dict[str, MemoryNode] = {}
        """Those that were opened, lost ones too."""
        self.present = {str(number + 1) for number in range(size)}
        self.replaces = True
        self.hopeless = ""
        """Why no node will come any more; empty: there may be some."""
        self.open_seconds = 0.0
        """How long a node takes to begin."""
        self.dying: set[str] = set()
        """The names of nodes that die while they are opened."""
        self.occupied: set[str] = set()
        """The names of nodes that another run uses."""
        self.machines: dict[str, str] = {}
        """The classes of nodes that are of another one than most."""
        self._make = make
        self._faults = iter(faults)
        self._refuses = refuses
        self._opened: list[Evaluators] = []
        self._last = size

    async def names(self) -> Sequence[str]:
        if self.hopeless:
            raise NoNodesError(self.hopeless)
        for name in sorted(self.present):
            if name in self.nodes and self.nodes[name].killed.is_set():
                self.present.remove(name)
                if self.replaces:
                    self.add()
        return sorted(self.present)

    def add(self) -> None:
        self._last += 1
        self.present.add(str(self._last))

    async def open(self, name: str) -> MemoryNode:
        if name in self._refuses:
            raise NodeRefusedError(f"node {name}: bubblewrap (bwrap) is not installed")
        await anyio.sleep(self.open_seconds)
        if name in self.occupied:
            raise NodeInUseError(f"node {name} is in use by another run")
        if name in self.dying:
            raise NodeLostError(f"node {name}: it has died")
        try:
            evaluators = await self._make().__aenter__()
        except InputError as error:
            raise NodeRefusedError(f"node {name}: {error}") from error
        self._opened.append(evaluators)
        node = self.nodes[name] = MemoryNode(evaluators, self._faults, self.machines.get(name, PROCESSOR))
        return node

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            for evaluators in self._opened:
                await evaluators.__aexit__(None, None, None)
