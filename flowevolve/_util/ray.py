"""The connection of this process to a Ray cluster, of which it has one at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.to_thread
import ray

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError

CONNECT_SECONDS = 60.0


@asynccontextmanager
async def connected(address: str, setting: str) -> AsyncGenerator[None]:
    """The connection to the cluster at an address, as the setting of this name has it; the one there is, if there is.

    Raises:
        InputError: if there is no such cluster.
    """
    if ray.is_initialized():
        yield
        return
    try:
        await _connect(address, setting)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(ray.shutdown)


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


async def _connect(address: str, setting: str) -> None:
    connect = partial(ray.init, address, log_to_driver=False, logging_level="ERROR")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with anyio.fail_after(CONNECT_SECONDS):  # where nothing listens, Ray would go on trying
            await anyio.to_thread.run_sync(_check_listening, address)
            await anyio.to_thread.run_sync(connect, abandon_on_cancel=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{setting}: there is no Ray cluster at {address!r} that this machine belongs to "
            f"({first_line(error) or 'it does not answer'}); join it with ray start --address=HOST:PORT"
        ) from error


def _check_listening(address: str) -> None:
    named = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    if named != "auto":
        host, _, port = named.rpartition(":")
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS / 2).close()
