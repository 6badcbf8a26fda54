"""Work in a process that begins as a copy of this one, bounded in memory and time, with its output thrown away."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_BYTES = 6 * 2**30
"""The limit on memory, because a change may make a loop endless."""
MOST_SECONDS = 300.0
"""The limit on wall-clock time for one test. It is high, because the machine may be busy."""


class Forked(Generic[T]):
    """A process at work, together with those that it may have started."""

    def __init__(self, work: Callable[[], T]) -> None:
        processes = multiprocessing.get_context("fork")
        self._answer, answering = processes.Pipe(duplex=False)
        self._process = processes.Process(target=_work, args=(work, answering))
        self._process.start()
        answering.close()

    def answer(self) -> T | None:
        """Wait for the result of the work, and end whatever is left running. Returns None if the process ended without
        a result.
        """
        answer: T | None = None
        with suppress(EOFError), self._answer:
            answer = self._answer.recv()
        assert self._process.pid is not None  # it was started
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join()
        return answer

    @staticmethod
    def first_ended(running: Sequence[Forked[T]]) -> Forked[T]:
        """Wait until one of these ends, and return it."""
        ended = wait([each._answer for each in running])
        return next(each for each in running if each._answer in ended)


def limit_seconds(seconds: float) -> None:
    """End this process, unless it ends or calls this again before it has computed for this many seconds.

    A process that only waits, because nothing wakes it, is ended after `MOST_SECONDS`.
    """
    for number, timer, limit in (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, MOST_SECONDS),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, limit)


def _work(work: Callable[[], T], answering: Connection[T, T]) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    answering.send(work())
