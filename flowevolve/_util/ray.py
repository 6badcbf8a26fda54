"""The connection of this process to a Ray cluster. A process has at most one at a time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread
import ray

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.signals import kept_signals

CONNECT_SECONDS = 60.0


@dataclass(slots=True)
class _Connection:
    """This process's connection, which all its runs share; runs may be in threads of their own."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held while a run connects or disconnects."""
    address: str | None = None
    """The cluster's address; None if there is no connection, or it was not made here."""
    users: int = 0


_CONNECTION = _Connection()


@asynccontextmanager
async def connected(address: str, setting: str) -> AsyncGenerator[None]:
    """Connect to a cluster at an address, or share the existing connection. ``setting`` names the setting in messages.

    The last of several users ends the connection, unless it existed before all of them.

    Raises:
        InputError: if there is no such cluster, or this process is using another one.
    """
    async with _turn():
        await _enter(address, setting)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            async with _turn():
                await _leave()


@asynccontextmanager
async def _turn() -> AsyncGenerator[None]:
    await in_thread(_CONNECTION.turn.acquire)
    try:
        yield
    finally:
        _CONNECTION.turn.release()


async def _enter(address: str, setting: str) -> None:
    ours = _CONNECTION.address
    if ours is not None and address not in ("auto", ours):
        raise InputError(
            f"{setting}: another run of this process uses the Ray cluster at {ours!r}, and a process can be part of "
            "one Ray cluster at a time; give both runs the same address, or start this one in a process of its own"
        )
    if not ray.is_initialized():
        async with AsyncExitStack() as failing:
            failing.push_async_callback(_disconnect)
            await _connect(address, setting)
            failing.pop_all()
        _CONNECTION.address = address
    _CONNECTION.users += 1


async def _leave() -> None:
    _CONNECTION.users -= 1
    if _CONNECTION.users == 0 and _CONNECTION.address is not None:
        _CONNECTION.address = None
        await _disconnect()


async def _disconnect() -> None:
    with anyio.CancelScope(shield=True):
        await in_thread(ray.shutdown)


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


async def _connect(address: str, setting: str) -> None:
    named, source = _named(address, setting)
    connect = partial(ray.init, address, log_to_driver=False, logging_level="ERROR")
    try:
        # Ray's own handler of SIGTERM prints a C++ stack, and aborts the process three seconds later.
        with kept_signals(), anyio.fail_after(CONNECT_SECONDS):  # where nothing listens, Ray would go on trying
            if named != "auto":
                await anyio.to_thread.run_sync(_check_listening, named)
            await anyio.to_thread.run_sync(connect, abandon_on_cancel=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{source}: there is no Ray cluster at {named!r} that this machine belongs to "
            f"({first_line(error) or 'it does not answer'}). Let this machine join it: ray start --address=HOST:PORT"
        ) from error


def _named(address: str, setting: str) -> tuple[str, str]:
    """The address of the cluster, which may come from Ray's own environment variable, and where it was given.

    Raises:
        InputError: if it is not a cluster's address.
    """
    variable = os.environ.get("RAY_ADDRESS", "") if address == "auto" else ""
    named, source = (variable, "the environment variable RAY_ADDRESS") if variable else (address, setting)
    host, _, port = named.rpartition(":")
    if named != "auto" and ("://" in named or not host or not port.isdecimal()):
        kind = "an address for Ray Client, which flowevolve can't use" if "://" in named else "no HOST:PORT"
        raise InputError(
            f"{source}: {named!r} is {kind}; give the address of the cluster's head as ray start was given it, such as "
            "10.0.0.1:6379"
        )
    return named, source


def _check_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS / 2).close()
