"""Bounded first-in-first-out queues between stages.

Nothing is lost on cancellation: a cancelled ``put`` has added nothing, and a cancelled ``take`` has removed nothing.
While a queue is full, its producers wait and are woken in the order in which they came. A producer that arrives after
another was woken, but before that one runs, may take its place; the other then waits behind all the rest.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from flowevolve._util.gauge import Gauge

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Statistics of a queue since it was created.

    ``wait_seconds`` is the total time that all items taken so far spent in the queue. ``mean_depth`` is a mean over
    time, and ``depth_seconds`` the integral of the depth over time; its increase gives the mean over any interval.
    """

    put: int
    taken: int
    depth: int
    max_depth: int
    mean_depth: float
    depth_seconds: float
    wait_seconds: float


class ItemQueue(Generic[T]):
    """A queue of at most ``capacity`` entries (at least ``gather``), taken ``gather`` at a time.

    With a ``key``, only entries with the same key are taken together. If the queue is full and no key has enough
    entries, those with the key of the oldest entry are taken. ``put_back`` may exceed the capacity, for edges that must
    not block.
    """

    def __init__(
        self, capacity: int, now: Callable[[], float], gather: int = 1, key: Callable[[T], Hashable] | None = None
    ) -> None:
        self.capacity = max(capacity, gather)
        self.gather = gather
        self._key = key
        self._sizes: Counter[Hashable] = Counter()
        self._now = now
        self._entries: deque[tuple[T, float]] = deque()
        self._together: deque[int] = deque()
        self._takers: deque[anyio.Event] = deque()
        self._putters: deque[anyio.Event] = deque()
        self._flushing = False
        self._put = self._taken = self._max_depth = 0
        self._wait_seconds = 0.0
        self._depth = Gauge(now)

    def __len__(self) -> int:
        return len(self._entries)

    async def put(self, entry: T) -> None:
        """Append an entry, waiting while the queue is full."""
        while len(self._entries) >= self.capacity:
            await self._line_up(self._putters)
        self.put_back(entry)

    def put_back(self, entry: T) -> None:
        """Append an entry at once, whatever the depth."""
        self._depth.add(1)
        self._entries.append((entry, self._now()))
        if self._key is not None:
            self._sizes[self._key(entry)] += 1
        self._put += 1
        self._max_depth = max(self._max_depth, len(self._entries))
        self._pass_on()

    async def take(self) -> list[T]:
        """Take the ``gather`` oldest entries together; fewer only after ``flush``, or if the queue is full."""
        while not self._ready():
            await self._line_up(self._takers)
        if self._together:
            return self.drain(self._together.popleft())
        self._flushing = False
        return self.drain(self.gather) if self._key is None else self._drain_alike(self._key)

    def set_gather(self, gather: int) -> None:
        """Set how many entries are taken together from now on."""
        if gather != self.gather:
            self.gather = gather
            self.capacity = max(self.capacity, gather)
            self._pass_on()

    def put_together(self, entries: Sequence[T]) -> None:
        """Append entries that are to be taken as one batch, as before an interruption. Call it before any other entries
        are put.
        """
        for entry in entries:
            self.put_back(entry)
        self._together.append(len(entries))
        self._pass_on()

    def flush(self) -> None:
        """Let the next ``take`` return what there is, even if it is fewer than ``gather`` entries."""
        self._flushing = bool(self._entries)
        self._pass_on()

    def drain(self, most: int | None = None) -> list[T]:
        """Take up to ``most`` entries (by default all) without waiting."""
        if most is None:
            self._together.clear()
        count = len(self._entries) if most is None else min(most, len(self._entries))
        return self._hand_out([self._entries.popleft() for _ in range(count)])

    def _drain_alike(self, key: Callable[[T], Hashable]) -> list[T]:
        """Take the oldest entries of a key that has enough of them or, if no key has, of the oldest entry's key."""
        wanted = next((each for each, size in self._sizes.items() if size >= self.gather), key(self._entries[0][0]))
        taken: list[tuple[T, float]] = []
        kept: deque[tuple[T, float]] = deque()
        for entry in self._entries:
            alike = len(taken) < self.gather and key(entry[0]) == wanted
            (taken if alike else kept).append(entry)
        self._entries = kept
        return self._hand_out(taken)

    def _hand_out(self, taken: Sequence[tuple[T, float]]) -> list[T]:
        self._depth.add(-len(taken))
        now = self._now()
        if self._key is not None:
            self._sizes.subtract(self._key(entry) for entry, _ in taken)
            self._sizes = +self._sizes
        self._taken += len(taken)
        self._wait_seconds += sum(now - since for _, since in taken)
        self._pass_on()
        return [entry for entry, _ in taken]

    def stats(self) -> QueueStats:
        return QueueStats(
            self._put,
            self._taken,
            len(self._entries),
            self._max_depth,
            self._depth.mean(),
            self._depth.integral(),
            self._wait_seconds,
        )

    def _ready(self) -> bool:
        if self._flushing or self._together:
            return bool(self._entries)
        if self._key is None:
            return len(self._entries) >= self.gather
        return len(self._entries) >= self.capacity or any(size >= self.gather for size in self._sizes.values())

    async def _line_up(self, line: deque[anyio.Event]) -> None:
        turn = anyio.Event()
        line.append(turn)
        try:
            await turn.wait()
            await checkpoint_if_cancelled()  # the turn may have come just before
        except BaseException:
            if turn.is_set():
                self._pass_on()  # cancelled with the turn in hand: the next one gets it
            else:
                line.remove(turn)
            raise

    def _pass_on(self) -> None:
        """Wake one taker and one producer that can go on now. Each wakes the next, because it calls this itself."""
        if self._takers and self._ready():
            self._takers.popleft().set()
        if self._putters and len(self._entries) < self.capacity:
            self._putters.popleft().set()
