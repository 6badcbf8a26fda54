"""The signals that end a program, as they come in, on every system."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import anyio

ENDING = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""Of these, Windows has no SIGHUP, which comes when the terminal is closed."""


def _not_ignored() -> list[signal.Signals]:
    """Of the signals that end a program, those that whoever started it did not switch off, as nohup does SIGHUP."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def ending_signals() -> Iterator[AsyncIterator[int]]:
    """SIGINT, SIGTERM and SIGHUP, which do nothing else while this is open. For the main thread.

    Where the event loop takes no handlers of signals (Windows), Python's own are used.
    """
    with ExitStack() as stack:
        try:
            signals: AsyncIterator[int] = stack.enter_context(anyio.open_signal_receiver(*_not_ignored()))
        except NotImplementedError:
            signals = stack.enter_context(_by_handlers())
        yield signals


@contextmanager
def _by_handlers() -> Iterator[AsyncIterator[int]]:
    send, receive = anyio.create_memory_object_stream[int](len(ENDING) * 8)
    loop = asyncio.get_running_loop()

    def tell(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(send.send_nowait, number)

    before = {number: signal.signal(number, tell) for number in _not_ignored()}
    try:
        with send, receive:
            yield receive
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
