"""Ctrl-C, SIGTERM and SIGHUP, from the start of a command's run to its end."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from types import FrameType
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus

from flowevolve._util.outputs import LastingOutput
from flowevolve._util.signals import ENDING, ending_signals
from flowevolve._util.tasks import beside
from flowevolve._util.threads import called, under_way
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.engine.engine import Engine
from flowevolve.runner.clients import SideTask

T = TypeVar("T")

ONE_PRESS_SECONDS = 0.3
"""Signals that follow one another in less than this, in real time, are from one Ctrl-C: a parent process may pass it on
too, as ``timeout`` does, which sends its signal to the child and to the group.
"""
MOST_NAMED = 3
"""The most functions that are named of those that are waited for."""
_SHOW_CURSOR = "\x1b[?25h"


async def until_interrupted(
    go: Callable[[SideTask], Awaitable[T]],
    *,
    numbers: Sequence[signal.Signals] = ENDING,
    parting: Callable[[], str] = lambda: "",
) -> T | None:
    """Await ``go`` and return its result; None if it was cut off. ``go`` gets a side task that its run must carry out.

    While the engine runs, the first signal stops it, and the second cuts it off. This holds too if it was ending
    already for another reason. Before the engine runs, and after it has ended, the first signal cuts off what is under
    way.

    What runs in a thread can't be cut off. The functions that are waited for are named on standard error, and one more
    signal ends the process at once, with exit code 130 and ``parting`` as its last line. It does so too if the event
    loop itself is blocked.
    """
    interrupts = _Interrupts(parting)
    before = _HEARD.set(interrupts)
    try:
        async with beside() as tasks:
            await tasks.start(interrupts.listen, numbers)
            with interrupts.scope:
                return await go(interrupts.side_task)
    finally:
        _HEARD.reset(before)
    return None


@contextmanager
def cut_off_alone() -> Iterator[None]:
    """A block, after the engine has ended, that a signal cuts off alone: what follows it still runs."""
    interrupts = _HEARD.get()
    with anyio.CancelScope() as scope:
        if interrupts is not None:
            interrupts.alone = scope
        try:
            yield
        finally:
            if interrupts is not None:
                interrupts.alone = None


class _Interrupts:
    def __init__(self, parting: Callable[[], str]) -> None:
        self.scope = anyio.CancelScope()
        self.alone: anyio.CancelScope | None = None
        """What is cut off instead of everything, if there is a block for it."""
        self._parting = parting
        self._engine: Engine | None = None
        self._told = False
        """Whether the engine was asked to stop by a signal. It may be stopping for another reason already."""
        self._pressed = -inf
        """When the last signal came that is a press of its own, by the signal handler's clock."""
        self._unheard: float | None = None
        """When the first signal came that the event loop has not handled yet, by the signal handler's clock."""
        self._last_chance: float | None = None
        """When the work was cut off, or the event loop found blocked: one more press ends the process. None before
        that.
        """

    async def side_task(self, engine: Engine) -> None:
        self._engine, self._told = engine, False
        try:
            await anyio.sleep_forever()
        finally:
            self._engine = None

    async def listen(self, numbers: Sequence[signal.Signals], *, task_status: TaskStatus[None]) -> None:
        with ending_signals(self._at_once, numbers) as signals:
            task_status.started()
            async for _ in signals:
                self._unheard = None
                if self._engine is not None and not self._told:
                    self._told = True
                    self._engine.stop(INTERRUPTED)
                elif self._last_chance is None:
                    self._last_chance = time.monotonic()
                    self._cut_off()

    def _cut_off(self) -> None:
        if waited_for := _named(under_way()):
            LastingOutput(sys.stderr).write(f"waiting for {waited_for}; Ctrl-C again ends the process at once\n")
        if self._engine is None:
            (self.alone or self.scope).cancel()
        else:
            self._engine.cancel(INTERRUPTED)

    def _at_once(self, frame: FrameType | None) -> bool:
        """Called by the signal handler itself, so that a busy event loop can't delay it. Returns whether the signal is
        a press of its own.
        """
        now = time.monotonic()
        if now - self._pressed < ONE_PRESS_SECONDS:
            return False
        self._pressed = now
        if self._last_chance is not None:
            if now - self._last_chance >= ONE_PRESS_SECONDS:
                self._end_process(frame)
        elif self._unheard is None:
            self._unheard = now
        elif now - self._unheard >= ONE_PRESS_SECONDS:
            self._last_chance = now
            held_up = "" if frame is None else f" by {called(frame)}"
            _write(f"the event loop is held up{held_up}; Ctrl-C again ends the process at once")
        return True

    def _end_process(self, frame: FrameType | None) -> None:
        held_up = [] if frame is None or self._unheard is None else [called(frame)]
        waited_for = _named([*held_up, *under_way()])
        _write(f"ended at once{f', in the midst of {waited_for}' if waited_for else ''}")
        if parting := self._parting():
            _write(parting)
        os._exit(INTERRUPTED.exit_code)


_HEARD: ContextVar[_Interrupts | None] = ContextVar("flowevolve_interrupts", default=None)
"""What handles the signals for the work that is under way."""


def _named(calls: Sequence[str]) -> str:
    more = f" and {len(calls) - MOST_NAMED} more" if len(calls) > MOST_NAMED else ""
    return f"{', '.join(calls[:MOST_NAMED])}{more}"


def _write(line: str) -> None:
    """Write directly to standard error, whatever else is being written, and show the cursor again if a live table hid
    it.
    """
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{line}\n".encode(errors="backslashreplace"))
