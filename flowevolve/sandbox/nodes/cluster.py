"""A cluster as the engine sees it: nodes that come, run what they are sent, and go. Messages may be lost, late or
repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from flowevolve._util.errors import BackendUnreachableError, InputError


class NodeRefusedError(InputError):
    """Programs can't be run on a node, for a reason that stays as long as the node does."""


class NodeInUseError(BackendUnreachableError):
    """Another run uses a node; it may be free when that run has ended."""


class NodeLostError(BackendUnreachableError):
    """A node, or the process that ran programs there, is gone; it may or may not have run what it was sent."""


class NoNodesError(NodeLostError):
    """There is no node, and none will come; the message says why."""


class Node(Protocol):
    """What runs programs on one machine. Messages are those of `flowevolve.sandbox.nodes.messages`."""

    slots: int
    machine: str
    """The machine's class. Measurements on machines of one class are comparable."""

    async def run(self, message: bytes) -> bytes:
        """Run a batch of jobs, one after the other, and return its answers.

        Raises:
            NodeLostError: if the node is gone.
        """
        ...

    async def cancel(self, message: bytes) -> None:
        """Kill jobs that run, and don't begin the others; returns when nothing of them is left.

        Raises:
            NodeLostError: if the node is gone, and the jobs with it.
        """
        ...

    def kill(self) -> None:
        """End the node and everything it runs, without waiting."""
        ...


class Cluster(Protocol):
    """The machines on which programs may run. A context manager."""

    async def names(self) -> Sequence[str]:
        """The names of the machines that are there now. A machine that is back may have its old name; then the node
        that was opened there before has ended.

        Raises:
            NoNodesError: if there is no machine, and none will come.
            NodeLostError: if the cluster can't be asked.
        """
        ...

    async def open(self, name: str) -> Node:
        """Open a node on the machine of this name, which can then run programs.

        Raises:
            NodeRefusedError: if that machine can't run them; the message says why.
            NodeInUseError: if another run uses it.
            NodeLostError: if it is gone, or does not answer.
        """
        ...

    async def __aenter__(self) -> Self:
        """Raises: InputError if there is no such cluster, or nothing in it can be used."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all nodes that were opened, with everything they run."""
        ...
