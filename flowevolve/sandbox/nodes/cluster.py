"""A cluster as the engine sees it: nodes that come, run what they are sent, and go. It may lose, delay and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from flowevolve._util.errors import BackendUnreachableError, InputError


class NodeRefusedError(InputError):
    """Programs can't be run on a node, for a reason that stays as long as the node does."""


class NodeInUseError(BackendUnreachableError):
    """Another run has a node; it may be had when that has ended."""


class NodeLostError(BackendUnreachableError):
    """A node, or what ran programs there, is gone; what it was sent may have been run or not."""


class NoNodesError(NodeLostError):
    """All nodes are gone, and none will come; the message says why."""


class Node(Protocol):
    """What runs programs on one machine. Messages are those of `flowevolve.sandbox.nodes.messages`."""

    slots: int
    machine: str
    """Its class: machines of one class measure alike."""

    async def run(self, message: bytes) -> bytes:
        """Run a batch of jobs, one after the other, and return its answers.

        Raises:
            NodeLostError: if the node is gone.
        """
        ...

    async def cancel(self, message: bytes) -> None:
        """Kill jobs, or don't begin them; returns when nothing of them is left.

        Raises:
            NodeLostError: if the node is gone, and so are they.
        """
        ...

    def kill(self) -> None:
        """End it and all it runs, without waiting."""
        ...


class Cluster(Protocol):
    """The machines that programs may run on. A context manager."""

    async def names(self) -> Sequence[str]:
        """The names of the machines that are there now. One that is back may have its name again; then what was opened
        there before has ended.

        Raises:
            NoNodesError: if there is none, and none will come.
            NodeLostError: if the cluster can't be asked.
        """
        ...

    async def open(self, name: str) -> Node:
        """Begin to run programs there.

        Raises:
            NodeRefusedError: if that machine can't run them; the message says why.
            NodeInUseError: if another run has it.
            NodeLostError: if it is gone, or does not answer.
        """
        ...

    async def __aenter__(self) -> Self:
        """Raises: InputError if there is no such cluster, or nothing of it can be used."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all nodes that were opened, with all they run."""
        ...
