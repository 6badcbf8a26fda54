"""Gives each measurement a core of its own by file locks, which the kernel releases however their holder ends."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import anyio

from flowevolve._util.cores import usable_cores
from flowevolve._util.work_folders import check_user_folder, unusable, user_folder

with suppress(ImportError):  # Windows has none, and programs are refused there
    import fcntl

POLL_SECONDS = 0.02
"""The time between two attempts to take a lock. A blocking call would see a release at once, but can't be cancelled."""


class CoreLock:
    """A lock on one core, held until it is closed. Locks of the same process exclude each other, too.

    The queue for a core has one place. While somebody waits there, nobody else can take the core, so a process that
    takes it again and again has to wait for others.

    Raises:
        InputError: if ``folder``, which holds the lock files, can't be used.
    """

    def __init__(self, folder: Path, core: int) -> None:
        self.core = core
        self.queued = False
        """Whether this lock has the place in the queue."""
        check_user_folder(folder)
        self._queue = _opened(folder / f"core-{core}.line")
        self._file = _opened(folder / f"core-{core}")

    def try_acquire(self) -> bool:
        """Take the core if it is free and nobody else waits for it; returns whether it was taken."""
        if not (self.queued or _locked(self._queue)):
            return False
        taken = _locked(self._file)
        if taken or not self.queued:
            self._leave_queue()
        return taken

    def join_queue(self) -> bool:
        """Take the place in the queue if it is free; returns whether this lock has it now."""
        self.queued = self.queued or _locked(self._queue)
        return self.queued

    def _leave_queue(self) -> None:
        fcntl.flock(self._queue, fcntl.LOCK_UN)
        self.queued = False

    def close(self) -> None:
        """Release the core or the place in the queue."""
        for file in (self._file, self._queue):
            fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough if a child process has a copy
            os.close(file)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(path, str(error)) from error


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def acquire_any(locks: Sequence[CoreLock], give_up: Event) -> CoreLock | None:
    """Block until one of the locks is taken, or ``give_up`` is set. Meanwhile wait in one queue, if one has its place
    free.
    """
    while True:
        for lock in locks:
            if lock.try_acquire():
                return lock
        if not any(lock.queued for lock in locks):
            any(lock.join_queue() for lock in locks)
        if give_up.wait(POLL_SECONDS):
            return None


class Cores:
    """Lends out processor cores, each to one holder at a time among all processes that use ``folder``.

    Within an event loop, holders that use its `turns` are served in order of arrival. Between loops and between
    processes, one that waits comes before one that takes a core again.
    """

    def __init__(self, cores: Iterable[int], folder: Path) -> None:
        self._cores = sorted(cores)
        self._folder = folder

    def turns(self) -> anyio.Semaphore:
        """A semaphore with one turn for each core. If each `lent` of an event loop holds a turn, it only ever waits for
        cores that other loops or processes hold. Loops must not share a semaphore: what one releases doesn't wake the
        others.
        """
        return anyio.Semaphore(len(self._cores))

    @contextmanager
    def lent(self, give_up: Event) -> Generator[int | None]:
        """Block this thread until a core is free, and hold it until the block ends; None once ``give_up`` is set.

        The holder must not wait for a virtual clock, because that stands still while anybody waits for a core here.

        Raises:
            InputError: if the folder can't be used.
        """
        lock = self._taken() or self._waited_for(give_up)
        try:
            yield None if lock is None else lock.core
        finally:
            if lock is not None:
                lock.close()

    def _taken(self) -> CoreLock | None:
        """The lock on the first core that nobody holds or waits for; None if there is none."""
        for core in self._cores:
            lock = CoreLock(self._folder, core)
            if lock.try_acquire():
                return lock
            lock.close()
        return None

    def _waited_for(self, give_up: Event) -> CoreLock | None:
        """The lock on the first core that another process releases; None once ``give_up`` is set."""
        locks = [CoreLock(self._folder, core) for core in self._cores]
        had = None
        try:
            had = acquire_any(locks, give_up)
        finally:
            for lock in locks:
                if lock is not had:
                    lock.close()
        return had


CORES = Cores(usable_cores(), user_folder())
"""The cores of this machine, shared by all sandboxes of all processes of this user."""
