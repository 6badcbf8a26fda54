"""The queue of requests that wait for the scheduler, and the protocol of the policy that orders them.

Requests wait in groups (one item at one stage): the policy ranks the groups, and the requests inside a group. Ranks are
computed again only for groups that changed, so joining, taking and leaving the queue take O(log n) time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from flowevolve._util.errors import EngineError, policy_error
from flowevolve._util.values import value

Key = tuple[float, ...]


@value
class QueuedRequest:
    """What the order of requests depends on."""

    rank: int = 0
    """Requests with a lower rank go first."""
    group: str = ""
    """The name of the request's group: one item at one stage."""
    candidate: str | None = None
    expected_tokens: float = 0.0
    """The expected length of the answer; 0 where nothing is known."""


class GroupFacts(NamedTuple):
    """What a policy may rank a group by. Its next request has this ``rank``, ``expected_tokens`` and ``arrival``."""

    rank: int
    remaining: int
    """The number of its requests that wait or are in flight."""
    affine: bool
    """Whether the last request sent was for the same candidate, so that the server's prefix cache has its prompt."""
    expected_tokens: float
    arrival: int
    first_arrival: int
    """The arrival of the group's first request. Arrivals are numbered from 1 over all requests."""
    name: str
    """The group's own (`QueuedRequest.group`)."""
    in_flight: int
    """The number of its requests in flight."""


class Order(Protocol):
    """Decides which request goes next: the one with the lowest key or, among equals, the one that arrived first.

    A pure policy.
    """

    @property
    def fair_every(self) -> int:
        """One slot in this many goes to the request that has waited longest, so that none starves; 0: never."""
        ...

    def group_key(self, facts: GroupFacts) -> Key:
        """The key of a group. With ``affine`` it must not be higher than without."""
        ...

    def request_key(self, request: QueuedRequest, arrival: int) -> Key:
        """The key of a request within its group."""
        ...


class ByRank:
    """Orders strictly by rank, and first come, first served within a rank."""

    fair_every = 0

    def group_key(self, facts: GroupFacts) -> Key:
        return (facts.rank, facts.arrival)

    def request_key(self, request: QueuedRequest, arrival: int) -> Key:
        return (request.rank, arrival)


class Group:
    """A group of requests. Its candidate is that of its first request."""

    __slots__ = ("candidate", "first_arrival", "heap", "in_flight", "name", "waiting")

    def __init__(self, request: QueuedRequest, arrival: int) -> None:
        self.name = request.group
        self.candidate = request.candidate
        self.first_arrival = arrival
        self.heap: list[tuple[Key, int, Waiter]] = []
        self.waiting = self.in_flight = 0

    @property
    def remaining(self) -> int:
        return self.waiting + self.in_flight

    def head(self) -> Waiter:
        """The group's next request; there must be one."""
        while not self.heap[0][2].waits:
            heappop(self.heap)
        return self.heap[0][2]

    def tidy(self) -> None:
        """Remove requests that no longer wait from the heap, once they are most of it."""
        if len(self.heap) > 2 * self.waiting:
            self.heap = [entry for entry in self.heap if entry[2].waits]
            heapify(self.heap)


class Waiter:
    """A request that waits until ``admitted`` is set."""

    __slots__ = ("admitted", "arrival", "group", "request", "waits")

    def __init__(self, request: QueuedRequest, arrival: int, group: Group) -> None:
        self.request = request
        self.arrival = arrival
        self.group = group
        self.admitted = asyncio.Event()
        self.waits = True


