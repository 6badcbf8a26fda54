"""Work in a process of its own that is killed in the middle of it, and files that are read as an ordinary user."""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import traceback
import warnings
from collections.abc import Callable
from functools import partial

NOBODY = 65534
_connect = sqlite3.connect


def killed(work: Callable[[], object], steps: int) -> bool:
    """Do work in a child, which gets SIGKILL after so many hundred steps of SQLite; False if it ended before.

    What SQLite has in memory it writes out early there, as where memory is short, so that the files are half
    changed at the kill.
    """
    return dies(partial(_work_until_killed, work, steps))


def dies(work: Callable[[], object]) -> bool:
    """Do work in a child, and say whether it kills itself meanwhile."""
    return _child(work) == -signal.SIGKILL


def ends(pid: int) -> bool:
    """Whether a process has ended, or does so within half a minute."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    ended = bool(poll.poll(30_000))
    os.close(handle)
    return ended


def die() -> None:
    """Kill the process that calls it, which then does nothing more, cleaning up included."""
    os.kill(os.getpid(), signal.SIGKILL)


def _work_until_killed(work: Callable[[], object], steps: int) -> None:
    left = steps

    def count_down() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            die()

    def connect(*args: object, **kwargs: object) -> sqlite3.Connection:
        database: sqlite3.Connection = _connect(*args, **kwargs)  # type: ignore[call-overload]
        database.execute("PRAGMA cache_size=1")
        database.set_progress_handler(count_down, 100)
        return database

    sqlite3.connect = connect  # type: ignore[assignment]
    work()


def as_ordinary_user(work: Callable[[], object]) -> None:
    """Do work in a child that may not write to what belongs to others, as root may; it has to succeed."""

    def go() -> None:
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        work()

    assert _child(go) == 0


def _child(work: Callable[[], object]) -> int:
    """The exit code of a child that does some work; negative if a signal ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, of which the child needs none
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001  a child must not go on with the tests
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
