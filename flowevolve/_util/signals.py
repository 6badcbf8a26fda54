"""Handling the signals that end a program, on every system."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import anyio

ENDING = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""The signals that end a program. SIGHUP, sent when the terminal is closed, does not exist on Windows."""


@contextmanager
def ending_signals(
    at_once: Callable[[FrameType | None], bool] = lambda frame: True, numbers: Sequence[signal.Signals] = ENDING
) -> Iterator[AsyncIterator[int]]:
    """Yield these signals as they arrive; they have no other effect while the block is open. For the main thread only.

    ``at_once`` is called as soon as a signal arrives, even if the event loop is blocked, with the frame that the main
    thread is executing. It returns whether the signal is to be yielded.
    """
    numbers = [number for number in numbers if not _ignored(number)]
    send, receive = anyio.create_memory_object_stream[int](len(numbers) * 8)
    loop = asyncio.get_running_loop()

    def pass_on(number: int) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            send.send_nowait(number)

    def tell(number: int, frame: FrameType | None) -> None:
        if at_once(frame):
            loop.call_soon_threadsafe(pass_on, number)

    before = {number: signal.getsignal(number) for number in numbers}
    with send, receive:
        try:
            for number in numbers:
                with suppress(NotImplementedError):  # wakes the loop if another thread gets the signal
                    loop.add_signal_handler(number, lambda: None)
                signal.signal(number, tell)
            yield receive
        finally:
            for number, handler in before.items():
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(number)
                signal.signal(number, handler)


@contextmanager
def kept_signals() -> Iterator[None]:
    """Restore the handlers of these signals when the block ends, whatever native code has set meanwhile.

    Outside the main thread this does nothing, because Python can set handlers only in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python
                signal.signal(number, handler)


def _ignored(number: signal.Signals) -> bool:
    """Whether the signal was switched off when the program was started, as nohup does, and need not be handled."""
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) is signal.SIG_IGN


async def until_ended() -> None:
    """Wait until the process is asked to end."""
    with ending_signals() as signals:
        async for _ in signals:
            return
