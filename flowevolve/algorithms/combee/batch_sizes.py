"""How many reflections make the next proposal, in both forms of a run: policies for the size of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from flowevolve.core.event_kinds import WidthChanged
from flowevolve.core.events import Event
from flowevolve.core.policies import PAST, Batch, BatchSize

LEAST = 2
"""The smallest batch tried. A batch of one merges nothing, so every merge would look slow next to it."""


@dataclass(frozen=True)
class DelayProfile:
    """Combee's controller (arXiv 2604.04247): measures the delay of growing batches, and settles on a size beyond which
    larger ones hardly save time.

    Beyond that point a larger batch only makes each merge harder. The sizes tried are 2, 4, 8, … and at last ``most``,
    ``repeats`` batches of each, of which the median counts. A batch that could not be filled counts for the smallest of
    these sizes that holds it. Then the smallest size is compared with the next, the better of them with the one after,
    and so on. A larger size is better if, per member of a batch, it saves at least ``gain`` of what would be saved if a
    batch took no longer than at the smaller size. The best size is kept from then on.
    """

    most: int
    repeats: int = 3
    gain: float = 0.5

    def next(self, past: Sequence[Batch]) -> int:
        if len(past) >= PAST:  # the first batches are forgotten by now; the size was settled long ago
            return max(batch.size for batch in list(past)[PAST // 2 :])
        best, least = 0, 0.0
        smaller = LEAST - 1
        for size in self._sizes():
            delays = [batch.seconds / batch.size for batch in past if smaller < batch.size <= size][: self.repeats]
            if len(delays) < self.repeats:
                return size
            delay = median(delays)
            if not best or self._pays(1 - best / size, least, delay):
                best, least = size, delay
            smaller = size
        return best

    def _sizes(self) -> Iterator[int]:
        size = LEAST
        while size < self.most:
            yield size
            size *= 2
        yield self.most

    def _pays(self, ideal: float, before: float, now: float) -> bool:
        return before <= 0 or before - now >= self.gain * ideal * before  # 0: no call was made, as with a cache


class Sizes:
    """One policy for both forms of a run: in lockstep it is given the delays of steps, in the stream those of merges.

    When a run is resumed, the aggregation of an interrupted step has to know that the run is in lockstep before the
    engine asks for the size of the next step. `apply_event` learns this from the log.
    """

    def __init__(self, policy: BatchSize, most: int) -> None:
        self.policy = policy
        self.most = most
        self.by_steps = False
        self.current = policy.next(())
        self.steps: BatchSize = _Steps(self)
        self.gathers: BatchSize = _Gathers(self)

    def apply_event(self, event: Event) -> None:
        if isinstance(event.body, WidthChanged):
            self.by_steps = True


class _Steps:
    """The size of the next step; only lockstep asks for it."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def next(self, past: Sequence[Batch]) -> int:
        self._sizes.by_steps = True
        self._sizes.current = self._sizes.policy.next(past)
        return self._sizes.current


class _Gathers:
    """How many reflections to gather; both forms ask for it. In lockstep all reflections of a step are gathered."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def next(self, past: Sequence[Batch]) -> int:
        if self._sizes.by_steps:
            return self._sizes.most
        self._sizes.current = self._sizes.policy.next(past)
        return self._sizes.current
