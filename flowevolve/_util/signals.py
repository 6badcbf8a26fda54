"""The signals that end a program, as they come in, on every system."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import anyio

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ending_signals() -> Iterator[AsyncIterator[int]]:
    """SIGINT and SIGTERM, which do nothing else while this is open. For the main thread.

    Where the event loop takes no handlers of signals (Windows), Python's own are used.
    """
    with ExitStack() as stack:
        try:
            signals: AsyncIterator[int] = stack.enter_context(anyio.open_signal_receiver(*ENDING))
        except NotImplementedError:
            signals = stack.enter_context(_by_handlers())
        yield signals


@contextmanager
def _by_handlers() -> Iterator[AsyncIterator[int]]:
    send, receive = anyio.create_memory_object_stream[int](len(ENDING) * 8)
    loop = asyncio.get_running_loop()

    def tell(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(send.send_nowait, number)

    before = {number: signal.signal(number, tell) for number in ENDING}
    try:
        with send, receive:
            yield receive
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
