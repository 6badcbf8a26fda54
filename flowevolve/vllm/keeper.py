"""Two small processes between us and a server, so that no server outlives us, however we end.

The keeper runs as a script: ``keeper.py STOP_SECONDS COMMAND...``. Its standard input is a pipe whose other end we
hold. When the pipe closes, because we closed it or because we are gone (even by SIGKILL), or on SIGTERM, SIGINT or
SIGHUP, it stops the server and then kills whatever the server started. Its exit code is the server's, or 128 plus the
number of the signal that killed the server.

This is done by a child of the script's process, which itself only waits for the child. The reason is that a worker of
Ray that ends kills its children: then its grandchild is left to stop the server.

It imports nothing but the standard library and has a single thread, so that running code between fork and exec is safe.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LINUX = sys.platform == "linux"
CANNOT_START = 127
LIFELINE = 0
"""The descriptor of standard input, which closes when our parent ends."""


def main(arguments: list[str]) -> int:
    """Keep a server in a child process. Returns the child's exit code, or ends by the signal that ended the child."""
    child = os.fork()
    if child == 0:
        return keep(arguments)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def keep(arguments: list[str]) -> int:
    stop_seconds, command = float(arguments[0]), arguments[1:]
    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _only_wake)
    die_with_us: Callable[[], object] | None = None
    if LINUX:
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # for when a fork of our parent holds the pipe open
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphaned descendants become our children
        die_with_us = partial(prctl, PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=die_with_us)  # noqa: PLW1509, S603 - one thread; the command is the user's own
    except OSError as error:
        print(f"error: {command[0]} can't be started: {error.strerror}", file=sys.stderr)  # noqa: T201 - into the log
        return CANNOT_START
    _wait(server, wakeup)
    _end(server, stop_seconds)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def kill_session(session: int) -> None:
    """Kill every process of a session, for when its keeper was killed. Does nothing on systems other than Linux."""
    for pid, status in _processes().items():
        if status[1] == session:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _only_wake(number: int, frame: object) -> None:
    """Keep the signal from ending us; its number arrives through the wakeup pipe."""


def _wait(server: subprocess.Popen[bytes], wakeup: int) -> None:
    """Wait until the server ends, the lifeline closes, or a signal asks us to stop."""
    while server.poll() is None:
        _reap_orphans(server.pid)
        ready, _, _ = select.select([LIFELINE, wakeup], [], [])
        if wakeup in ready and set(os.read(wakeup, 4096)) - {signal.SIGCHLD}:
            return
        if LIFELINE in ready and not os.read(LIFELINE, 4096):
            return


def _reap_orphans(server: int) -> None:
    """Reap adopted processes that have ended, but not the server."""
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid != server:
        os.waitpid(ended.si_pid, 0)


def _end(server: subprocess.Popen[bytes], stop_seconds: float) -> None:
    """Ask the server to stop, kill it if it does not, and kill everything that it started."""
    if server.poll() is None:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(stop_seconds)
    server.kill()
    server.wait()
    if not LINUX:
        with suppress(ProcessLookupError, PermissionError):  # the latter where only zombies are left
            os.killpg(server.pid, signal.SIGKILL)
    while LINUX and (left := _below(os.getpid())):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _below(ancestor: int) -> set[int]:
    """The ids of all descendants of a process."""
    parents = {pid: status[0] for pid, status in _processes().items()}
    found: set[int] = set()
    while new := {pid for pid, parent in parents.items() if parent in found | {ancestor}} - found:
        found |= new
    return found


def _processes() -> dict[int, tuple[int, int]]:
    """The parent and the session of every process, by id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # pid (name) state parent group session ...; a name may have spaces and brackets
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            found[int(folder.name)] = int(fields[1]), int(fields[3])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
