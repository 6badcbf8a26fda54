"""The server that a run starts for itself, if its config asks for one."""

from __future__ import annotations

import math
import secrets
import shlex
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.secrets import hide
from flowevolve._util.tasks import Pulse
from flowevolve.config.roles import ResolvedRole
from flowevolve.config.run import Config
from flowevolve.core.server_event_kinds import ServerDied, ServerEvent, ServerGaveUp, ServerHealthy, ServerStarting
from flowevolve.engine.engine import Engine
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.admission import LoadSummary
from flowevolve.vllm.server import ServerChange, ServerListener

LOG = "vllm.log"
_EVENTS: Mapping[str, type[ServerEvent]] = {
    "starting": ServerStarting,
    "healthy": ServerHealthy,
    "died": ServerDied,
    "gave_up": ServerGaveUp,
}


def starts_vllm(config: Config) -> bool:
    """Whether a run of this config starts a vLLM of its own."""
    return config.llm.backend == "vllm" and not config.llm.urls


@dataclass(frozen=True, slots=True)
class OurServers:
    """What is known of servers that a run has started itself, besides their addresses."""

    identity: str
    """What identifies them in the response cache, instead of their addresses, which may change from run to run."""
    api_key: str | None = field(repr=False)
    """The key that was generated for them, if there is one."""
    may_move: bool
    """Whether a server that is restarted may have another address."""


@dataclass(frozen=True, slots=True)
class Served:
    """The servers that a run has started itself, if any."""

    ours: OurServers | None
    urls: Sequence[str]
    """Their addresses when they were started."""
    server_changes: MemoryObjectReceiveStream[ServerChange] | None
    """What happens to them; None if there are none."""
    unanswered: Pulse = field(default_factory=Pulse)
    """To be fired when a request gets no answer, so that the servers are checked."""

    def serve(self, roles: Mapping[str, ResolvedRole]) -> Mapping[str, ResolvedRole]:
        """The roles with the addresses of these servers, if there are any."""
        return {name: role.served_at(self.urls) for name, role in roles.items()} if self.urls else roles

    async def side_task(self, engine: Engine, observed: LoadSummary, traffic: Traffic) -> None:
        """Log what happens to the servers, follow those that move, and end the run when none is left."""
        gone = 0
        if self.server_changes is None:
            return
        async for change in self.server_changes:
            engine.log(_EVENTS[change.kind](change.url, change.detail))
            observed.restarts += change.kind == "died"
            if change.moved_from is not None:
                traffic.move(change.moved_from, change.url)
            gone += change.kind == "gave_up"
            if gone == len(self.urls):
                engine.fail(BackendUnreachableError(f"{change.url}: {change.detail}"))


@asynccontextmanager
async def open_server(config: Config, out: Path | None, listeners: Sequence[ServerListener]) -> AsyncGenerator[Served]:
    """Start the servers that the config asks for, if any, and yield them.

    Their log is in the run's directory or, if there is none, in a temporary folder that is not deleted.

    Raises:
        InputError, BackendUnreachableError: as `flowevolve.vllm.serving.serve_vllm`.
    """
    model = config.llm.model
    if not starts_vllm(config) or model is None:
        yield Served(None, (), None)
        return
    from flowevolve.vllm.serving import serve_vllm  # noqa: PLC0415 - few runs start a server

    folder = Path(tempfile.mkdtemp(prefix="flowevolve-")) if out is None else out
    send, receive = anyio.create_memory_object_stream[ServerChange](math.inf)

    def tell(change: ServerChange) -> None:
        send.send_nowait(change)
        for listener in listeners:
            listener(change)

    on_ray = config.vllm.on == "ray"
    ours = OurServers(_identity(config, model), _draw_key() if on_ray else None, may_move=on_ray)
    unanswered = Pulse()
    with send, receive:
        async with serve_vllm(
            model, config.vllm, log=folder / LOG, on_event=tell, unanswered=unanswered, api_key=ours.api_key
        ) as urls:
            yield Served(ours, urls, receive, unanswered)


def _draw_key() -> str:
    """Generate a key for servers that other machines can reach."""
    key = secrets.token_urlsafe(32)
    hide(key)
    return key


def _identity(config: Config, model: str) -> str:
    """Model and flags. The response cache can't see what else a server's replies depend on, such as its version."""
    return f"vllm {shlex.join([model, config.vllm.model or model, *config.vllm.flags])}"
