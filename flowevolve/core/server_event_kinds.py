"""What can happen to LLM calls, to the servers that answer them and to the nodes that run programs.

The classes have the form of those in `flowevolve.core.event_kinds`.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.core.event_body import EventBody, Number, Text


@dataclass(frozen=True)
class AdmissionChanged(EventBody, kind="admission.changed"):
    limit: int
    before: int
    reason: Text
    in_flight: int
    waiting: int
    server_running: Number | None
    server_waiting: Number | None


@dataclass(frozen=True)
class EndpointEjected(EventBody, kind="endpoint.ejected"):
    endpoint: str
    reason: Text
    failures: int


@dataclass(frozen=True)
class EndpointReturned(EventBody, kind="endpoint.returned"):
    endpoint: str
    seconds: Number


@dataclass(frozen=True)
class LimitsRefused(EventBody, kind="limits.refused"):
    backend: str
    model: str
    pause_seconds: Number
    requests_per_minute: Number | None


@dataclass(frozen=True)
class UsageEstimated(EventBody, kind="usage.estimated"):
    backend: str
    model: str


@dataclass(frozen=True)
class ServerLooked(EventBody, kind="server.load"):
    running: Number
    waiting: Number
    cache_usage: Number | None
    prefix_hit_rate: Number | None


@dataclass(frozen=True)
class NodeJoined(EventBody, kind="node.joined"):
    """Programs run on this machine of a cluster from now on, ``slots`` at a time."""

    node: str
    machine: str
    """The machine's class. Only measurements from machines of the same class are comparable."""
    slots: int
    capacity: int
    """How many programs all nodes together run at a time."""


@dataclass(frozen=True)
class NodeLost(EventBody, kind="node.lost"):
    node: str
    reason: Text
    capacity: int


@dataclass(frozen=True)
class NodeAwaited(EventBody, kind="node.awaited"):
    """There is no node that programs could run on. The run waits for one for at most ``seconds``."""

    reason: Text
    seconds: Number


@dataclass(frozen=True)
class NodeRefused(EventBody, kind="node.refused"):
    """Programs can't be run on a node, which ``reason`` names."""

    reason: Text


@dataclass(frozen=True)
class ServerEvent(EventBody):
    """What happened to a server that the run started itself."""

    url: str
    detail: Text


@dataclass(frozen=True)
class ServerStarting(ServerEvent, kind="server.starting"):
    """The server is being started."""


@dataclass(frozen=True)
class ServerHealthy(ServerEvent, kind="server.healthy"):
    """The server answers."""


@dataclass(frozen=True)
class ServerDied(ServerEvent, kind="server.died"):
    """The server's process ended, or it hung. It is started again."""


@dataclass(frozen=True)
class ServerGaveUp(ServerEvent, kind="server.gave_up"):
    """The server is not started again."""
