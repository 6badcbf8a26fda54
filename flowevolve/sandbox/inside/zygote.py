"""A warm interpreter; each program is a fresh fork of it.

For each program it forks once and waits. The request and the report pass directly between the engine and the fork, so
that no program's memory contains anything of another program. The fork is the program's supervisor: process 1 of its
own namespaces, inside those that bubblewrap created.

The zygote ends when its control socket closes, and when a fork fails, because it can't be trusted after that.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from flowevolve.sandbox.inside import kernel, syscall_filter, wire
from flowevolve.sandbox.inside.supervisor import supervise
from flowevolve.sandbox.inside.wire import Request

_REQUEST_LIMIT = 2**28
_CHANNEL = 2
"""The most descriptors that a program is given: pipes from and to another sandbox."""


@dataclass(frozen=True, slots=True)
class Setup:
    control: int
    """The descriptor of the control socket."""
    namespaces: bool
    user: int | None
    """The id of the user to become if we are root."""
    packages: list[str]
    """Folders from which programs import."""
    preload: list[str]
    """Modules to import beforehand, if they are installed."""
    shared_bytes: int
    """The size of each program's /dev/shm."""


def main(setup: Setup) -> int:
    if setup.user is not None:
        kernel.mount("proc", "/proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        kernel.become(setup.user)
    sys.path += setup.packages
    for name in setup.preload:
        with suppress(ImportError):
            import_module(name)
    syscall_filter.filter_here()  # caches it
    gc.collect()
    gc.freeze()
    kernel.allow_looking_in(False)
    if setup.namespaces and not _namespaces_work(setup):
        return 1
    control = socket.socket(fileno=setup.control)
    wire.send(control, wire.READY)
    while _another(control):
        fork = kernel.fork_into_namespaces() if setup.namespaces else os.fork()
        if fork == 0:
            os._exit(_one_program(control, setup))
        if os.waitpid(fork, 0)[1] != 0:
            return 1
    return 0


def _another(control: socket.socket) -> bool:
    """Wait for the next request without reading it; returns False if there will be none."""
    try:
        return bool(control.recv(1, socket.MSG_PEEK))
    except ConnectionResetError:
        return False


def _one_program(control: socket.socket, setup: Setup) -> int:
    try:
        if setup.namespaces:
            _furnish(setup.shared_bytes)
        else:
            kernel.adopt_orphans()
        _serve(control)
    except (OSError, EOFError, ValueError) as error:
        os.write(2, f"{error}\n".encode())
        return 1
    return 0


def _namespaces_work(setup: Setup) -> bool:
    """Whether namespaces can be created. A fork tries it, and prints an error to standard error if not."""
    fork = os.fork()
    if fork:
        return os.waitpid(fork, 0)[1] == 0
    try:
        first = kernel.fork_into_namespaces()
        if not first:
            _furnish(setup.shared_bytes)
        os._exit(int(os.waitpid(first, 0)[1] != 0) if first else 0)
    except OSError as error:
        os.write(2, f"namespaces inside of bubblewrap: {error}\n".encode())
        os._exit(1)


def _furnish(shared_bytes: int) -> None:
    """Create the mounts of one program, except for ``/tmp``, whose size depends on the request."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", flags)
    kernel.mount("tmpfs", "/dev/shm", flags, f"size={shared_bytes},nr_inodes=256,mode=1777")  # noqa: S108


def _serve(control: socket.socket) -> None:
    message, channel = wire.receive_with_descriptors(control, _REQUEST_LIMIT, _CHANNEL)
    request = Request(**json.loads(message))
    if request.folder is None:
        options = f"size={request.disk},nr_inodes=4096,mode=1777"
        kernel.mount("tmpfs", "/tmp", kernel.MS_NOSUID | kernel.MS_NODEV, options)  # noqa: S108
        kernel.drop_capabilities()
    supervise(control, request, channel)
