"""Allocation policies: how many workers each stage has (FlashEvolve §3.4).

Each is asked at its own interval, with what was measured since the last time. A change is by one worker, within the
stage's bounds; a worker that is taken away finishes its item first. Policies may remember what they saw, and use
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Resize, StageLoad, Workload


@dataclass(frozen=True, slots=True)
class MedianRate:
    """A stage that hands on less than half the median stage's items gets a worker, one with more than twice loses one.

    FlashEvolve §3.4, *adaptive worker reallocation*; the interval is not published. Stages that handed nothing on count
    with a rate of 0. The repair stage is left out, because not every item passes through it.

    Raises:
        InputError: if a setting is out of range.
    """

    interval_seconds: float = 30.0

    def __post_init__(self) -> None:
        _above(0, interval_seconds=self.interval_seconds)

    def decide(self, load: Workload) -> Sequence[Resize]:
        rates = {stage.name: stage.produced / load.seconds for stage in load.stages if stage.place != "repair"}
        if not rates:
            return ()
        middle = median(rates.values())
        changes: list[Resize] = []
        for name, rate in rates.items():
            if rate < middle / 2:
                changes.append(Resize(name, 1, _said(rate, "less than half", middle)))
            elif rate > middle * 2 > 0:
                changes.append(Resize(name, -1, _said(rate, "more than twice", middle)))
        return changes


def _said(rate: float, compared: str, median_rate: float) -> str:
    return f"it hands on {rate:.3f} items a second, {compared} the median stage's {median_rate:.3f}"


@dataclass(slots=True)
class Pressure:
    """Later stages get the workers their items need; new work is begun as fast as backend and freshness allow.

    Work that has begun is not kept waiting: a later stage whose items wait while all its workers are busy gets one
    more. The first stage is the valve. It gets a worker while the backend's use (calls in flight over the limit) is
    below ``full`` and later stages keep up. When the backend is full, the valve loses a worker if calls pile up (open
    calls exceed the limit by more than ``flood`` of it), if more items wait at later stages than these have workers, or
    if items reach the last stage stale (mean gap over ``max_gap``): a backend is not left idle for the sake of
    freshness, but nothing is begun that would only grow old. Use and excess are means over about ``memory`` looks: work
    that begins now reaches the backend only much later, so a valve that follows every dip would oscillate. Workers that
    are idle for long are taken away, except one spare worker.

    Against oscillation, a sign has to be seen ``patience`` times in a row (idleness six times as often), the thresholds
    leave a band in which nothing changes, and a stage that was changed in one direction is not changed in the other for
    ``rest`` looks.

    Raises:
        InputError: if a setting is out of range.
    """

    interval_seconds: float = 5.0
    full: float = 0.95
    flood: float = 0.5
    max_gap: float = 12.0
    memory: int = 12
    patience: int = 2
    rest: int = 6
    _signs: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)
    _last: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)
    _looks: int = field(default=0, init=False)
    _used: float = field(default=0.0, init=False)
    _excess: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        _above(0, interval_seconds=self.interval_seconds, full=self.full)
        _at_least(0, flood=self.flood, max_gap=self.max_gap, rest=self.rest)
        _at_least(1, memory=self.memory, patience=self.patience)

    def decide(self, load: Workload) -> Sequence[Resize]:
        self._looks += 1
        self._remember(load)
        changes: list[Resize] = []
        for stage in load.stages:
            sign, reason = self._valve(load) if stage.place == "first" else _need(stage)
            if not stage.least <= stage.workers + sign <= stage.most:
                sign = 0
            if self._due(stage.name, sign, reason):
                changes.append(Resize(stage.name, 1 if sign > 0 else -1, reason))
        return changes

    def _valve(self, load: Workload) -> tuple[int, str]:
        later = [stage for stage in load.stages if stage.place == "later"]
        waiting, workers = sum(stage.waiting for stage in later), sum(stage.workers for stage in later)
        gap = later[-1].gap if later else 0.0
        if self._used < self.full:
            if later and waiting >= workers / 2:
                return 0, ""
            return 1, f"only {self._used:.0%} of the allowed requests are in flight"
        if self._excess > self.flood:
            return -1, f"{self._excess:.0%} more calls are open than may be in flight"
        if waiting > workers:
            return -1, f"more items wait for later stages ({waiting:.1f}) than these have workers ({workers})"
        if gap > self.max_gap:
            return -1, f"items have missed {gap:.1f} changes of the pool, on average, when they reach {later[-1].name}"
        return 0, ""

    def _remember(self, load: Workload) -> None:
        calls = load.open_calls / load.call_limit
        self._used += (min(1.0, calls) - self._used) / self.memory
        self._excess += (max(0.0, calls - 1) - self._excess) / self.memory

    def _due(self, stage: str, sign: int, reason: str) -> bool:
        """Whether this sign has been seen often enough, and the stage is not resting from a change the other way."""
        before, times = self._signs.get(stage, (0, 0))
        times = times + 1 if sign == before else 1
        self._signs[stage] = (sign, times)
        direction, when = self._last.get(stage, (0, 0))
        patience = self.patience * (_IDLE_PATIENCE if reason == _IDLE else 1)
        if sign == 0 or times < patience or (direction == -sign and self._looks - when < self.rest):
            return False
        self._signs[stage] = (sign, 0)
        self._last[stage] = (sign, self._looks)
        return True


_IDLE = "two or more workers were idle all the time"
_IDLE_PATIENCE = 6


def _need(stage: StageLoad) -> tuple[int, str]:
    if stage.waiting >= 0.5 and stage.busy > stage.workers - 0.5:
        return 1, f"{stage.waiting:.1f} items wait, on average, while all workers are busy"
    if stage.waiting < 0.1 and stage.produced and stage.busy < stage.workers - 2:
        return -1, _IDLE
    return 0, ""


def _above(bound: float, **settings: float) -> None:
    for name, value in settings.items():
        if not value > bound:
            raise InputError(f"allocation.{name} is {value}, but has to be above {bound:g}")


def _at_least(bound: float, **settings: float) -> None:
    for name, value in settings.items():
        if not value >= bound:
            raise InputError(f"allocation.{name} is {value}, but has to be at least {bound:g}")
