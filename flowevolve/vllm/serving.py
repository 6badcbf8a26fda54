"""Serves a model with vLLM until a ``with`` block ends."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import Pulse, beside, run_all
from flowevolve.vllm.command import find_executable, inspect_machine, serve_arguments, serve_environment
from flowevolve.vllm.server import Server, ServerChange, ServerListener
from flowevolve.vllm.settings import VLLMSettings


def ignore_event(change: ServerChange) -> None:
    """The default of ``on_event``."""


@asynccontextmanager
async def serve_vllm(
    model: str,
    settings: VLLMSettings | None = None,
    *,
    log: Path,
    on_event: ServerListener = ignore_event,
    unanswered: Pulse | None = None,
) -> AsyncGenerator[list[str]]:
    """Start ``settings.replicas`` servers, wait until all are healthy, and yield their base URLs.

    Requests name ``model``, whatever ``settings.model`` loads. A server that dies is started again at the same URL.
    ``on_event`` is called whenever one starts, becomes healthy, dies or is given up. Callers fire ``unanswered`` when a
    request got no answer: the health of every server is then checked, and one that hangs is restarted too. All servers
    are stopped when the block ends, and when this process is gone, even if it was killed. The first one writes to
    ``log``, the others to files beside it (``vllm-1.log`` beside ``vllm.log``).

    Raises:
        InputError: if vLLM is not installed, a port is taken or the log can't be written.
        BackendUnreachableError: if a server ends before it is healthy, or takes too long to become so.
    """
    settings = VLLMSettings() if settings is None else settings
    with _ports(settings.host, settings.port, settings.replicas) as ports:
        servers = await anyio.to_thread.run_sync(_plan, model, settings, ports, log, on_event, unanswered or Pulse())
        try:
            await run_all([server.start for server in servers])
            async with beside() as tasks:
                for server in servers:
                    tasks.start_soon(server.keep)
                yield [server.url for server in servers]
        finally:
            with anyio.CancelScope(shield=True):
                await run_all([server.stop for server in servers])


def check_vllm(settings: VLLMSettings) -> Path:
    """Check that servers could be started, without starting one; returns vLLM's command.

    Raises:
        InputError: if vLLM is not installed or a port is taken.
    """
    with _ports(settings.host, settings.port, settings.replicas):
        return find_executable(settings.executable)


def _plan(
    model: str, settings: VLLMSettings, ports: Sequence[int], log: Path, on_event: ServerListener, unanswered: Pulse
) -> list[Server]:
    executable, machine = find_executable(settings.executable), inspect_machine()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - what the user chose
    where = f"[{host}]" if ":" in host else host
    servers = []
    for replica, port in enumerate(ports):
        own_log = log if replica == 0 else log.with_stem(f"{log.stem}-{replica}")
        _create(own_log)
        command = serve_arguments(
            executable, settings, machine, model=settings.model or model, served_as=model, port=port
        )
        servers.append(
            Server(
                command,
                serve_environment(executable, settings, machine, replica, os.environ),
                f"http://{where}:{port}/v1",
                own_log,
                settings.startup_seconds,
                settings.restarts,
                settings.stop_seconds,
                settings.hung_seconds,
                unanswered,
                on_event,
            )
        )
    return servers


def _create(log: Path) -> None:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        raise InputError(f"{log}: can't be written: {error.strerror}; name another log") from error


@contextmanager
def _ports(host: str, first: int, count: int) -> Generator[list[int]]:
    """Reserve ``count`` ports from ``first`` on (0: any free ones), so that nobody else takes one during a restart.

    A server that sets SO_REUSEADDR, as vLLM does, can listen on a port that is reserved in this way.

    Raises:
        InputError: if a port is taken, or the host is not an address of this machine.
    """
    with ExitStack() as held:
        ports = []
        for index in range(count):
            port = first + index if first else 0
            try:
                family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                holder = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                holder.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise InputError(f"vllm.host: can't listen on {host}:{port}: {error.strerror}") from None
                raise InputError(
                    f"vllm.port: {host}:{port} is taken; choose another port (0 for any free one), "
                    "or use the vLLM that listens there with llm.base_url"
                ) from None
            ports.append(int(holder.getsockname()[1]))
        yield ports
