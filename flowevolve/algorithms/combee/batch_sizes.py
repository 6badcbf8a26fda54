"""How large batches should be, by how long they take: a `flowevolve.core.policies.BatchSize`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from flowevolve.core.policies import PAST, Batch

LEAST = 2
"""A batch of one merges nothing: next to it every merge would look slow."""


@dataclass(frozen=True)
class DelayProfile:
    """Combee's controller (arXiv 2604.04247): profiles the delay, and settles where larger batches hardly save any.

    Beyond that point a larger batch only makes each merge harder. The sizes tried are 2, 4, 8, … and at last ``most``,
    ``repeats`` batches of each, whose median counts; one that could not be filled counts for the next size tried. Then
    the smallest is compared with the next, the better of them with the one after, and so on: a larger size is better
    if, for each member of a batch, it saves at least ``gain`` of what would be saved if a batch took as long as at the
    smaller one. What is left at the end stays.
    """

    most: int
    repeats: int = 3
    gain: float = 0.5

    def next(self, past: Sequence[Batch]) -> int:
        if len(past) >= PAST:  # the profile is being forgotten; it was settled long ago
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
        return before <= 0 or before - now >= self.gain * ideal * before  # no time: no call was made, as of a cache
