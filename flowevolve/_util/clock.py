"""The event loop's clock, real or virtual.

On a `VirtualClockLoop`, time stands still while anything can run and then jumps to the next timer. So everything built
on the loop's clock (sleeps, deadlines, time-outs) takes no time and happens in an order that never varies. The clock
also stands still while a thread does work that was handed to it through `in_thread`. The time at which the result
arrives is fixed when the work is handed over, so how long the thread really takes changes nothing.

Where uvloop is installed (the extra ``uvloop``), runs in real time use its loop, which takes less CPU time.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from flowevolve._util import garbage
from flowevolve._util.errors import EngineError
from flowevolve._util.tasks import beside, cancel_at_next_await, wait_in_any_case
from flowevolve._util.threads import noted

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")
Args = TypeVarTuple("Args")
Clock = Literal["real", "virtual"]

THREAD_SECONDS = 1e-6
"""Seconds that work in a thread takes on a virtual clock. Results arrive one by one, in the order of handing over."""


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and jumps from timer to timer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.holds = 0
        self._last_result = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now

    def next_result(self) -> float:
        """The time at which the result of work that is handed to a thread now will arrive."""
        self._last_result = max(self.now, self._last_result) + THREAD_SECONDS
        return self._last_result


class _JumpingSelector(selectors.BaseSelector):
    """Moves the loop's time forward where the loop would wait for a timer."""

    def __init__(self, loop: VirtualClockLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._loop.holds:
            return self._real.select(None)
        if timeout is None:
            raise EngineError(
                "the virtual clock has nothing to wait for: every task waits for another (a deadlock), for the end of "
                "a pause that nobody ends, or for something outside the loop that was not handed to "
                "flowevolve.clock.in_thread"
            )
        self._loop.now += timeout
        return []

    def register(self, fileobj: FileDescriptorLike, events: int, data: object = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: FileDescriptorLike, events: int, data: object = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class _Thread(threading.local):
    """The loop that `run` is running in this thread."""

    loop: asyncio.AbstractEventLoop | None = None


_thread = _Thread()


def running_loop() -> asyncio.AbstractEventLoop:
    """The running loop. Under `run`, this costs a tenth of what asyncio's own function costs up to Python 3.11, which
    asks the operating system at each call whether this process was forked.
    """
    return _thread.loop or asyncio.get_running_loop()


def now() -> float:
    """The time of the running loop, in seconds."""
    return (_thread.loop or asyncio.get_running_loop()).time()  # not by way of `running_loop`: called all the time


def is_virtual() -> bool:
    """Whether the running loop has a virtual clock."""
    return isinstance(running_loop(), VirtualClockLoop)


def is_running() -> bool:
    """Whether an event loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def in_thread(function: Callable[[*Args], T], *args: *Args, limiter: anyio.CapacityLimiter | None = None) -> T:
    """Run blocking work in a worker thread. A virtual clock stands still until it returns.

    Once the work has begun, a cancellation takes effect only after its end, so that its result is not lost.
    """
    return await _in_thread(partial(noted, function, *args), limiter)


async def in_thread_unless_virtual(function: Callable[[*Args], T], *args: *Args) -> T:
    """As `in_thread`, but done at once on a virtual clock, which does not move: a run that is repeated needs that."""
    return function(*args) if is_virtual() else await in_thread(function, *args)


async def _in_thread(
    work: Callable[[], T], limiter: anyio.CapacityLimiter | None, give_up: Callable[[], None] | None = None
) -> T:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualClockLoop):
        return await _to_its_end(work, limiter, give_up)
    came_in = anyio.Event()
    # The timer is set before the work begins: in which order timers of one moment go off depends on when all were set.
    loop.call_at(loop.next_result(), came_in.set)
    loop.holds += 1
    try:
        return await _to_its_end(work, limiter, give_up)
    finally:
        loop.holds -= 1
        await wait_in_any_case(came_in)  # otherwise the work's result would be lost


async def _to_its_end(
    work: Callable[[], T], limiter: anyio.CapacityLimiter | None, give_up: Callable[[], None] | None
) -> T:
    """Run work in a worker thread. anyio waits for its end if one of its scopes is cancelled; this also does if asyncio
    cancels the task, and calls ``give_up`` then.
    """
    outcome, ended, loop = Future[T](), anyio.Event(), asyncio.get_running_loop()
    try:
        return await anyio.to_thread.run_sync(partial(_carry_out, work, outcome), limiter=limiter)
    except asyncio.CancelledError as error:
        if outcome.cancel():  # the work had not begun
            raise
        if give_up is not None and not outcome.done():
            give_up()
        outcome.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
        await wait_in_any_case(ended)
        if outcome.exception() is not error:
            cancel_at_next_await(error)
        return outcome.result()


def _carry_out(work: Callable[[], T], outcome: Future[T]) -> T:
    """Do work in a thread, and note its outcome as well. It is not begun if ``outcome`` was cancelled."""
    if not outcome.set_running_or_notify_cancel():
        raise CancelledError
    try:
        result = work()
    except BaseException as error:
        outcome.set_exception(error)
        raise
    outcome.set_result(result)
    return result


async def in_thread_until(
    give_up: Callable[[], None],
    function: Callable[[*Args], T],
    *args: *Args,
    limiter: anyio.CapacityLimiter | None = None,
) -> T:
    """As `in_thread`, but a cancellation calls ``give_up`` at once and takes effect when the work has ended."""
    done = False

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if not done:
                give_up()

    async with beside() as tasks:
        tasks.start_soon(watch)
        result = await _in_thread(partial(function, *args), limiter, give_up)
        done = True
    await checkpoint_if_cancelled()
    return result


async def run_beside(function: Callable[[*Args], Awaitable[T]], *args: *Args, clock: Clock) -> T:
    """As `run`, on a loop of its own in another thread, beside the running loop. A cancellation is passed on to it."""
    begun: list[tuple[asyncio.AbstractEventLoop, anyio.CancelScope]] = []
    results: list[T] = []
    given_up = threading.Event()

    async def within() -> None:
        with anyio.CancelScope() as scope:
            begun.append((asyncio.get_running_loop(), scope))
            if given_up.is_set():
                scope.cancel()
            results.append(await function(*args))

    def give_up() -> None:
        given_up.set()
        for loop, scope in begun:
            with suppress(RuntimeError):  # it may have closed just now
                loop.call_soon_threadsafe(scope.cancel)

    await in_thread_until(give_up, partial(run, within, clock=clock))
    return results[0]


def has_uvloop() -> bool:
    """Whether uvloop is installed, so that runs in real time use its event loop. It does not exist for Windows."""
    return find_spec("uvloop") is not None


def run(
    function: Callable[[*Args], Awaitable[T]], *args: *Args, clock: Clock = "real", uvloop: bool | None = None
) -> T:
    """Run an async function to its end on a loop with this clock. Garbage is collected less often meanwhile.

    ``uvloop`` says whether real time uses uvloop's loop; by default it does if uvloop is installed.
    """
    use_uvloop = has_uvloop() if uvloop is None else uvloop
    options = {"loop_factory": VirtualClockLoop} if clock == "virtual" else {"use_uvloop": use_uvloop}
    with garbage.seldom():
        return anyio.run(_noting_loop, partial(function, *args), backend="asyncio", backend_options=options)


async def _noting_loop(function: Callable[[], Awaitable[T]]) -> T:
    _thread.loop = asyncio.get_running_loop()
    try:
        return await function()
    finally:
        _thread.loop = None
