"""Signals that end a program are told of where the event loop takes handlers of them, and where it does not."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.signals import ending_signals, kept_signals


async def first(sent: signal.Signals = signal.SIGINT) -> tuple[int, bool]:
    """The first signal that is told of, and whether the handler of before is back afterwards."""
    before = signal.getsignal(sent)
    with anyio.fail_after(30), ending_signals() as signals:
        signal.raise_signal(sent)
        number = await anext(aiter(signals))
    return int(number), signal.getsignal(sent) is before


def test_on_this_system() -> None:
    assert anyio.run(first)[0] == signal.SIGINT


def test_on_the_loop_of_runs_in_real_time() -> None:
    assert clock.run(first)[0] == signal.SIGINT


def test_where_the_loop_takes_no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: object, *given: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", none)
    assert anyio.run(first) == (signal.SIGINT, True)


def test_signals_that_need_not_be_told_of_leave_room_for_the_next() -> None:
    wanted = iter([True, *[False] * 50, True])

    async def go() -> list[int]:
        with anyio.fail_after(30), ending_signals(lambda frame: next(wanted)) as signals:
            for _ in range(51):
                signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            told = aiter(signals)
            return [await anext(told), await anext(told)]

    assert anyio.run(go) == [signal.SIGINT, signal.SIGTERM]


def test_a_terminal_that_is_closed_ends_as_well() -> None:
    assert anyio.run(first, signal.SIGHUP)[0] == signal.SIGHUP


def test_what_nohup_switched_off_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def go() -> int:
            with anyio.fail_after(30), ending_signals() as signals:
                signal.raise_signal(signal.SIGHUP)
                signal.raise_signal(signal.SIGTERM)
                return int(await anext(aiter(signals)))

        assert anyio.run(go) == signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(sys.platform == "win32", reason="its C library is another")
def test_a_handler_that_native_code_has_set_meanwhile_is_gone_again() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        with kept_signals():
            ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(int(signal.SIG_IGN)))
            signal.raise_signal(signal.SIGTERM)
            assert came == []
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_than_the_main_one_handlers_are_left_as_they_are() -> None:
    def enter() -> None:
        with kept_signals():
            pass

    with ThreadPoolExecutor(1) as threads:
        threads.submit(enter).result()
