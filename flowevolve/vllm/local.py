"""Servers on this machine: their commands, environments, ports and logs."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import Pulse
from flowevolve.vllm.command import find_executable, inspect_machine, serve_arguments, serve_environment
from flowevolve.vllm.server import Server, ServerListener
from flowevolve.vllm.settings import VLLMSettings


@asynccontextmanager
async def local_servers(
    model: str,
    settings: VLLMSettings,
    *,
    log: Path,
    on_event: ServerListener,
    unanswered: Pulse,
    api_key: str | None,
) -> AsyncGenerator[list[Server]]:
    """The servers for `flowevolve.vllm.serving.serve_vllm`, none of which is started. Their ports are reserved.

    Raises:
        InputError: if vLLM is not installed, a port is taken or the log can't be written.
    """
    with ExitStack() as held:
        reserved = _ports(settings.host, settings.port, settings.replicas)
        ports = await anyio.to_thread.run_sync(held.enter_context, reserved)  # as it may look a name up
        plan = partial(_plan, model, settings, ports, log, on_event, unanswered, api_key)
        yield await anyio.to_thread.run_sync(plan)


def check_local(settings: VLLMSettings) -> None:
    """Check that servers could be started here. Raises what `local_servers` raises, except for the log."""
    with _ports(settings.host, settings.port, settings.replicas):
        find_executable(settings.executable)


def _plan(
    model: str,
    settings: VLLMSettings,
    ports: Sequence[int],
    log: Path,
    on_event: ServerListener,
    unanswered: Pulse,
    api_key: str | None,
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
                serve_environment(executable, settings, machine, replica, os.environ, api_key),
                f"http://{where}:{port}/v1",
                own_log,
                settings.startup_seconds,
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
        raise InputError(f"{log}: can't be written: {error.strerror}; name another file for it") from error


def _cannot_listen(host: str, port: int, error: OSError) -> InputError:
    match error.errno:
        case errno.EADDRINUSE:
            return InputError(
                f"vllm.port: {host}:{port} is taken; choose another port (0 for any free one), "
                "or use the vLLM that listens there with llm.base_url"
            )
        case errno.EACCES:
            setting, mend = "vllm.port", "choose another port (0 for any free one)"
        case _:
            setting, mend = "vllm.host", "give an address of this machine"
    return InputError(f"{setting}: can't listen on {host}:{port}: {error.strerror}; {mend}")


@contextmanager
def _ports(host: str, first: int, count: int) -> Generator[list[int]]:
    """Reserve ``count`` ports from ``first`` on (0: any free ones), so that no one else takes one during a restart.

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
                raise _cannot_listen(host, port, error) from None
            ports.append(int(holder.getsockname()[1]))
        yield ports
