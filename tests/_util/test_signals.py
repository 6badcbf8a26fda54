"""Signals that end a program are told of where the event loop takes handlers of them, and where it does not."""

from __future__ import annotations

import asyncio
import signal

import anyio
import pytest

from flowevolve._util.signals import ending_signals


async def first() -> tuple[int, bool]:
    """The first signal that is told of, and whether the handler of before is back afterwards."""
    before = signal.getsignal(signal.SIGINT)
    with anyio.fail_after(30), ending_signals() as signals:
        signal.raise_signal(signal.SIGINT)
        number = await anext(aiter(signals))
    return int(number), signal.getsignal(signal.SIGINT) is before


def test_on_this_system() -> None:
    assert anyio.run(first)[0] == signal.SIGINT


def test_where_the_loop_takes_no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: object, *given: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", none)
    assert anyio.run(first) == (signal.SIGINT, True)