class RequestQueue:
    """The waiting requests (``len`` is their number), and a count of each group's requests in flight."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._groups: dict[str, Group] = {}
        self._by_arrival: OrderedDict[int, Waiter] = OrderedDict()
        self._ranking = _Ranking()
        self._by_candidate: dict[str, _Ranking] = {}
        self._changed: dict[Group, None] = {}
        self._last_candidate: str | None = None
        self._last_sent: str | None = None
        """The candidate of the last request that used its slot."""
        self._arrivals = self._taken = 0

    def __len__(self) -> int:
        return len(self._by_arrival)

    def remaining(self, name: str) -> int:
        """How many requests of a group wait or are in flight."""
        group = self._groups.get(name)
        return 0 if group is None else group.remaining

    def join(self, request: QueuedRequest) -> Waiter:
        """Add a request to the queue."""
        group = self._group(request)
        waiter = Waiter(request, self._arrivals, group)
        heappush(group.heap, (self._request_key(request, waiter.arrival), waiter.arrival, waiter))
        group.waiting += 1
        self._by_arrival[waiter.arrival] = waiter
        self._changed[group] = None
        return waiter

    def skip(self, request: QueuedRequest) -> Group:
        """Count a request that did not have to wait as in flight."""
        group = self._group(request)
        self._into_flight(group)
        self.sent(group)
        return group

    def take(self) -> Waiter:
        """Take the next request out of the queue and count it as in flight; there must be one."""
        self._taken += 1
        every = self._order.fair_every
        if every and self._taken % every == 0:
            waiter = next(iter(self._by_arrival.values()))
        else:
            self._rank_changed()
            waiter = self._first_group().head()
        self._remove(waiter)
        self._into_flight(waiter.group)
        return waiter

    def sent(self, group: Group) -> None:
        """Note that a request of this group uses the slot that it was taken out of the queue for."""
        self._last_sent = group.candidate

    def give_back(self) -> None:
        """Note that a request was cancelled after it was taken and before it used its slot.

        Later choices are made as if it had never been taken. Otherwise they would depend on the order in which requests
        that are cancelled together reach this point.
        """
        self._taken -= 1
        self._last_candidate = self._last_sent

    def forget(self, waiter: Waiter) -> None:
        """Remove a request that no longer waits."""
        self._remove(waiter)
        self._changed[waiter.group] = None
        self._drop_if_empty(waiter.group)

    def left(self, group: Group) -> None:
        """Note that one of the group's requests in flight has ended."""
        group.in_flight -= 1
        self._changed[group] = None
        self._drop_if_empty(group)

    def _group(self, request: QueuedRequest) -> Group:
        self._arrivals += 1
        group = self._groups.get(request.group)
        if group is None:
            group = self._groups[request.group] = Group(request, self._arrivals)
        return group

    def _into_flight(self, group: Group) -> None:
        group.in_flight += 1
        self._changed[group] = None
        self._last_candidate = group.candidate

    def _remove(self, waiter: Waiter) -> None:
        waiter.waits = False
        del self._by_arrival[waiter.arrival]
        waiter.group.waiting -= 1
        waiter.group.tidy()

    def _drop_if_empty(self, group: Group) -> None:
        if group.remaining == 0:
            del self._groups[group.name]
            self._unrank(group)
            del self._changed[group]

    def _first_group(self) -> Group:
        key, group = self._ranking.first()
        affine = self._by_candidate.get(self._last_candidate or "")
        if affine is not None:
            affine_key, affine_group = affine.first()
            if affine_key < key:
                return affine_group
        return group

    def _rank_changed(self) -> None:
        for group in self._changed:
            if group.waiting:
                self._rank(group)
            else:
                self._unrank(group)
        self._changed.clear()

    def _rank(self, group: Group) -> None:
        self._ranking.put(group, self._key(group, affine=False))
        if group.candidate:
            ranking = self._by_candidate.get(group.candidate)
            if ranking is None:
                ranking = self._by_candidate[group.candidate] = _Ranking()
            ranking.put(group, self._key(group, affine=True))

    def _unrank(self, group: Group) -> None:
        self._ranking.drop(group)
        ranking = self._by_candidate.get(group.candidate or "")
        if ranking is not None:
            ranking.drop(group)
            if not len(ranking):
                del self._by_candidate[group.candidate or ""]

    def _request_key(self, request: QueuedRequest, arrival: int) -> Key:
        try:
            key = self._order.request_key(request, arrival)
        except Exception as error:
            raise policy_error("order", self._order, error) from error
        return self._checked(key)

    def _key(self, group: Group, *, affine: bool) -> Key:
        head = group.head()
        facts = GroupFacts(
            head.request.rank,
            group.remaining,
            affine,
            head.request.expected_tokens,
            head.arrival,
            group.first_arrival,
            group.name,
            group.in_flight,
        )
        try:
            key = self._order.group_key(facts)
        except Exception as error:
            raise policy_error("order", self._order, error) from error
        return self._checked(key)

    def _checked(self, key: object) -> Key:
        """Raises: EngineError if it is no key; if it were compared with another, the failure would name no policy."""
        if isinstance(key, tuple) and all(isinstance(part, int | float) for part in key):
            return key
        name = type(self._order).__name__
        raise EngineError(f"order policy {name} returned the key {key!r:.80}; return a tuple of numbers, such as (1,)")


class _Ranking:
    """A priority queue of groups by key, where putting a group again replaces its key."""

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, int, Group]] = []
        self._current: dict[Group, int] = {}
        self._puts = 0

    def __len__(self) -> int:
        return len(self._current)

    def put(self, group: Group, key: Key) -> None:
        self._puts += 1
        self._current[group] = self._puts
        heappush(self._heap, (key, group.first_arrival, self._puts, group))
        if len(self._heap) > 2 * len(self._current) + 8:
            self._heap = [entry for entry in self._heap if self._current.get(entry[3]) == entry[2]]
            heapify(self._heap)

    def drop(self, group: Group) -> None:
        self._current.pop(group, None)

    def first(self) -> tuple[Key, Group]:
        """The group with the lowest key; there must be one."""
        while self._current.get(self._heap[0][3]) != self._heap[0][2]:
            heappop(self._heap)
        return self._heap[0][0], self._heap[0][3]
