"""The signals that end a program, as they come in, on every system."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import anyio

ENDING = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""Of these, Windows has no SIGHUP, which comes when the terminal is closed."""


@contextmanager
def ending_signals(
    at_once: Callable[[FrameType | None], bool] = lambda frame: True, numbers: Sequence[signal.Signals] = ENDING
) -> Iterator[AsyncIterator[int]]:
    """These signals, which do nothing else while this is open. For the main thread.

    ``at_once`` is called as each comes in, even where the event loop is held up, with what the main thread is at. It
    returns whether the signal is told of.
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
                with suppress(NotImplementedError):  # wakes the loop where another thread gets the signal
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
    """What these signals do when this ends is what they did before, whatever native code has set meanwhile.

    In another thread than the main one it does nothing, as Python sets handlers only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # which Python knows nothing of
                signal.signal(number, handler)


def _ignored(number: signal.Signals) -> bool:
    """Whether whoever started the program switched a signal off that it can live without, as nohup does."""
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) is signal.SIG_IGN


async def until_ended() -> None:
    """Wait until the process is asked to end."""
    with ending_signals() as signals:
        async for _ in signals:
            return
